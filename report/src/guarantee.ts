/** What the verdicts state and what they do not, with the numbers of this report. */

import type { Certificates, Radii } from "./data";
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
    h(
      "p",
      { class: "checked" },
      findings.report.checked
        ? "Checked: a program with none of the engines' code has accepted every robust and nonrobust verdict."
        : "Not checked again. nodeproof check does that, with a program that has none of the engines' code.",
    ),
    h("h3", {}, "What it does not mean"),
    limits(findings),
    provenance(findings),
  );
}

function verdictMeanings(findings: Findings): HTMLElement {
  const budgets = findings.certifiedBudgets();
  const values = findings.report.graph.kind === ", real values";
  const flips = budgets.length === 1 ? `${plural(budgets[0] ?? 0, "flip")} or fewer` : "flips within the budget";
  return h(
    "dl",
    { class: "meanings" },
    h("dt", {}, verdictTag("robust")),
    h(
      "dd",
      {},
      `Proven: no admissible set of ${flips}, anywhere in the graph, changes the class of this node. `,
      "It is not that no attack was found; there is none.",
    ),
    h("dt", {}, verdictTag("nonrobust")),
    h(
      "dd",
      {},
      "Shown: a witness, a set of flips within the budget that changes the class or brings another class level, is in this ",
      "report. Anyone can apply it and run the model. It need not be the smallest.",
    ),
    h("dt", {}, verdictTag("undecided")),
    h("dd", {}, "Neither could be shown by the engine in the time it had. The node may be either."),
    h("dt", {}, h("strong", {}, "flip")),
    h(
      "dd",
      {},
      values
        ? "One attribute of one node that is set to any other value in its range; a higher or a lower one where the budget says so."
        : "One attribute of one node that is added or removed; only one of the two where the budget says so.",
    ),
    h("dt", {}, h("strong", {}, "radius")),
    h("dd", {}, "The largest number of flips in total under which a node is robust; with “≥” where it may be larger."),
  );
}

function terms(findings: ModelFindings, several: boolean): HTMLElement {
  const { model, certificates, radii } = findings;
  return h(
    "div",
    { class: "terms" },
    several && h("h4", {}, modelLetter(findings), named(model.name)),
    h(
      "ul",
      {},
      certificates && certificateTerms(certificates),
      radii && radiusTerms(radii),
      h(
        "li",
        {},
        `Model: ${plural(model.layers, "layer")}, propagation `,
        named(model.propagation),
        `. A flip counts wherever the prediction can see it: ${model.layers === 1 ? "at the node and its neighbours" : `up to ${model.layers} steps away`}.`,
      ),
    ),
  );
}

function certificateTerms({ budget, target, engine }: Certificates): Child[] {
  return [
    h("li", {}, `Verdicts: ${budget.in_words}.`),
    h("li", {}, targetInWords(target), " Strongest engine that was asked for: ", h("code", {}, engine), "."),
  ];
}

function radiusTerms({ budget, engine, target, scan }: Radii): Child[] {
  return [
    h(
      "li",
      {},
      `Radii: up to ${plural(budget.global, "flip")} were tried, ${budget.local_in_words}, with the `,
      h("code", {}, engine),
      " engine. ",
      target === "label" && "They are of the label, not of the predicted class. ",
      scan && "Only robustness was asked, so no radius has an upper end.",
    ),
  ];
}

function targetInWords(target: Certificates["target"]): string {
  return target === "label"
    ? "The certified class is the label: robust means right under every admissible set, and a misclassified node is nonrobust without any flip."
    : "The certified class is the one that the model predicts, right or wrong.";
}

function limits(findings: Findings): HTMLElement {
  const byLabel = findings.models.every(({ certificates }) => certificates?.target === "label");
  const { binarised } = findings.report.graph;
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
        "A robust node may be robustly misclassified; the table can show just those.",
      ),
    h(
      "li",
      {},
      h("strong", {}, "Nothing about edges. "),
      "The attacker changes attributes. Edges and nodes that are added or removed are not covered.",
    ),
    h(
      "li",
      {},
      h("strong", {}, "Nothing about training. "),
      "The model stays as it is; poisoned training data and retraining are not covered.",
    ),
    h(
      "li",
      {},
      h("strong", {}, "One prediction at a time. "),
      "Each node faces an attacker who spends the whole budget on it. How many nodes one set of flips can change is another question.",
    ),
    h(
      "li",
      {},
      h("strong", {}, "Only this graph, this model, this budget. "),
      "Robust carries over to smaller budgets, nonrobust to larger ones, and nothing else does.",
    ),
    arithmetic(findings),
  );
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
