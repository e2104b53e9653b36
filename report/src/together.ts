/** What one attacker does to all predictions together: how many change at most, and how many an attack changes. */

import * as Plot from "@observablehq/plot";
import { max } from "d3-array";
import { attackOf } from "./attacked";
import { figure, modelLetter, plot, ticksAt } from "./charts";
import { download, lines } from "./csv";
import type { Answer } from "./data";
import { h, named, type Child } from "./dom";
import type { Findings, ModelFindings } from "./findings";
import { count, duration, percent, plural } from "./words";

/** Budgets that the words for those who do not see the chart go through. */
const TOLD = 6;

/** Answers about one model, the smallest budget first. */
interface Told {
  model: ModelFindings;
  answers: Answer[];
  limits: string;
}

export function together(findings: Findings): HTMLElement | null {
  const all = findings.models.flatMap((model): Told[] => {
    const { collectives } = model;
    if (!collectives || collectives.answers.length === 0) return [];
    return [{ model, answers: collectives.answers, limits: collectives.budget.limits_in_words }];
  });
  if (all.length === 0) return null;
  const several = findings.models.length > 1;
  const highest = (series: Series) => max(all, ({ answers }) => max(answers, share(series))) || 1;
  const tops = { close: highest(AT_MOST), wide: Math.max(highest(AT_MOST), highest(ALONE)) };
  return h(
    "section",
    { "aria-labelledby": "together", class: "together" },
    h("h2", { id: "together" }, "All predictions together"),
    findings.models.some(({ ofNodes }) => ofNodes) &&
      h(
        "p",
        {},
        "Verdicts and radii are of one prediction each, for which the attacker has the whole budget. ",
        "Here one attacker has one budget for all predictions.",
      ),
    all.map((told) => [
      several && h("h3", {}, modelLetter(told.model), named(told.model.model.name)),
      inWords(told),
      told.answers.length === 1 ? bars(told) : figures(told, tops),
    ]),
    answersTable(all, several),
    h(
      "div",
      { class: "attacks" },
      h("h3", {}, "The attacks"),
      h("p", {}, "Each can be tried: make its flips, run the model on the whole graph, and count."),
      all.map((told) => attacks(findings, told, several)),
    ),
  );
}

/** The answer for the largest budget in a sentence, and what certificates would have said. */
function inWords({ answers, limits }: Told): HTMLElement | null {
  const answer = answers.at(-1);
  if (!answer) return null;
  const { at_most, at_least, alone, predictions } = answer;
  const attack =
    at_least === at_most
      ? at_most === 0
        ? "not one of them"
        : "an attack changes as many"
      : at_least === 0
        ? "no attack was found that changes any"
        : ["an attack changes ", h("strong", {}, count(at_least))];
  return h(
    "p",
    { class: "lead" },
    `Whoever may flip ${plural(answer.global, "attribute")} anywhere${limits && `${limits},`} changes at most `,
    h("strong", {}, count(at_most)),
    ` of ${plural(predictions, "prediction")}, and `,
    attack,
    ". ",
    alone > at_most && `Single certificates added up would say ${count(alone)}.`,
  );
}

/** One answer in plain text. */
function plain({ global, at_most, at_least, predictions }: Answer): string {
  const of = `at most ${count(at_most)} of ${count(predictions)}`;
  return `with ${plural(global, "flip")} ${of} (${percent(at_most / predictions)}), an attack ${count(at_least)}`;
}

function besideInPlain({ global, at_most, alone }: Answer): string {
  return `with ${plural(global, "flip")} ${count(alone)} added up, ${count(at_most)} together`;
}

/** What the charts show, for those who do not see them. */
function description(answers: Answer[], what: string, plain: (answer: Answer) => string): string {
  const every = Math.max(1, Math.ceil(answers.length / TOLD));
  const told = answers.filter((_, place) => (answers.length - 1 - place) % every === 0);
  const rest = told.length < answers.length ? "; the table below has the other budgets" : "";
  return `${what}: ${told.map(plain).join("; ")}${rest}.`;
}

/** One number of an answer as it is drawn. */
interface Series {
  of: "at_most" | "at_least" | "alone";
  colour: string;
  dash?: string;
  symbol: "circle" | "triangle" | "square";
  /** What it is: beside a bar, and in the legend. */
  name: string;
  meaning: string;
}

const AT_MOST: Series = {
  of: "at_most",
  colour: "var(--robust)",
  symbol: "circle",
  name: "change at most",
  meaning: "at most so many change: proven (circles)",
};
const AT_LEAST: Series = {
  of: "at_least",
  colour: "var(--nonrobust)",
  symbol: "triangle",
  name: "attack changes",
  meaning: "so many an attack changes (triangles)",
};
const ALONE: Series = {
  of: "alone",
  colour: "var(--quiet)",
  dash: "5,4",
  symbol: "square",
  name: "added up",
  meaning: "single certificates added up (squares)",
};

