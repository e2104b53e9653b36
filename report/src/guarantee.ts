/** What the verdicts state and what they do not, with the numbers of this report. */

import { anyOf, counted, setsOf, type Attack } from "./attack";
import type { Certificates, Collectives, Radii } from "./data";
import { modelLetter, verdictTag } from "./charts";
import { h, named, type Child } from "./dom";
import type { Findings, ModelFindings } from "./findings";
import { plural } from "./words";

export function guarantee(findings: Findings): HTMLElement {
  return h(
    "section",
    { "aria-labelledby": "guarantee", class: "guarantee" },
    h("h2", { id: "guarantee" }, "What is guaranteed"),
    verdictMeanings(findings),
    h("h3", {}, "For which attacks, and by what"),
    findings.models.map((model) => terms(model, findings.models.length > 1)),
    h("p", { class: "checked" }, checkedInWords(findings)),
    h("h3", {}, "What it does not mean"),
    limits(findings),
    provenance(findings),
  );
}

/** Whether someone else has looked at the verdicts. */
function checkedInWords({ models, report: { checked, not_checked } }: Findings): string {
  if (!checked)
    return "Not checked again. nodeproof check does that, with a program that has none of the engines' code.";
  const what = [
    models.some(({ ofNodes }) => ofNodes) && "every robust and nonrobust verdict",
    models.some(({ collectives }) => collectives) && "every bound and attack on all predictions together",
  ].filter(Boolean);
  const all = `Checked: a program with none of the engines' code has accepted ${what.join(" and ")}`;
  if (not_checked === 0) return `${all}.`;
  const several = not_checked === 1 ? "one result, which has" : `${plural(not_checked, "result")}, which have`;
  return `${all} but ${several} too many sets of deletions to go through. Of these it has found nothing that is wrong.`;
}

function verdictMeanings(findings: Findings): HTMLElement {
  const ofNodes = findings.models.some(({ ofNodes }) => ofNodes);
  const values = findings.report.graph.kind === ", real values";
  const attacks = findings.attacks();
  return h(
    "dl",
    { class: "meanings" },
    ofNodes && [
      h("dt", {}, verdictTag("robust")),
      h(
        "dd",
        {},
        `Proven: no admissible set of ${admissible(findings)}, anywhere in the graph, changes the class of this node. `,
        "It is not that no attack was found; there is none.",
      ),
      h("dt", {}, verdictTag("nonrobust")),
      h(
        "dd",
        {},
        `Shown: a witness, a set of ${setsOf(attacks)} within the budget that changes the class or brings another class level, `,
        "is in this report. Anyone can apply it and run the model. It need not be the smallest.",
      ),
      h("dt", {}, verdictTag("undecided")),
      h("dd", {}, "Neither could be shown by the engine in the time it had. The node may be either."),
    ],
    attacks.some((attack) => attack !== "deletions") && [
      h("dt", {}, h("strong", {}, "flip")),
      h(
        "dd",
        {},
        values
          ? "One attribute of one node that is set to any other value in its range; a higher or a lower one where the budget says so."
          : "One attribute of one node that is added or removed; only one of the two where the budget says so.",
      ),
    ],
    attacks.some((attack) => attack !== "flips") && [
      h("dt", {}, h("strong", {}, "deletion")),
      h(
        "dd",
        {},
        "One edge of the graph that is taken away, in both directions. Degrees, and the weights and means that follow from them, are those of ",
        "the graph without it.",
      ),
    ],
    ofNodes && [
      h("dt", {}, h("strong", {}, "radius")),
      h(
        "dd",
        {},
        `The largest number of ${anyOf(attacks)} in total under which a node is robust; with “≥” where it may be larger`,
        attacks.some((attack) => attack === "deletions")
          ? ", and “any” where every edge that may matter to the node was tried."
          : ".",
      ),
    ],
    findings.models.some(({ collectives }) => collectives) && [
      h("dt", {}, h("strong", {}, "change at most")),
      h(
        "dd",
        {},
        "Proven: whichever flips within the budget are made, anywhere in the graph, no more predictions than this change together. ",
        "It does not tell which ones. A prediction counts as changed if its class is level with another or below.",
      ),
      h("dt", {}, h("strong", {}, "attack changes")),
      h(
        "dd",
        {},
        "Shown: an attack was found that changes so many. Anyone can make its flips and run the model. ",
        "What an attacker can do at most lies between the two numbers.",
      ),
    ],
  );
}

