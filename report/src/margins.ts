/** How the smallest lower bounds of the margins are distributed. */

import * as Plot from "@observablehq/plot";
import { bin, max, min, quantile, range, sum, tickStep } from "d3-array";
import { setsOf } from "./attack";
import { figure, modelLetter, plot, VERDICT_COLOUR, verdictLegend } from "./charts";
import { h, named, type Child } from "./dom";
import type { Findings, ModelFindings } from "./findings";
import { count, plural, VERDICTS, type Verdict } from "./words";

interface Bar {
  from: number;
  to: number;
  verdict: Verdict;
  nodes: number;
}

/** Margins that can be drawn, and how many cannot. */
interface Margins {
  model: ModelFindings;
  byVerdict: Record<Verdict, number[]>;
  positive: number;
  unknown: number;
}

export function marginSection(findings: Findings): HTMLElement | null {
  const certified = findings.models.filter(({ certificates }) => certificates);
  if (certified.length === 0) return null;
  const all = certified.map((model) => marginsOf(findings, model));
  const thresholds = commonThresholds(
    all.flatMap(({ byVerdict }) => VERDICTS.flatMap((verdict) => byVerdict[verdict])),
  );
  const bars = all.map((margins) => barsOf(margins, thresholds));
  const highest = max(bars, heightOf) ?? 1;
  return h(
    "section",
    { "aria-labelledby": "margins" },
    h("h2", { id: "margins" }, "By how much predictions hold"),
    h(
      "p",
      {},
      "The margin to another class is the logit of the certified class minus the logit of that other one. Shown is, for each node, ",
      `the smallest lower bound over all classes and all admissible sets of ${setsOf(findings.attacks(certified))}: right of zero the class is proven to hold.`,
    ),
    all.map((margins, number) =>
      marginFigure(margins, bars[number] ?? [], thresholds, highest, findings.models.length > 1),
    ),
  );
}

function marginsOf(findings: Findings, model: ModelFindings): Margins {
  const margins: Margins = { model, byVerdict: { robust: [], nonrobust: [], undecided: [] }, positive: 0, unknown: 0 };
  for (const position of findings.positions()) {
    const verdict = model.verdict(position);
    if (!verdict) continue;
    const margin = model.margin(position);
    if (typeof margin === "number") margins.byVerdict[verdict].push(margin);
    else if (margin === "positive") margins.positive++;
    else margins.unknown++;
  }
  return margins;
}

/** Edges of bins that all models share. Zero is one of them; the outermost half per cent goes into the end bins. */
function commonThresholds(values: number[]): number[] {
  const [low, high] = [quantile(values, 0.005) ?? 0, quantile(values, 0.995) ?? 0];
  const step = tickStep(Math.min(low, 0), Math.max(high, 0), 40) || 0.1;
  const start = Math.floor(Math.min(low, 0) / step);
  const stop = Math.max(Math.ceil(high / step), start + 1, 1);
  return range(start, stop + 1).map((edge) => edge * step);
}

function barsOf({ byVerdict }: Margins, thresholds: number[]): Bar[] {
  const [low, high] = [min(thresholds) ?? 0, max(thresholds) ?? 1];
  const bins = bin<number, number>().domain([low, high]).thresholds(thresholds.slice(1, -1));
  return VERDICTS.flatMap((verdict) =>
    bins(byVerdict[verdict].map((margin) => Math.min(Math.max(margin, low), high)))
      .filter(({ length }) => length > 0)
      .map(({ x0 = low, x1 = high, length }) => ({ from: x0, to: x1, verdict, nodes: length })),
  );
}

function heightOf(bars: Bar[]): number {
  const heights = new Map<number, number>();
  for (const { from, nodes } of bars) heights.set(from, (heights.get(from) ?? 0) + nodes);
  return Math.max(1, ...heights.values());
}

function marginFigure(
  margins: Margins,
  bars: Bar[],
  thresholds: number[],
  highest: number,
  several: boolean,
): HTMLElement {
  const draw = (width: number) =>
    plot({
      width,
      height: several ? 200 : 260,
      marginLeft: 48,
      marginBottom: 40,
      x: {
        label: "smallest lower bound of the margin, in logits",
        labelAnchor: "center",
        labelArrow: "none",
        domain: [min(thresholds) ?? 0, max(thresholds) ?? 1],
        ticks: width / 80,
      },
      y: {
        label: "nodes",
        labelArrow: "none",
        domain: [0, highest],
        grid: true,
        ticks: 4,
        tickFormat: (nodes: number) => (Number.isInteger(nodes) ? count(nodes) : ""),
      },
      marks: [
        Plot.rectY(
          bars,
          Plot.stackY({
            x1: "from",
            x2: "to",
            y: "nodes",
            z: "verdict",
            order: [...VERDICTS],
            fill: ({ verdict }: Bar) => VERDICT_COLOUR[verdict],
            insetLeft: 0.5,
            insetRight: 0.5,
          }),
        ),
        Plot.ruleY([0]),
        Plot.ruleX([0], { stroke: "currentColor", strokeWidth: 1.5 }),
        Plot.tip(
          bars,
          Plot.pointerX(
            Plot.stackY({
              x: ({ from, to }: Bar) => (from + to) / 2,
              y: "nodes",
              z: "verdict",
              order: [...VERDICTS],
              title: barInWords,
            }),
          ),
        ),
      ],
    });
  const numbers = {
    columns: ["from", "to", "verdict", "nodes"],
    rows: bars.map(({ from, to, verdict, nodes }) => [edge(from), edge(to), verdict, count(nodes)]),
  };
  return figure(
    [
      several && h("strong", {}, modelLetter(margins.model), named(margins.model.model.name)),
      verdictLegend(),
      ...remarks(margins, thresholds),
    ],
    draw,
    numbers,
    "Histogram of smallest lower bounds of the margin, by verdict",
  );
}

function barInWords({ from, to, verdict, nodes }: Bar): string {
  return `${plural(nodes, `${verdict} node`)}\nmargin at least ${edge(from)} to ${edge(to)}`;
}

function edge(value: number): string {
  return Number(value.toPrecision(6)).toString().replace("-", "−");
}

/** What the bars leave out or squeeze together. */
function remarks({ byVerdict, positive, unknown }: Margins, thresholds: number[]): Child[] {
  const [low, high] = [min(thresholds) ?? 0, max(thresholds) ?? 0];
  const outside = sum(
    VERDICTS,
    (verdict) => byVerdict[verdict].filter((margin) => margin < low || margin > high).length,
  );
  return [
    positive > 0 &&
      `Not drawn: ${plural(positive, "robust node")} whose margin is proven positive, by how much is not known. `,
    unknown > 0 &&
      `Not drawn: ${plural(unknown, "node")} without a known margin (decided by an attack, or numbers overflowed). `,
    outside > 0 && `The bars at the ends include ${plural(outside, "node")} further out. `,
  ];
}
