/** Share of nodes that are robust, and nonrobust, against the global budget Q. */

import * as Plot from "@observablehq/plot";
import { least } from "d3-array";
import { anyOf, counted } from "./attack";
import { figure, modelColour, modelKey, modelLabel, plot, ticksUpTo, type Numbers } from "./charts";
import { h, named, type Child } from "./dom";
import type { Findings, ModelFindings } from "./findings";
import { percent, plural } from "./words";

interface Step {
  flips: number;
  robust: number;
  nonrobust: number;
  model: ModelFindings;
}

export function curves(findings: Findings): HTMLElement | null {
  if (!findings.models.some(({ ofNodes }) => ofNodes)) return null;
  const known = findings.models.filter(({ radii }) => radii);
  const missing = findings.models.filter(({ radii }) => !radii);
  return h(
    "section",
    { "aria-labelledby": "curves" },
    h("h2", { id: "curves" }, `How many ${anyOf(findings.attacks())} predictions withstand`),
    known.length > 0 && curveFigure(findings, known),
    missing.map((model) => missingRadii(model, findings.models.length > 1)),
  );
}

function missingRadii({ attack, model }: ModelFindings, several: boolean): HTMLElement {
  const option = attack === "deletions" ? " --delete-edges 10" : "";
  return h(
    "p",
    { class: "note" },
    several ? ["The report has no radii of ", named(model.name), ". "] : "This report has no radii. ",
    // Flips beside deletions have no radius.
    attack !== "both" && [
      `To know how many ${anyOf([attack])} each prediction withstands, run `,
      h("code", {}, `nodeproof radius …${option} --out radii.jsonl`),
      " and hand the file to ",
      h("code", {}, "nodeproof report"),
      ".",
    ],
  );
}

function curveFigure(findings: Findings, models: ModelFindings[]): HTMLElement {
  const several = findings.models.length > 1;
  const budgets = findings.certifiedBudgets(findings.attacks(models));
  const end = lastDrawn(models, budgets);
  const steps = models.map((model) => stepsOf(model, end));
  const draw = (width: number) =>
    plot({
      width,
      height: Math.max(260, Math.min(380, width * 0.45)),
      marginLeft: 62,
      marginBottom: 40,
      x: {
        label: `Q, ${anyOf(findings.attacks(models))} in total`,
        labelAnchor: "center",
        labelArrow: "none",
        domain: [0, end + 1],
        ticks: ticksUpTo(end, width),
        tickFormat: "d",
      },
      y: {
        label: "share of nodes",
        labelAnchor: "center",
        labelArrow: "none",
        domain: [0, 100],
        percent: true,
        grid: true,
        ticks: 5,
        tickFormat: (y: number) => `${y}%`,
      },
      marks: [
        steps.length === 1 ? areas(steps[0] ?? []) : steps.flatMap((line) => lines(line)),
        Plot.ruleY([0]),
        budgetMarks(budgets, end),
        steps.length === 1 ? areaLabels(steps[0] ?? []) : lineLabels(steps),
        pointer(steps, width),
      ],
    });
  return figure(
    caption(models, several, end),
    draw,
    numbersOf(models, several),
    "Share of robust and nonrobust nodes against Q",
  );
}

/** The last Q that is drawn: beyond it no curve changes by a hundredth of the nodes. */
function lastDrawn(models: ModelFindings[], budgets: number[]): number {
  const known = models.flatMap(({ radii }) => (radii ? [radii] : []));
  const ends = known.flatMap(({ curve, position }) =>
    [curve.robust, curve.nonrobust].map((counts) => settledFrom(counts, position.length / 100)),
  );
  const longest = Math.max(...known.map(({ budget }) => budget.global));
  return Math.min(longest, Math.max(...ends, ...budgets, 1) + 2);
}

function settledFrom(counts: number[], tolerance: number): number {
  const final = counts.at(-1) ?? 0;
  return counts.findIndex((count) => Math.abs(count - final) < tolerance);
}

/** One step for each Q; the last is repeated so that its step has a width. */
function stepsOf(model: ModelFindings, end: number): Step[] {
  const { radii } = model;
  if (!radii) return [];
  const last = Math.min(end, radii.budget.global);
  return Array.from({ length: last + 2 }, (_, flips) => {
    const at = Math.min(flips, last);
    const of = radii.position.length;
    return {
      flips,
      model,
      robust: (radii.curve.robust[at] ?? 0) / of,
      nonrobust: (radii.curve.nonrobust[at] ?? 0) / of,
    };
  });
}

const CURVE = { x: "flips", curve: "step-after" } as const;

function areas(steps: Step[]): Plot.Markish[] {
  return [
    Plot.areaY(steps, { ...CURVE, y: "robust", fill: "var(--robust)", fillOpacity: 0.85 }),
    Plot.areaY(steps, {
      ...CURVE,
      y1: (step: Step) => 1 - step.nonrobust,
      y2: 1,
      fill: "var(--nonrobust)",
      fillOpacity: 0.85,
    }),
  ];
}

/** Names written into the areas, where they are wide enough. */
function areaLabels(steps: Step[]): Plot.Markish[] {
  const [first, last] = [steps[0], steps.at(-1)];
  const options = { fill: "var(--surface)", fontWeight: 600, fontSize: 13 } as const;
  return [
    first && first.robust > 0.25
      ? Plot.text([first], {
          ...options,
          x: "flips",
          y: () => first.robust / 3,
          text: () => "robust",
          textAnchor: "start",
          dx: 10,
        })
      : null,
    last && last.nonrobust > 0.25
      ? Plot.text([last], {
          ...options,
          x: "flips",
          y: () => 1 - last.nonrobust / 3,
          text: () => "nonrobust",
          textAnchor: "end",
          dx: -10,
        })
      : null,
  ];
}

