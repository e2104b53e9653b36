/** Radius, or where there are no radii the share of robust nodes, against degree and against purity of the neighbourhood. */

import * as Plot from "@observablehq/plot";
import { group, quantileSorted } from "d3-array";
import { anyOf } from "./attack";
import { figure, modelColour, modelKey, plot, type Numbers } from "./charts";
import { h } from "./dom";
import type { Findings, ModelFindings } from "./findings";
import { count, decimal, percent, roughCount } from "./words";

/** A way to sort nodes into groups: each with a rank for its order and a label. */
interface Grouping {
  title: string;
  axis: string;
  meaning: string;
  rank: (position: number, model: ModelFindings) => number | null;
  label: (rank: number) => string;
  /** The label where there is little room. */
  brief: (rank: number) => string;
}

/** What is measured of the nodes of a group. */
interface Measure {
  axis: string;
  value: (position: number, model: ModelFindings) => number | null;
  summary: (values: number[]) => { low: number; middle: number; high: number };
  format: (value: number) => string;
  columns: string[];
  caption: string;
}

interface Cell {
  model: ModelFindings;
  rank: number;
  nodes: number;
  low: number;
  middle: number;
  high: number;
}

const radiusMeasure: Measure = {
  axis: "radius",
  value: (position, model) => (model.radius(position) ? (model.radius(position)?.from ?? 0) : null),
  summary: (values) => {
    const sorted = Array.from(Float64Array.from(values).sort());
    return {
      low: quantileSorted(sorted, 0.25) ?? 0,
      middle: quantileSorted(sorted, 0.5) ?? 0,
      high: quantileSorted(sorted, 0.75) ?? 0,
    };
  },
  format: decimal,
  columns: ["median", "lower quartile", "upper quartile"],
  caption: "Point: median of the proven radius; bar: the middle half of the nodes.",
};

const shareMeasure: Measure = {
  axis: "share robust",
  value: (position, model) => {
    const verdict = model.verdict(position);
    return verdict && (verdict === "robust" ? 1 : 0);
  },
  summary: (values) => {
    const share = values.reduce((total, value) => total + value, 0) / values.length;
    return { low: share, middle: share, high: share };
  },
  format: percent,
  columns: ["share robust"],
  caption: "Share of nodes that are robust under the budget.",
};

const byPurity: Grouping = {
  title: "Against the purity of the neighbourhood",
  axis: "purity, %",
  meaning: "Purity: share of the two-hop neighbourhood, the node included, that the model puts into the node’s class.",
  rank: (position, model) => {
    const purity = model.purity(position);
    return purity === null ? null : Math.min(9, Math.floor(purity * 10 + 1e-9));
  },
  label: (rank) => `${rank * 10}–${rank * 10 + 10}`,
  brief: (rank) => `${rank * 10}`,
};

/** Groups that double in width: 0, 1, 2, 3–4, 5–8, 9–16, … */
function byDegree(findings: Findings): Grouping {
  return {
    title: "Against the degree",
    axis: "degree",
    meaning: "Degree: number of neighbours in the graph.",
    rank: (position) => {
      const degree = findings.degree(position);
      return degree === 0 ? -1 : Math.ceil(Math.log2(degree));
    },
    label: (rank) => (rank < 2 ? lowest(rank) : `${lowest(rank)}–${count(2 ** rank)}`),
    brief: (rank) => (rank < 2 ? lowest(rank) : `${lowest(rank)}+`),
  };
}

/** The smallest degree of a group. */
function lowest(rank: number): string {
  return count(rank < 1 ? rank + 1 : 2 ** (rank - 1) + 1);
}

export function groupSection(findings: Findings): HTMLElement | null {
  if (!findings.models.some(({ ofNodes }) => ofNodes)) return null;
  const withRadii = findings.models.filter(({ radii }) => radii);
  const [models, measure] = withRadii.length > 0 ? [withRadii, radiusMeasure] : [findings.models, shareMeasure];
  const figures = [byDegree(findings), byPurity].map((grouping) => groupFigure(findings, models, grouping, measure));
  return h(
    "section",
    { "aria-labelledby": "groups" },
    h("h2", { id: "groups" }, "Which nodes withstand more"),
    h("div", { class: "pair" }, figures),
  );
}