/** The numbers of a single budget. */
function bars({ answers }: Told): HTMLElement {
  const [answer] = answers;
  const rows = answer ? [AT_LEAST, AT_MOST, ALONE].map((series) => ({ series, share: share(series)(answer) })) : [];
  const draw = (width: number) =>
    plot({
      width,
      height: 170,
      marginTop: 4,
      marginBottom: 40,
      marginLeft: 112,
      marginRight: 96,
      x: {
        label: "share of predictions",
        labelAnchor: "center",
        labelArrow: "none",
        percent: true,
        domain: [0, 100 * (max(rows, ({ share }) => share) || 1)],
        ticks: Math.max(2, width / 140),
        tickFormat: (x: number) => `${x}%`,
      },
      y: {
        domain: rows.map(({ series }) => series.of),
        label: null,
        tickSize: 0,
        tickFormat: (of: Series["of"]) => rows.find(({ series }) => series.of === of)?.series.name ?? "",
      },
      marks: [
        Plot.barX(rows, {
          y: ({ series }: Row) => series.of,
          x: "share",
          fill: ({ series }: Row) => series.colour,
          insetTop: 5,
          insetBottom: 5,
        }),
        Plot.ruleX([0], { stroke: "currentColor", strokeWidth: 1.5 }),
        Plot.text(rows, {
          y: ({ series }: Row) => series.of,
          x: "share",
          text: ({ series, share }: Row) => `${count(answer?.[series.of] ?? 0)} (${percent(share)})`,
          textAnchor: "start",
          dx: 6,
        }),
      ],
    });
  return figure(
    "Change at most: proven. Added up: each of these could change if all flips were for it alone.",
    draw,
    undefined,
    description(
      answers,
      "Share of predictions that one attacker changes",
      (answer) => `${plain(answer)}; single certificates added up say ${count(answer.alone)}`,
    ),
  );
}

/** One of the numbers of a single budget. */
interface Row {
  series: Series;
  share: number;
}

/** What is proven above what an attack does, as close as they are; and the same beside single certificates. */
function figures({ answers }: Told, tops: { close: number; wide: number }): HTMLElement {
  const between = [
    Plot.areaY(answers, { x: "global", y: share(AT_LEAST), fill: "var(--nonrobust)", fillOpacity: 0.85 }),
    Plot.areaY(answers, {
      x: "global",
      y1: share(AT_LEAST),
      y2: share(AT_MOST),
      fill: "var(--undecided)",
      fillOpacity: 0.25,
    }),
  ];
  const close = figure(
    [
      legend([AT_MOST, AT_LEAST]),
      "What the best attack does lies in the grey area. Lines only join the budgets that were asked about.",
    ],
    (width) => chart(answers, tops.close, [AT_LEAST, AT_MOST], between, width),
    undefined,
    description(answers, "Share of predictions that one attacker changes, against the number of flips", plain),
  );
  const wide = figure(
    [legend([ALONE, AT_MOST]), "Added up: each of these could change if all flips were for it alone."],
    (width) => chart(answers, tops.wide, [ALONE, AT_MOST], [], width),
    undefined,
    description(answers, "The same beside single certificates added up", besideInPlain),
  );
  return h(
    "div",
    { class: "pair" },
    h("div", {}, h("h4", {}, "What is proven, and what an attack changes"), close),
    h("div", {}, h("h4", {}, "Beside single certificates"), wide),
  );
}

/** Shares of predictions against the budget; marks are the budgets that were asked about, joined by lines. */
function chart(answers: Answer[], top: number, series: Series[], below: Plot.Markish[], width: number): Element {
  const budgets = answers.map(({ global }) => global);
  const end = Math.max(1, budgets.at(-1) ?? 1);
  return plot({
    width,
    height: 280,
    marginLeft: 58,
    marginBottom: 40,
    x: {
      label: "Q, flips in all",
      labelAnchor: "center",
      labelArrow: "none",
      domain: [0, end],
      ticks: ticksAt(budgets, end, width),
      tickFormat: "d",
    },
    y: {
      label: "predictions that change",
      labelAnchor: "center",
      labelArrow: "none",
      domain: [0, 100 * top],
      percent: true,
      nice: true,
      grid: true,
      ticks: 5,
      tickFormat: (y: number) => `${y}%`,
    },
    marks: [
      below,
      Plot.ruleY([0]),
      series.map((one) => line(answers, one)),
      Plot.ruleX(answers, Plot.pointerX({ x: "global", stroke: "currentColor", strokeOpacity: 0.5 })),
      Plot.tip(
        answers,
        Plot.pointerX({
          x: "global",
          title: tip,
          frameAnchor: "middle",
          preferredAnchor: "left",
          lineHeight: 1.3,
          lineWidth: Math.min(44, width / 16),
        } as Plot.TipOptions),
      ),
    ],
  });
}