function lines(steps: Step[]): Plot.Markish[] {
  const stroke = steps[0] ? modelColour(steps[0].model) : "currentColor";
  return [
    Plot.lineY(steps, { ...CURVE, y: "robust", stroke, strokeWidth: 2 }),
    Plot.lineY(steps, { ...CURVE, y: "nonrobust", stroke, strokeWidth: 2, strokeDasharray: "5,4" }),
  ];
}

/** The letter of each model on its two curves, where they are three quarters up. */
function lineLabels(steps: Step[][]): Plot.Markish[] {
  return steps.flatMap((line) =>
    (["robust", "nonrobust"] as const).map((verdict) => {
      const at = least(line.slice(0, -1), (step) => Math.abs(step[verdict] - 0.75));
      if (!at) return null;
      const { letter } = at.model;
      return Plot.text([at], {
        x: at.flips + 0.5,
        y: verdict,
        text: () => letter,
        fill: modelColour(at.model),
        stroke: "var(--background)",
        strokeWidth: 5,
        fontWeight: 700,
        fontSize: 13,
      });
    }),
  );
}

function budgetMarks(certified: number[], end: number): Plot.Markish[] {
  const budgets = certified.filter((budget) => budget <= end);
  const middle = (budget: number) => budget + 0.5;
  return [
    Plot.ruleX(budgets, { x: middle, stroke: "currentColor", strokeWidth: 1.5, strokeDasharray: "2,3" }),
    Plot.text(budgets, {
      x: middle,
      frameAnchor: "top",
      dy: -14,
      text: (budget: number) => `certified: Q = ${budget}`,
    }),
  ];
}

/** What hovering shows: at that Q, every model that was tried up to there. */
function pointer(steps: Step[][], width: number): Plot.Markish[] {
  const tried = steps.map((line) => line.slice(0, -1));
  const spots = Array.from({ length: Math.max(...tried.map(({ length }) => length)) }, (_, flips) => {
    const told = tried.flatMap((line) => line[flips] ?? []).map((step) => summary(step, steps.length > 1, width < 600));
    return { middle: flips + 0.5, text: [`Q = ${flips}`, ...told].join("\n") };
  });
  const tip = {
    x: "middle",
    title: "text",
    frameAnchor: "middle",
    preferredAnchor: "left",
    lineHeight: 1.3,
    lineWidth: Math.min(44, width / 16),
  } as const;
  return [
    Plot.ruleX(spots, Plot.pointerX({ x: "middle", stroke: "currentColor", strokeOpacity: 0.5 })),
    Plot.tip(spots, Plot.pointerX(tip as Plot.TipOptions)),
  ];
}

/** The share that is left, but for what rounding leaves of it. */
function undecided(robust: number, nonrobust: number): number {
  const rest = 1 - robust - nonrobust;
  return rest > 1e-9 ? rest : 0;
}

/** The shares at one Q: on one line a model, or with its letter on a line each where there is little room. */
function summary({ model, robust, nonrobust }: Step, several: boolean, narrow: boolean): string {
  const rest = undecided(robust, nonrobust);
  const shares = [`${percent(robust)} robust`, `${percent(nonrobust)} nonrobust`];
  if (rest > 0) shares.push(`${percent(rest)} undecided`);
  if (!several) return shares.join("\n");
  return narrow
    ? shares.map((share) => `${model.letter}  ${share}`).join("\n")
    : `${modelLabel(model, true, 20)}: ${shares.join(", ")}`;
}

function caption(models: ModelFindings[], several: boolean, end: number): Child[] {
  const limits = models.map(({ attack, radii }) => `${counted(attack)}s${radii?.budget.limits_in_words ?? ""}`);
  const budget = `under at most Q ${[...new Set(limits)].join("; or ")}. `;
  const scanned = models.some(({ radii }) => radii?.scan);
  const tail = models.some(({ radii }) => (radii?.budget.global ?? 0) > end)
    ? ` Beyond Q = ${end} each curve changes by less than 1%; the numbers go on. `
    : "";
  const rest = scanned ? "Where only robust nodes were looked for, of the rest nothing is known. " : "";
  const [only] = models;
  if (only && models.length === 1)
    return [
      several && modelKey(only),
      `Share of ${plural(only.radii?.position.length ?? 0, "node")} proven robust (below) and nonrobust (above) ${budget}`,
      rest || "What is left blank between them is undecided.",
      tail,
    ];
  return [
    `Share of nodes proven robust (solid) and nonrobust (dashed) ${budget}`,
    rest,
    tail,
    models.map((model) => modelKey(model)),
  ];
}

function numbersOf(models: ModelFindings[], several: boolean): Numbers {
  return {
    columns: [...(several ? ["model"] : []), "Q", "robust", "nonrobust", "undecided"],
    rows: models.flatMap((model) =>
      stepsOf(model, Infinity)
        .slice(0, -1)
        .map(({ flips, robust, nonrobust }) => [
          ...(several ? [modelLabel(model, true)] : []),
          flips,
          percent(robust),
          percent(nonrobust),
          percent(undecided(robust, nonrobust)),
        ]),
    ),
  };
}
