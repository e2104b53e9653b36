/** The data of the report, made ready to be asked: everything by position, whatever order the columns came in. */

import { ascending, mean } from "d3-array";
import type { Attack } from "./attack";
import { smallest } from "./bounds";
import type { Bound, Certificates, Collectives, Deletion, Flip, Model, Radii, Report } from "./data";
import { isBlank, VERDICTS, type Verdict } from "./words";

export type { Deletion, Flip };

/** How many flips, or deletions of edges, a prediction withstands: at least `from`; exactly that many where `upTo` is the same. */
export interface Radius {
  /** Proven robust up to this many; null: not even without any. */
  from: number | null;
  /** Not proven nonrobust up to this many; null: no witness is known at all. */
  upTo: number | null;
  /** Whether it is robust under any number, as all that matter to it were tried. */
  any: boolean;
}

/** A witness. */
export interface Evidence {
  flips: Flip[];
  deletions: Deletion[];
  /** How many changes it takes: flips, and deletions. */
  size: number;
  overtakes: number | null;
  margin: number | null;
  /** Where the witness is from: the certificate, or the radius (then of the smallest size that is known). */
  source: "certificate" | "radius";
}

export class ModelFindings {
  readonly letter: string;
  readonly certificates: Certificates | null;
  readonly radii: Radii | null;
  readonly collectives: Collectives | null;
  /** What the attacker does. */
  readonly attack: Attack;
  private readonly certificateRow: Int32Array;
  private readonly radiusRow: Int32Array;

  constructor(
    readonly model: Model,
    readonly number: number,
    size: number,
  ) {
    this.letter = String.fromCharCode(65 + (number % 26));
    this.certificates = model.certificates;
    this.radii = model.radii;
    this.collectives = model.collectives;
    this.attack = (model.certificates ?? model.radii)?.budget.attack ?? "flips";
    this.certificateRow = rowsByPosition(model.certificates?.position ?? [], size);
    this.radiusRow = rowsByPosition(model.radii?.position ?? [], size);
  }

  verdict(position: number): Verdict | null {
    const verdict = this.certificates?.verdict[this.row(position)];
    return verdict === undefined ? null : VERDICTS[verdict];
  }

  /** The class that the model gives the node; null where the report does not say. */
  predicted(position: number): number | null {
    const predicted = this.certificates?.predicted[this.row(position)];
    if (predicted !== undefined) return predicted;
    return this.radii?.target === "label" ? null : (this.radii?.class[this.radiusRow[position] ?? -1] ?? null);
  }

  /** The class whose margins are certified. */
  certified(position: number): number | null {
    return this.certificates?.class[this.row(position)] ?? this.radii?.class[this.radiusRow[position] ?? -1] ?? null;
  }

  /** Lower bounds on the margin to each class. */
  margins(position: number): Certificates["margins"][number] | null {
    return this.certificates?.margins[this.row(position)] ?? null;
  }

  /** The smallest lower bound; null for a node without a certificate. */
  margin(position: number): Bound | null {
    return smallest(this.margins(position) ?? []);
  }

  /** Between what the smallest margin of an undecided node lies. */
  bounds(position: number): Certificates["bounds"][number] {
    return this.certificates?.bounds[this.row(position)] ?? null;
  }

  radius(position: number): Radius | null {
    const row = this.radiusRow[position] ?? -1;
    if (!this.radii || row < 0) return null;
    const end = this.radii.nonrobust_from[row] ?? null;
    const [from, upTo] = [this.radii.robust_up_to[row] ?? null, end === null ? null : end - 1];
    return { from, upTo, any: this.radii.withstands_any?.[row] ?? false };
  }

  purity(position: number): number | null {
    return this.model.purity[position] ?? null;
  }

  /** What changes the class: the witness of the certificate, or that of the radius where it is smaller, or all there is. */
  evidence(position: number): Evidence | null {
    const [certified, fewest] = [this.certificateEvidence(position), this.radiusEvidence(position)];
    if (!certified) return fewest;
    return fewest && fewest.size < certified.size ? fewest : certified;
  }

  private certificateEvidence(position: number): Evidence | null {
    return evidenceOf(this.certificates, this.row(position), "certificate");
  }

  /** The witness one flip, or one deletion, beyond the radius. */
  radiusEvidence(position: number): Evidence | null {
    return evidenceOf(this.radii, this.radiusRow[position] ?? -1, "radius");
  }

  /** The budgets under which the attack on all predictions changes this one. */
  budgetsOfAttacks(position: number): number[] {
    const answers = this.collectives?.answers ?? [];
    return answers.filter(({ changed }) => changed?.includes(position)).map(({ global }) => global);
  }

  /** Whether anything is said of single nodes. */
  get ofNodes(): boolean {
    return this.certificates !== null || this.radii !== null;
  }

  /** How many nodes have each verdict. */
  verdictCounts(): Record<Verdict, number> | null {
    if (!this.certificates) return null;
    const counts = { robust: 0, nonrobust: 0, undecided: 0 };
    for (const verdict of this.certificates.verdict) counts[VERDICTS[verdict]]++;
    return counts;
  }

