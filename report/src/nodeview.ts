/** One node in full: what each model says of it, its neighbourhood, margins and witness. */

import { changes, counted, many, one } from "./attack";
import { atLeast, inShort } from "./bounds";
import { modelLetter, verdictTag } from "./charts";
import { classMargins } from "./classes";
import { isWrong } from "./columns";
import { byId, h, named, type Child } from "./dom";
import type { Bound, Certificates } from "./data";
import type { Evidence, Findings, ModelFindings, Radius } from "./findings";
import { neighbourhood } from "./neighbourhood";
import { Surroundings } from "./surroundings";
import type { NodeTable } from "./table";
import { witness } from "./witness";
import { capital, count, margin, percent, plural, type Verdict } from "./words";

const FRAGMENT = /^#node-(\d+)$/;

export class NodeView {
  private readonly dialog = byId<HTMLDialogElement>("node");
  private readonly content = h("div", { class: "content" });
  private readonly place = h("span", { class: "place" });
  private readonly previous = this.stepButton("← Previous", -1);
  private readonly next = this.stepButton("Next →", 1);
  private shown: number | null = null;
  private table: NodeTable | null = null;

  constructor(private readonly findings: Findings) {
    const close = h("button", { type: "button", class: "close", onclick: () => this.dialog.close() }, "Close");
    this.dialog.append(
      h("nav", { "aria-label": "Nodes in the order of the table" }, this.previous, this.next, this.place, close),
      this.content,
    );
    this.dialog.addEventListener("close", () => this.closed());
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    addEventListener("hashchange", () => this.follow());
    addEventListener("popstate", () => this.follow());
  }

  /** Takes its order from this table, and shows what the address names. */
  attach(table: NodeTable): void {
    this.table = table;
    this.follow();
  }

  open(position: number): void {
    location.hash = `#node-${this.findings.id(position)}`;
  }

  /** Shows what the address names: a node, or the report. */
  private follow(): void {
    const id = FRAGMENT.exec(location.hash)?.[1];
    const position = id === undefined ? null : this.findings.subject(Number(id));
    if (position === null) {
      this.shown = null;
      if (this.dialog.open) this.dialog.close();
    } else if (position !== this.shown) this.show(position, true);
  }

  private show(position: number, focus: boolean): void {
    this.shown = position;
    this.content.replaceChildren(...nodePage(this.findings, position));
    if (!this.dialog.open) this.dialog.showModal();
    this.content.scrollTop = 0;
    this.table?.activate(position);
    this.place.textContent = this.table?.place(position) ?? "";
    this.previous.setAttribute("aria-disabled", String(this.table?.beside(position, -1) === null));
    this.next.setAttribute("aria-disabled", String(this.table?.beside(position, 1) === null));
    if (focus) byId("node-title").focus({ preventScroll: true });
  }

  private stepButton(text: string, step: number): HTMLElement {
    return h("button", { type: "button", onclick: () => this.step(step) }, text);
  }

  /** Goes on in the order of the table; the browser's back button leaves the node view at once. */
  private step(step: number): void {
    const position = this.shown === null ? null : (this.table?.beside(this.shown, step) ?? null);
    if (position === null) return;
    history.replaceState(null, "", `#node-${this.findings.id(position)}`);
    this.show(position, false);
  }

  private closed(): void {
    this.content.replaceChildren();
    if (this.shown !== null) history.pushState(null, "", "#nodes");
    this.shown = null;
  }
}

function nodePage(findings: Findings, position: number): HTMLElement[] {
  const single = findings.models.length === 1;
  return [
    h("h2", { id: "node-title", tabindex: -1, dir: "auto" }, named(findings.name(position))),
    h("p", { class: "facts" }, facts(findings, position)),
    h(
      "div",
      { class: single ? "columns single" : "columns" },
      findings.models.map((model) => modelView(findings, model, position, single)),
    ),
  ];
}

