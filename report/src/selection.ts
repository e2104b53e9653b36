/** Which nodes the table shows, and in which order. */

import type { Column } from "./columns";
import { isWrong } from "./columns";
import type { Findings, ModelFindings } from "./findings";
import type { Verdict } from "./words";

export interface Filter {
  search: string;
  /** Class that some model predicts, or the label; null for any. */
  class: number | null;
  judged: "right" | "wrong" | null;
  part: "labelled" | "unlabelled" | null;
  /** Verdict wanted of each model by its number. */
  verdicts: Map<number, Verdict>;
}

export interface Order {
  column: number;
  descending: boolean;
}

export class Selection {
  readonly filter: Filter = { search: "", class: null, judged: null, part: null, verdicts: new Map() };
  order: Order = { column: 0, descending: false };
  /** Positions of the nodes that are shown, in order. */
  positions: Int32Array = new Int32Array();
  private readonly haystack: string[];
  private readonly orders = new Map<number, Sorted>();

  constructor(
    private readonly findings: Findings,
    private readonly columns: Column[],
  ) {
    this.haystack = findings.positions().map((position) => haystackOf(findings, position));
    this.update();
  }

  /** Filters and sorts again. */
  update(): void {
    const { known, unknown } = this.sorted(this.order.column);
    const ordered = [...(this.order.descending ? [...known].reverse() : known), ...unknown];
    this.positions = Int32Array.from(ordered.filter((position) => this.matches(position)));
  }

  private matches(position: number): boolean {
    const { search, part, judged, verdicts } = this.filter;
    if (search !== "" && !this.haystack[position]?.includes(search)) return false;
    if (part !== null && this.findings.wasLabelled(position) !== (part === "labelled")) return false;
    if (this.filter.class !== null && !this.isOfClass(position, this.filter.class)) return false;
    if (judged !== null && !this.isJudged(position, judged)) return false;
    for (const [number, verdict] of verdicts)
      if (this.findings.models[number]?.verdict(position) !== verdict) return false;
    return true;
  }

  private isOfClass(position: number, wanted: number): boolean {
    return this.findings.models.some((model) => (model.predicted(position) ?? model.certified(position)) === wanted);
  }

  /** Wrong: some model is; right: every model is. */
  private isJudged(position: number, judged: "right" | "wrong"): boolean {
    const wrong = (model: ModelFindings) => isWrong(this.findings, model, position);
    return judged === "wrong"
      ? this.findings.models.some((model) => wrong(model))
      : this.findings.models.every((model) => wrong(model) === false);
  }

  /** All nodes in the order of a column; computed once. */
  private sorted(number: number): Sorted {
    const cached = this.orders.get(number);
    if (cached) return cached;
    const sorted = sortBy(this.findings.positions(), this.columns[number]?.key ?? (() => null));
    this.orders.set(number, sorted);
    return sorted;
  }
}

const collator = new Intl.Collator("en", { numeric: true });

/** Nodes by increasing key, equal ones as they come; and those without a key, which go last in either direction. */
interface Sorted {
  known: number[];
  unknown: number[];
}

function sortBy(positions: number[], key: Column["key"]): Sorted {
  const keys = positions.map(key);
  const compare = (a: number, b: number) => {
    const [first, second] = [keys[a], keys[b]];
    if (typeof first === "number" && typeof second === "number") return first - second;
    return collator.compare(String(first), String(second));
  };
  return {
    known: positions.filter((position) => keys[position] !== null).sort(compare),
    unknown: positions.filter((position) => keys[position] === null),
  };
}

/** All that a search looks at: the id and the name. */
function haystackOf(findings: Findings, position: number): string {
  return fold(`${findings.id(position)} ${findings.name(position)}`);
}

/** Text without case and compatibility forms, for searching. */
export function fold(text: string): string {
  return text.normalize("NFKC").toLowerCase();
}
