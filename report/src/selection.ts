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
  private ranks = new Map<number, Int32Array>();

  constructor(
    private readonly findings: Findings,
    private readonly columns: Column[],
  ) {
    this.haystack = findings.positions().map((position) => haystackOf(findings, position));
    this.update();
  }

  /** Filters and sorts anew. */
  update(): void {
    const rank = this.rank(this.order.column);
    const sign = this.order.descending ? -1 : 1;
    const last = this.findings.subjects;
    const value = (position: number) => rank[position] ?? last;
    this.positions = Int32Array.from(this.findings.positions().filter((position) => this.matches(position))).sort(
      (a, b) => {
        const [first, second] = [value(a), value(b)];
        if (first === second) return a - b;
        if (first === last || second === last) return first - second;
        return sign * (first - second);
      },
    );
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

  /** Where each node comes if sorted by a column, equal keys at the same place; those without a key come last. */
  private rank(number: number): Int32Array {
    const known = this.ranks.get(number);
    if (known) return known;
    const ranks = ranksOf(this.findings.positions().map(this.columns[number]?.key ?? (() => null)));
    this.ranks.set(number, ranks);
    return ranks;
  }
}

const collator = new Intl.Collator("en", { numeric: true });

function ranksOf(keys: (number | string | null)[]): Int32Array {
  const distinct = [...new Set(keys)].filter((key) => key !== null);
  distinct.sort((a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b)),
  );
  const places = new Map<number | string | null, number>(distinct.map((key, place) => [key, place]));
  return Int32Array.from(keys, (key) => places.get(key) ?? keys.length);
}

/** All that a search looks at: the id and the name. */
function haystackOf(findings: Findings, position: number): string {
  return fold(`${findings.id(position)} ${findings.name(position)}`);
}

/** Text without case and compatibility forms, for searching. */
export function fold(text: string): string {
  return text.normalize("NFKC").toLowerCase();
}