/** The sets that robust nodes withstand: with their size, if that is the same everywhere. */
function admissible(findings: Findings): string {
  const [budgets, attacks] = [findings.certifiedBudgets(), findings.attacks()];
  const [attack, budget] = [attacks[0], budgets[0]];
  if (attacks.length === 1 && budgets.length === 1 && attack && attack !== "both")
    return `${plural(budget ?? 0, counted(attack))} or fewer`;
  return `${setsOf(attacks)} within the budget`;
}

function terms(findings: ModelFindings, several: boolean): HTMLElement {
  const { model, attack, certificates, radii, collectives } = findings;
  return h(
    "div",
    { class: "terms" },
    several && h("h4", {}, modelLetter(findings), named(model.name)),
    h(
      "ul",
      {},
      certificates && certificateTerms(certificates),
      radii && radiusTerms(attack, radii),
      collectives && collectiveTerms(collectives),
      h(
        "li",
        {},
        `Model: ${plural(model.layers, "layer")}, propagation `,
        named(model.propagation),
        `. ${whereItCounts(attack, model.layers)}`,
      ),
    ),
  );
}

/** How far from a node what is done may matter to its prediction. */
function whereItCounts(attack: Attack, layers: number): string {
  const steps = layers === 1 ? "at the node and its neighbours" : `up to ${layers} steps away`;
  const flips = `A flip counts wherever the prediction can see it: ${steps}.`;
  const deletions = `A deletion counts wherever the prediction can see an end of the edge: ${steps}.`;
  return attack === "flips" ? flips : attack === "deletions" ? deletions : `${flips} ${deletions}`;
}

function certificateTerms({ budget, target, engine }: Certificates): Child[] {
  return [
    h("li", {}, `Verdicts: ${budget.in_words}.`),
    h("li", {}, targetInWords(target), " Strongest engine that was asked for: ", h("code", {}, engine), "."),
  ];
}

function radiusTerms(attack: Attack, { budget, engine, target, scan }: Radii): Child[] {
  return [
    h(
      "li",
      {},
      `Radii: up to ${plural(budget.global, counted(attack))} were tried${budget.limits_in_words}, with the `,
      h("code", {}, engine),
      " engine. ",
      target === "label" && "They are of the label, not of the predicted class. ",
      scan && "Only robustness was asked, so no radius has an upper end.",
    ),
  ];
}

function collectiveTerms({ budget, target, answers }: Collectives): Child {
  return h(
    "li",
    {},
    `All predictions together: up to ${plural(budget.global, "flip")}${budget.limits_in_words}. `,
    `${plural(answers[0]?.predictions ?? 0, "prediction")} count. `,
    target === "label" && "A prediction that is not the label counts as changed from the start. ",
    "The number rests on how many flips each prediction withstands on its own.",
  );
}

function targetInWords(target: Certificates["target"]): string {
  return target === "label"
    ? "The certified class is the label: robust means right under every admissible set, and a misclassified node is nonrobust as it is."
    : "The certified class is the one that the model predicts, right or wrong.";
}