function share({ of }: Series) {
  return (answer: Answer) => (answer.predictions === 0 ? 0 : answer[of] / answer.predictions);
}

function line(answers: Answer[], series: Series): Plot.Markish[] {
  const { colour: stroke, dash, symbol } = series;
  const options = { x: "global", y: share(series), stroke, strokeWidth: 2, clip: false } as const;
  return [
    Plot.lineY(answers, { ...options, strokeDasharray: dash }),
    Plot.dot(answers, { ...options, symbol, r: 4, fill: "var(--surface)" }),
  ];
}

function tip(answer: Answer): string {
  const line = (words: string, number: number) => `${words} ${count(number)} (${percent(number / answer.predictions)})`;
  return [
    `Q = ${answer.global}`,
    line("at most", answer.at_most),
    line("attack", answer.at_least),
    line("added up", answer.alone),
  ].join("\n");
}

function legend(series: Series[]): HTMLElement {
  return h(
    "ul",
    { class: "legend" },
    series.map(({ of, meaning }) => h("li", {}, h("span", { class: `stroke ${of}`, "aria-hidden": "true" }), meaning)),
  );
}

/** All answers, as a table and as a file. */
function answersTable(all: Told[], several: boolean): HTMLElement {
  const rows = all.flatMap(({ model, answers }) => answers.map((answer) => ({ model, answer })));
  const timed = rows.some(({ answer }) => answer.seconds !== null);
  const heads = [
    ...(several ? ["model"] : []),
    ...["Q", "change at most", "attack changes", "gap", "by radii", "added up"],
    ...(timed ? ["time"] : []),
  ];
  const row = ({ model, answer }: (typeof rows)[number]) => {
    const { at_most, at_least, predictions } = answer;
    const gap = at_most - at_least;
    const cells = [
      count(answer.global),
      `${count(at_most)} (${percent(at_most / predictions)})`,
      count(at_least),
      gap === 0 ? "exact" : count(gap),
      count(answer.by_radii),
      count(answer.alone),
      ...(timed ? [answer.seconds === null ? "–" : duration(answer.seconds)] : []),
    ];
    return h(
      "tr",
      {},
      several && h("td", {}, modelLetter(model)),
      h("th", { scope: "row", class: "numeric" }, cells[0]),
      cells.slice(1).map((cell) => h("td", { class: "numeric" }, cell)),
    );
  };
  return h(
    "div",
    {},
    h(
      "div",
      { class: "scroll answers", tabindex: 0, role: "region", "aria-label": "Answers by budget" },
      h(
        "table",
        {},
        h("caption", { class: "unseen" }, "How many predictions change under each budget"),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            heads.map((head) => h("th", { scope: "col", class: head === "model" ? "" : "numeric" }, head)),
          ),
        ),
        h("tbody", {}, rows.map(row)),
      ),
    ),
    h(
      "p",
      { class: "quiet" },
      "Gap: how far the two numbers are apart; the truth lies between them. By radii: what follows from how many flips each ",
      "prediction withstands and what it sees. Added up: predictions that are not proven to hold if all flips are for them.",
    ),
    h(
      "button",
      { type: "button", class: "screen-only", onclick: () => download("together.csv", answersFile(all, several)) },
      "Download these numbers as CSV",
    ),
  );
}

function answersFile(all: Told[], several: boolean): string {
  const heads = ["global_budget", "predictions", "at_most", "at_least", "by_radii", "alone", "seconds"];
  const rows = all.flatMap(({ model, answers }) =>
    answers.map((of) => [
      ...(several ? [model.model.name] : []),
      ...[of.global, of.predictions, of.at_most, of.at_least, of.by_radii, of.alone, of.seconds ?? ""],
    ]),
  );
  return lines([[...(several ? ["model"] : []), ...heads], ...rows]);
}

/** The attacks of a model, each to be unfolded. */
function attacks(findings: Findings, { model, answers }: Told, several: boolean): Child {
  const found = answers.filter(({ at_least }) => at_least > 0);
  const kept = found.filter(({ flips }) => flips);
  return [
    several && h("h4", {}, modelLetter(model), named(model.model.name)),
    found.length === 0 && h("p", { class: "note" }, "None was found that changes a prediction."),
    kept.length < found.length &&
      h(
        "p",
        { class: "note" },
        "They were left out to keep the page small; the file that ",
        h("code", {}, "nodeproof collective --out"),
        " wrote has them.",
      ),
    kept.map((answer) => attackOf(findings, answer)),
  ];
}