function facts(findings: Findings, position: number): Child[] {
  const label = findings.label(position);
  const part = findings.wasLabelled(position);
  return [
    `node ${findings.id(position)} · `,
    label === null ? "no label" : ["label ", named(findings.className(label))],
    part !== null && (part ? " · labelled in training" : " · unlabelled in training"),
    ` · ${plural(findings.degree(position), "neighbour")}`,
  ];
}

function modelView(findings: Findings, model: ModelFindings, position: number, single: boolean): HTMLElement {
  const evidence = model.evidence(position);
  const surroundings = new Surroundings(findings, position, Math.min(3, model.model.layers), evidence?.deletions);
  return h(
    "article",
    { class: "model-view" },
    !single && h("h3", { class: "model-name" }, modelLetter(model), named(model.model.name)),
    h("div", { class: "outcome" }, verdictView(findings, model, position)),
    h("div", { class: "drawing" }, h("h4", {}, "Neighbourhood"), neighbourhood(findings, model, position, evidence)),
    evidence && h("div", {}, witnessView(findings, model, position, surroundings, evidence)),
    marginsView(findings, model, position),
  );
}

function verdictView(findings: Findings, model: ModelFindings, position: number): Child[] {
  const verdict = model.verdict(position);
  const [predicted, purity] = [model.predicted(position), model.purity(position)];
  const radius = model.radius(position);
  const wrong = isWrong(findings, model, position);
  return [
    h(
      "p",
      { class: "prediction" },
      "predicted ",
      predicted === null ? "–" : h("strong", {}, named(findings.className(predicted))),
      wrong !== null && h("span", { class: wrong ? "wrong" : "right" }, wrong ? "wrong" : "right"),
    ),
    verdict
      ? h("p", { class: "sentence" }, verdictTag(verdict), " ", verdictInWords(findings, model, position))
      : h("p", { class: "sentence" }, "No certificate of this node in the report."),
    radius && h("p", { class: "sentence" }, h("strong", {}, "Radius. "), radiusInWords(radius, model)),
    togetherInWords(model, position),
    purity !== null &&
      h(
        "p",
        { class: "quiet" },
        `${percent(purity)} of the two-hop neighbourhood is predicted to be of the same class.`,
      ),
  ];
}

/** Under which budgets for all predictions an attack changes this one, too. */
function togetherInWords(model: ModelFindings, position: number): Child {
  const budgets = model.budgetsOfAttacks(position);
  if (budgets.length === 0) return null;
  const list = new Intl.ListFormat("en-GB").format(budgets.map(count));
  return h(
    "p",
    { class: "sentence" },
    h("strong", {}, "Together. "),
    `It changes under the ${budgets.length === 1 ? "attack" : "attacks"} on `,
    h("a", { href: "#together" }, "all predictions together"),
    ` with Q = ${list}.`,
  );
}

function verdictInWords(findings: Findings, model: ModelFindings, position: number): Child[] {
  const { certificates } = model;
  if (!certificates) return [];
  const allowed = `Allowed: ${certificates.budget.in_words}.`;
  const evidence = model.evidence(position);
  switch (model.verdict(position)) {
    case "robust":
      return [
        `Proven: no admissible set of ${many(model.attack)} changes the class. `,
        leastMargin(model.margin(position)),
        ` ${allowed}`,
      ];
    case "nonrobust":
      if (evidence?.size === 0) return withoutChange(findings, model, position, evidence);
      return [`${changesInWords(evidence)}. ${allowed}`];
    default:
      return [
        "Its certificate neither proves nor refutes it. ",
        undecidedBounds(model.bounds(position)),
        settledByRadius(model.radius(position), certificates.budget.global),
        ` ${allowed}`,
      ];
  }
}

function withoutChange(
  findings: Findings,
  model: ModelFindings,
  position: number,
  { margin: value }: Evidence,
): Child[] {
  const certified = model.certified(position);
  const name = certified === null ? "the class" : named(findings.className(certified));
  const start = `Without any ${one(model.attack)}, `;
  if (value === 0) return [start, "another class is already level with ", name, "."];
  if (value !== null && value > 0) return [start, "another class is already closer to ", name, " than was asked for."];
  return [start, "the model already prefers another class to ", name, "."];
}