function limits(findings: Findings): HTMLElement {
  const byLabel = findings.models.every(({ certificates }) => certificates?.target === "label");
  const { binarised } = findings.report.graph;
  const ofNodes = findings.models.some(({ ofNodes }) => ofNodes);
  return h(
    "ul",
    {},
    binarised > 0 &&
      h(
        "li",
        {},
        h("strong", {}, "Nothing about the attributes as they were. "),
        `${plural(binarised, "value")} of them ${binarised === 1 ? "is" : "are"} neither 0 nor 1. Verdicts are about the network on `,
        "attributes that count as 1 where they are above 0; on the values themselves it is another network, and may predict otherwise.",
      ),
    !byLabel &&
      h(
        "li",
        {},
        h("strong", {}, "Not that the class is right. "),
        ofNodes
          ? "A robust node may be robustly misclassified; the table can show just those."
          : "A prediction that holds may be wrong.",
      ),
    findings.attacks().map(whatStays),
    h(
      "li",
      {},
      h("strong", {}, "Nothing about training. "),
      "The model stays as it is; poisoned training data and retraining are not covered.",
    ),
    ofNodes && oneAtATime(findings),
    h(
      "li",
      {},
      h("strong", {}, "Only this graph, this model, this budget. "),
      ofNodes
        ? "Robust carries over to smaller budgets, nonrobust to larger ones, and nothing else does."
        : "What is proven carries over to smaller budgets, what an attack does to larger ones, and nothing else does.",
    ),
    arithmetic(findings),
  );
}

/** Whom each node faces, and where to read of all of them together. */
function oneAtATime(findings: Findings): HTMLElement {
  const answered = findings.models.some(({ collectives }) => collectives);
  return h(
    "li",
    {},
    h("strong", {}, answered ? "Verdicts and radii are of one prediction at a time. " : "One prediction at a time. "),
    "Each node faces an attacker who spends the whole budget on it. ",
    answered
      ? ["How many predictions one attacker changes in all is ", h("a", { href: "#together" }, "another number"), "."]
      : `How many nodes one set of ${setsOf(findings.attacks())} can change is another question.`,
  );
}

/** What the attacker leaves as it is. */
function whatStays(attack: Attack): HTMLElement {
  const [short, long] = {
    flips: [
      "Nothing about edges. ",
      "The attacker changes attributes. Edges and nodes that are added or removed are not covered.",
    ],
    deletions: [
      "Nothing about attributes, or about new edges. ",
      "The attacker deletes edges. Attributes that are changed, edges that are added, and nodes that are added or removed are not covered.",
    ],
    both: [
      "Nothing about new edges. ",
      "The attacker changes attributes and deletes edges. Edges that are added, and nodes that are added or removed, are not covered.",
    ],
  }[attack];
  return h("li", {}, h("strong", {}, short), long);
}

/** Which rounding is covered. */
function arithmetic({ models }: Findings): HTMLElement {
  const files = models.flatMap(({ certificates, radii }) => [certificates, radii]);
  const names = [...new Set(files.flatMap((file) => file?.arithmetic ?? []))];
  const rounded = names.filter((name) => name !== "exact");
  if (rounded.length > 0 && rounded.length === names.length)
    return h(
      "li",
      {},
      h("strong", {}, "Only this arithmetic. "),
      `Robust holds however the model is evaluated in ${rounded.join(" and ")}, in whatever order it adds up. In a coarser one it may not.`,
    );
  return h(
    "li",
    {},
    h("strong", {}, "Exact arithmetic. "),
    "The rounding of the proof is accounted for. A framework that computes in 32 bits rounds on its own, and may decide margins below about 0.0001 differently.",
  );
}

function provenance(findings: Findings): HTMLElement {
  const { graph, nodeproof } = findings.report;
  return h(
    "details",
    { class: "provenance", open: true },
    h("summary", {}, "Fingerprints"),
    h(
      "dl",
      {},
      h("dt", {}, "graph: ", named(graph.name)),
      h("dd", {}, h("code", {}, graph.fingerprint)),
      findings.models.map(({ model }) => [
        h("dt", {}, "model: ", named(model.name)),
        h("dd", {}, h("code", {}, model.fingerprint)),
      ]),
      h("dt", {}, "nodeproof"),
      h("dd", {}, "version ", named(nodeproof)),
    ),
  );
}
