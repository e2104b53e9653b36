/** The top of the page: what this is, and the figures of each model. */

import * as Plot from "@observablehq/plot";
import { anyOf, counted } from "./attack";
import { figure, modelLabel, modelLetter, plot, VERDICT_COLOUR, verdictLegend } from "./charts";
import { h, named, type Child } from "./dom";
import type { Findings, ModelFindings } from "./findings";
import { capital, count, decimal, percent, plural, VERDICTS } from "./words";

export function header(findings: Findings): HTMLElement[] {
  const { title, graph } = findings.report;
  return [
    h("p", { class: "kicker" }, "nodeproof report"),
    h("h1", { dir: "auto" }, named(title)),
    h(
      "p",
      { class: "lead" },
      question(findings),
      named(graph.name),
      ` (${plural(graph.nodes, "node")}, ${plural(graph.edges, "edge")}, ${plural(graph.attributes, "attribute")}${graph.kind}).`,
    ),
  ];
}

/** What the report answers, and for how many nodes. */
function question(findings: Findings): string {
  if (findings.subjects === 0)
    return `How many predictions of a graph convolutional network one attacker can change when ${threats(findings)}: on `;
  return (
    `Which predictions of a graph convolutional network are proven to hold when ${threats(findings)}, and which are not: ` +
    `${plural(findings.subjects, "node")} of `
  );
}

/** What attackers do to the graph. */
function threats(findings: Findings): string {
  const attacks = findings.attacks();
  const words = [
    attacks.some((attack) => attack !== "deletions") && "node attributes are tampered with",
    attacks.some((attack) => attack !== "flips") && "edges are deleted",
  ];
  return words.filter(Boolean).join(attacks.every((attack) => attack === "both") ? " and " : " or ");
}

export function overview(findings: Findings): HTMLElement {
  const several = findings.models.length > 1;
  return h(
    "section",
    { "aria-labelledby": "overview" },
    h("h2", { id: "overview" }, several ? "The models side by side" : "At a glance"),
    h(
      "div",
      { class: "cards" },
      findings.models.map((model) => modelCard(findings, model, several)),
    ),
    verdictBars(findings),
  );
}

function modelCard(findings: Findings, model: ModelFindings, several: boolean): HTMLElement {
  return h(
    "article",
    { class: "card" },
    h("h3", {}, several && modelLetter(model), named(model.model.name)),
    h("p", { class: "quiet" }, budgetLine(model)),
    h(
      "dl",
      { class: "figures" },
      verdictFigures(model),
      model.ofNodes && [accuracyFigure(findings, model), radiusFigure(model)],
      togetherFigure(model),
    ),
  );
}

function budgetLine({ attack, certificates, radii, collectives }: ModelFindings): string {
  if (certificates) return capital(`${certificates.budget.in_words}.`);
  if (!radii && collectives)
    return `No certificates of single nodes in this report. ${capital(collectives.budget.in_words)}.`;
  return `No certificates in this report, only radii, up to ${plural(radii?.budget.global ?? 0, counted(attack))}.`;
}

function verdictFigures(model: ModelFindings): Child {
  const counts = model.verdictCounts();
  if (!counts) return null;
  const all = counts.robust + counts.nonrobust + counts.undecided;
  return VERDICTS.map((verdict) =>
    numeral(verdict, percent(counts[verdict] / all), plural(counts[verdict], "node"), verdict),
  );
}

function accuracyFigure(findings: Findings, model: ModelFindings): Child {
  const accuracy = findings.accuracy(model);
  if (!accuracy) {
    const labelled = findings.positions().some((position) => findings.label(position) !== null);
    return numeral("accuracy", "–", labelled ? "no predictions to compare with" : "no labels to compare with");
  }
  const of = accuracy.unlabelled ? plural(accuracy.of, "unlabelled node") : plural(accuracy.of, "node");
  return numeral("accuracy", percent(accuracy.share), `of ${of}: predicted = label`);
}