function changesInWords(evidence: Evidence | null): string {
  const size = evidence?.size ?? 0;
  const value = evidence?.margin ?? -1;
  const change =
    value > 0
      ? "bring another class too close"
      : value === 0
        ? "bring another class level with it"
        : "change the class";
  return `${capital(sizeInWords(evidence))} ${size === 1 ? change.replace(/^\w+/, "$&s") : change}`;
}

function sizeInWords(evidence: Evidence | null): string {
  return changes(evidence?.flips.length ?? 0, evidence?.deletions.length ?? 0);
}

/** What the radius says of a node that its certificate leaves open. */
function settledByRadius(radius: Radius | null, global: number): string {
  if (radius?.from != null && radius.from >= global) return " Its radius settles it: robust.";
  return radius?.upTo != null && radius.upTo < global ? " Its radius settles it: nonrobust." : "";
}

function leastMargin(bound: Bound | null): string {
  if (typeof bound === "number") return `Every margin stays at least ${atLeast(bound)}.`;
  return bound === "positive" ? "Every margin stays positive; by how much is not known." : "";
}

function undecidedBounds(bounds: Certificates["bounds"][number]): string {
  if (!bounds || bounds[0] === "unknown") return "Numbers overflowed, and nothing is known.";
  const [lower, upper] = [inShort(bounds[0]), bounds[1]];
  return upper === null
    ? `The smallest margin is at least ${lower}.`
    : `The smallest margin lies between ${lower} and ${margin(upper)}.`;
}

function radiusInWords({ from, upTo, any }: Radius, { attack, radii }: ModelFindings): string {
  const what = counted(attack);
  const most = radii?.budget.global ?? 0;
  if (any) return `Withstands any ${what}s: all that the prediction may notice were tried.`;
  if (from === null)
    return upTo === null
      ? `Nothing is proven, not even without ${what}s.`
      : upTo < 0
        ? `None: the class does not hold even without ${what}s.`
        : `At most ${upTo}: ${plural(upTo + 1, what)} can change the class.`;
  if (from === 0 && upTo === 0) return `0: a single ${what} can change the class.`;
  const holds =
    [`Holds without ${what}s`, `Withstands any single ${what}`][from] ?? `Withstands any ${plural(from, what)}`;
  if (upTo === null)
    return from >= most ? `${holds}, the most that was tried.` : `${holds}; beyond that nothing is known.`;
  if (upTo === from) return `${holds}; ${count(from + 1)} can change the class.`;
  return `${holds}; ${plural(upTo + 1, what)} can change the class; what lies between is undecided.`;
}

function witnessView(
  findings: Findings,
  model: ModelFindings,
  position: number,
  surroundings: Surroundings,
  evidence: Evidence,
): Child[] {
  const smaller = evidence.source === "certificate" ? model.radiusEvidence(position) : null;
  const show = (title: string, shown: Evidence) => [
    h("h4", {}, title),
    witness(findings, model.attack, surroundings, shown),
  ];
  return [
    ...show(witnessTitle(model.verdict(position), evidence), evidence),
    ...(smaller && smaller.size < evidence.size ? show(`Fewer do: ${sizeInWords(smaller)}`, smaller) : []),
  ];
}

function witnessTitle(verdict: Verdict | null, evidence: Evidence): string {
  if (evidence.source === "certificate") return "Witness";
  const size = sizeInWords(evidence);
  return verdict === "robust" ? `Beyond the budget: a witness of ${size}` : `Witness of ${size}`;
}

function marginsView(findings: Findings, model: ModelFindings, position: number): Child {
  const margins = classMargins(findings, model, position);
  const certified = model.certified(position);
  return (
    margins &&
    h(
      "div",
      { class: "class-margins" },
      h("h4", {}, "Margins of ", named(certified === null ? "the class" : findings.className(certified))),
      margins,
    )
  );
}