  /** Mean of the proven radii, 0 for a node that is not robust without flips; null where no radii are known. */
  meanRadius(): number | null {
    return (this.radii && mean(this.radii.robust_up_to, (radius) => radius ?? 0)) ?? null;
  }

  private row(position: number): number {
    return this.certificateRow[position] ?? -1;
  }
}

/** The witness in a row of these results, if there is one. */
function evidenceOf(results: Certificates | Radii | null, row: number, source: Evidence["source"]): Evidence | null {
  const flips = results?.witness[row];
  if (!results || !flips) return null;
  const deletions = results.witness_edges?.[row] ?? [];
  return {
    flips,
    deletions,
    size: flips.length + deletions.length,
    overtakes: results.witness_class[row] ?? null,
    margin: results.witness_margin[row] ?? null,
    source,
  };
}

/** The row of each position in a column of positions, −1 where there is none. */
function rowsByPosition(positions: number[], size: number): Int32Array {
  const rows = new Int32Array(size).fill(-1);
  positions.forEach((position, row) => (rows[position] = row));
  return rows;
}

export interface Accuracy {
  share: number;
  of: number;
  /** Whether only nodes count that were not labelled in training. */
  unlabelled: boolean;
}

export class Findings {
  readonly models: ModelFindings[];
  readonly subjects: number;
  private readonly positionById = new Map<number, number>();
  private readonly attributeNames: Map<string, string>;

  constructor(readonly report: Report) {
    const { nodes } = report;
    this.subjects = nodes.subjects;
    this.models = report.models.map((model, number) => new ModelFindings(model, number, nodes.id.length));
    nodes.id.forEach((id, position) => this.positionById.set(id, position));
    this.attributeNames = new Map(Object.entries(report.attributes));
  }

  /** What the attackers of the models do, each kind once. */
  attacks(models: readonly ModelFindings[] = this.models): Attack[] {
    return [...new Set(models.map(({ attack }) => attack))];
  }

  /** Position of the node with this id, where the report has something to say about it. */
  subject(id: number): number | null {
    const position = this.positionById.get(id);
    return position !== undefined && this.isSubject(position) ? position : null;
  }

  isSubject(position: number): boolean {
    return position < this.subjects;
  }

  id(position: number): number {
    return this.report.nodes.id[position] ?? -1;
  }

  name(position: number): string {
    const name = this.report.nodes.name[position] ?? "";
    return isBlank(name) ? `node ${this.id(position)}` : name;
  }

  /** The name with the id behind it, or just “node 17” where that is the name. */
  fullName(position: number): string {
    const [name, plain] = [this.name(position), `node ${this.id(position)}`];
    return name === plain ? name : `${name} (${plain})`;
  }

  label(position: number): number | null {
    return this.report.nodes.label[position] ?? null;
  }

  wasLabelled(position: number): boolean | null {
    const part = this.report.nodes.part?.[position];
    return part === undefined ? null : part === 1;
  }

  degree(position: number): number {
    return this.report.nodes.degree[position] ?? 0;
  }

  neighbours(position: number): number[] {
    return this.report.nodes.neighbours[position] ?? [];
  }

  className(number: number): string {
    const name = this.report.graph.classes[number] ?? "";
    return isBlank(name) ? `class ${number}` : name;
  }

  attributeName(attribute: number): string {
    const name = this.attributeNames.get(String(attribute)) ?? "";
    return isBlank(name) ? `attribute ${attribute}` : name;
  }

  /** Share of nodes whose predicted class is their label: of unlabelled nodes where the split is known. */
  accuracy(model: ModelFindings): Accuracy | null {
    const known = this.positions().filter(
      (position) => this.label(position) !== null && model.predicted(position) !== null,
    );
    const unlabelled = known.filter((position) => this.wasLabelled(position) === false);
    const judged = unlabelled.length > 0 ? unlabelled : known;
    if (judged.length === 0) return null;
    const right = judged.filter((position) => this.label(position) === model.predicted(position)).length;
    return { share: right / judged.length, of: judged.length, unlabelled: unlabelled.length > 0 };
  }

  positions(): number[] {
    return Array.from({ length: this.subjects }, (_, position) => position);
  }

  /** The budgets of all certificates about one of these attacks, each once, the smallest first. */
  certifiedBudgets(attacks: Attack[] = this.attacks()): number[] {
    const models = this.models.filter(({ attack }) => attacks.includes(attack));
    const budgets = models.flatMap(({ certificates }) => (certificates ? [certificates.budget.global] : []));
    return [...new Set(budgets)].sort(ascending);
  }
}

/** A radius as it stands in the table: “7”, “≥ 100”, “any”, “3–5”; “none” for a node that is not robust without flips. */
export function radiusInShort({ from, upTo, any }: Radius): string {
  if (any) return "any";
  if (from === null) return upTo === null ? "?" : upTo < 0 ? "none" : `≤ ${upTo}`;
  if (upTo === null) return `≥ ${from}`;
  return upTo === from ? `${from}` : `${from}–${upTo}`;
}