function radiusFigure(model: ModelFindings): Child {
  const radius = model.meanRadius();
  if (radius === null || !model.radii) return numeral("mean radius", "–", "not in this report");
  const { exact, nonrobust_from } = model.radii;
  const open = nonrobust_from.filter((end, row) => end === null || !exact[row]).length;
  const what = anyOf([model.attack]);
  const note =
    open > 0 ? `${what} at least: ${plural(open, "node")} may withstand more` : `${what} that a node withstands`;
  return numeral("mean radius", open > 0 ? `≥ ${decimal(Math.floor(radius * 10) / 10)}` : decimal(radius), note);
}

/** How many predictions change at most under the largest budget for all of them. */
function togetherFigure({ collectives }: ModelFindings): Child {
  const answer = collectives?.answers.at(-1);
  if (!answer) return null;
  const { global, at_most, at_least, predictions } = answer;
  const of = `${at_most === at_least ? "" : "at most "}${count(at_most)} of ${plural(predictions, "prediction")}`;
  return numeral(
    "all together",
    `${at_most === at_least ? "" : "≤ "}${percent(at_most / predictions)}`,
    `${of} change under ${plural(global, "flip")} in all`,
  );
}

function numeral(name: string, value: string, note: string, kind = ""): HTMLElement {
  return h("div", { class: kind }, h("dt", {}, name), h("dd", {}, h("strong", {}, value), h("small", {}, note)));
}

interface Segment {
  model: string;
  verdict: string;
  share: number;
  nodes: number;
}

/** A stacked bar of verdicts for each model. */
function verdictBars(findings: Findings): Child {
  const several = findings.models.length > 1;
  const segments = findings.models.flatMap(segmentsOf);
  if (segments.length === 0) return null;
  const models = [...new Set(segments.map(({ model }) => model))];
  const label = (key: string, length?: number) => {
    const model = findings.models[Number(key)];
    return model ? modelLabel(model, several, length) : "";
  };
  const draw = (width: number) => {
    const marginLeft = several ? Math.min(190, width / 3) : 16;
    const options = { y: "model", x: "share", order: [...VERDICTS] as string[], z: "verdict" };
    const wide = segments.map((segment) =>
      segment.share * width > 150 ? `${segment.verdict} ${percent(segment.share)}` : "",
    );
    return plot({
      width,
      height: 46 + 38 * models.length,
      marginTop: 4,
      marginBottom: 36,
      marginLeft,
      x: {
        label: "share of certified nodes",
        labelAnchor: "center",
        labelArrow: "none",
        percent: true,
        domain: [0, 100],
        ticks: 5,
        tickFormat: (x: number) => `${x}%`,
      },
      y: {
        domain: models,
        label: null,
        axis: several ? "left" : null,
        tickSize: 0,
        tickFormat: (key: string) => label(key, Math.floor(marginLeft / 8) - 2),
      },
      marks: [
        Plot.barX(
          segments,
          Plot.stackX({
            ...options,
            fill: ({ verdict }: Segment) => VERDICT_COLOUR[verdict as keyof typeof VERDICT_COLOUR],
            insetLeft: 0.5,
            insetRight: 0.5,
            insetTop: 3,
            insetBottom: 3,
          }),
        ),
        Plot.text(
          segments,
          Plot.stackX({
            ...options,
            text: (_: Segment, index: number) => wide[index],
            fill: "var(--surface)",
            fontWeight: 600,
          }),
        ),
      ],
    });
  };
  const numbers = {
    columns: ["model", "verdict", "nodes", "share"],
    rows: segments.map(({ model, verdict, nodes, share }) => [label(model), verdict, count(nodes), percent(share)]),
  };
  return figure([verdictLegend()], draw, numbers, "Share of nodes with each verdict, per model");
}

function segmentsOf(model: ModelFindings): Segment[] {
  const counts = model.verdictCounts();
  if (!counts) return [];
  const all = counts.robust + counts.nonrobust + counts.undecided;
  return VERDICTS.map((verdict) => ({
    model: String(model.number),
    verdict,
    nodes: counts[verdict],
    share: counts[verdict] / all,
  }));
}