function groupFigure(findings: Findings, models: ModelFindings[], grouping: Grouping, measure: Measure): HTMLElement {
  const several = findings.models.length > 1;
  const cells = models.flatMap((model) => cellsOf(findings, model, grouping, measure));
  const heading = h("h3", {}, grouping.title);
  if (cells.length === 0) return h("div", {}, heading, h("p", { class: "note" }, "This report does not say."));
  const share = measure === shareMeasure;
  const axis = share ? measure.axis : `${measure.axis}, ${anyOf(findings.attacks(models))}`;
  const sizes = sizesOf(cells);
  const ranks = [...new Set(cells.map(({ rank }) => rank))].sort((a, b) => a - b);
  const offset = (model: ModelFindings) => (models.indexOf(model) - (models.length - 1) / 2) * 9;
  const draw = (width: number) =>
    plot({
      width,
      height: 280,
      marginLeft: 44,
      marginBottom: 66,
      x: {
        type: "point",
        padding: 0.6,
        domain: ranks,
        label: grouping.axis,
        labelAnchor: "center",
        labelArrow: "none",
        labelOffset: 58,
        tickSize: 0,
        tickFormat: (rank: number) => tick(grouping, rank, sizes?.get(rank), width / ranks.length),
      },
      y: {
        label: axis,
        labelArrow: "none",
        grid: true,
        zero: true,
        ticks: 5,
        ...(share ? { percent: true, domain: [0, 100], tickFormat: (y: number) => `${y}%` } : {}),
      },
      marks: [
        Plot.ruleY([0]),
        models.flatMap((model) => {
          const own = cells.filter((cell) => cell.model === model);
          const options = {
            x: "rank",
            stroke: several ? modelColour(model) : "var(--robust)",
            dx: offset(model),
          } as const;
          return [
            Plot.line(own, { ...options, y: "middle", strokeOpacity: 0.45 }),
            Plot.ruleX(own, {
              ...options,
              y1: "low",
              y2: "high",
              strokeWidth: 5,
              strokeOpacity: 0.4,
              strokeLinecap: "round",
            }),
            Plot.dot(own, {
              ...options,
              y: "middle",
              r: 4,
              symbol: SYMBOLS[model.number % SYMBOLS.length],
              fill: "var(--surface)",
              strokeWidth: 2,
            }),
          ];
        }),
        Plot.tip(
          cells,
          Plot.pointer({
            x: "rank",
            y: "middle",
            title: (cell: Cell) => cellInWords(cell, grouping, measure, several),
          }),
        ),
      ],
    });
  const key = models.map((model) => several && modelKey(model, ` (${SYMBOL_NAMES[model.number % SYMBOLS.length]})`));
  return h(
    "div",
    {},
    heading,
    figure(
      [grouping.meaning, " ", measure.caption, sizes ? " Below each group, how many nodes it has. " : " ", ...key],
      draw,
      numbersOf(cells, grouping, measure, several),
      `${axis} ${grouping.title.toLowerCase()}`,
    ),
  );
}

const SYMBOLS = ["circle", "square", "triangle", "diamond"] as const;
const SYMBOL_NAMES = ["circles", "squares", "triangles", "diamonds"];

function cellsOf(findings: Findings, model: ModelFindings, { rank }: Grouping, { value, summary }: Measure): Cell[] {
  const measured = findings.positions().flatMap((position) => {
    const [group, number] = [rank(position, model), value(position, model)];
    return group === null || number === null ? [] : [{ group, number }];
  });
  return Array.from(group(measured, ({ group }) => group))
    .sort(([a], [b]) => a - b)
    .map(([rank, nodes]) => ({ model, rank, nodes: nodes.length, ...summary(nodes.map(({ number }) => number)) }));
}

/** The label of a group with its size below, both short where there is little room. */
function tick({ label, brief }: Grouping, rank: number, size: number | undefined, room: number): string {
  const narrow = room < 52;
  const nodes = size === undefined ? "" : narrow ? roughCount(size) : count(size);
  return `${narrow ? brief(rank) : label(rank)}\n${nodes}`;
}

/** How many nodes each group has; null where that depends on the model. */
function sizesOf(cells: Cell[]): Map<number, number> | null {
  const sizes = new Map<number, number>();
  for (const { rank, nodes } of cells) {
    if ((sizes.get(rank) ?? nodes) !== nodes) return null;
    sizes.set(rank, nodes);
  }
  return sizes;
}

function cellInWords(cell: Cell, grouping: Grouping, { format }: Measure, several: boolean): string {
  const spread = cell.low === cell.high ? "" : `\nmiddle half: ${format(cell.low)} to ${format(cell.high)}`;
  return `${several ? `${cell.model.letter}, ` : ""}${grouping.label(cell.rank)}: ${format(cell.middle)}${spread}\n${count(cell.nodes)} nodes`;
}

function numbersOf(cells: Cell[], grouping: Grouping, { format, columns }: Measure, several: boolean): Numbers {
  return {
    columns: [...(several ? ["model"] : []), "group", "nodes", ...columns],
    rows: cells.map(({ model, rank, nodes, low, middle, high }) => [
      ...(several ? [model.letter] : []),
      grouping.label(rank),
      count(nodes),
      ...[middle, low, high].slice(0, columns.length).map(format),
    ]),
  };
}
