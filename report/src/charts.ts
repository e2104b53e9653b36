/** What all charts have in common: a figure that fits its place, colours of verdicts and models, and the numbers as a table. */

import * as Plot from "@observablehq/plot";
import type { ModelFindings } from "./findings";
import { h, named, type Child } from "./dom";
import { short, VERDICT_MARK, VERDICTS, type Verdict } from "./words";

export const VERDICT_COLOUR: Record<Verdict, string> = {
  robust: "var(--robust)",
  nonrobust: "var(--nonrobust)",
  undecided: "var(--undecided)",
};

const MODEL_COLOURS = 6;

export function modelColour({ number }: ModelFindings): string {
  return `var(--model-${number % MODEL_COLOURS})`;
}

/** Name of a model in a chart, with its letter in front where there are several. */
export function modelLabel({ model, letter }: ModelFindings, several: boolean, length = 28): string {
  return several ? `${letter}  ${short(model.name, length)}` : short(model.name, length);
}

/** The letter of a model on its colour. */
export function modelLetter({ letter, number }: ModelFindings): HTMLElement {
  return h("span", { class: `letter model-${number % MODEL_COLOURS}` }, letter);
}

/** Which letter and colour stand for a model, with a remark behind its name. */
export function modelKey(model: ModelFindings, remark = ""): HTMLElement {
  return h("span", { class: "key" }, modelLetter(model), named(model.model.name), remark);
}

/** Rows of numbers behind a chart, for those who read rather than look. */
export interface Numbers {
  columns: string[];
  rows: (string | number)[][];
}

/** A figure whose chart is redrawn whenever its width changes. */
export function figure(
  caption: Child,
  draw: (width: number) => Element,
  numbers?: Numbers,
  label = "Chart",
): HTMLElement {
  const place = h("div", { class: "chart", role: "img", "aria-label": label });
  const element = h("figure", {}, place, h("figcaption", {}, caption), numbers && numbersTable(numbers));
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(place.clientWidth);
    if (width === 0 || width === drawn) return;
    drawn = width;
    const chart = draw(width);
    chart.setAttribute("aria-hidden", "true"); // What it says is in the label and in the numbers.
    place.replaceChildren(chart);
  }).observe(place);
  return element;
}

/** The numbers behind a chart, made when they are asked for. */
function numbersTable({ columns, rows }: Numbers): HTMLElement {
  const details = h("details", { class: "numbers" }, h("summary", {}, "The numbers"));
  const fill = () =>
    details.append(
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "The numbers behind the chart" },
        h(
          "table",
          {},
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              columns.map((column) => h("th", { scope: "col" }, column)),
            ),
          ),
          h(
            "tbody",
            {},
            rows.map((row) =>
              h(
                "tr",
                {},
                row.map((cell) => h("td", {}, cell)),
              ),
            ),
          ),
        ),
      ),
    );
  details.addEventListener("toggle", fill, { once: true });
  return details;
}

/** Plot with the project's defaults. */
export function plot(options: Plot.PlotOptions): Element {
  return Plot.plot({
    marginTop: 24,
    marginRight: 22,
    ...options,
    style: { background: "transparent", fontSize: "12px", fontFamily: "inherit", overflow: "visible" },
  });
}

/** Whole numbers from 0 on, as close as there is room for. */
export function ticksUpTo(end: number, width: number): number[] {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => (end / step) * 44 < width) ?? end;
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, tick) => tick * step);
}

/** These numbers, ascending, if there is room for all of them; else any. */
export function ticksAt(numbers: number[], end: number, width: number): number[] {
  const room = (number: number, place: number) =>
    place === 0 || ((number - (numbers[place - 1] ?? 0)) / end) * (width - 84) > 28;
  return numbers.every(room) ? numbers : ticksUpTo(end, width);
}

/** Which colour and mark stand for which verdict. */
export function verdictLegend(): HTMLElement {
  return h(
    "ul",
    { class: "legend" },
    VERDICTS.map((verdict) => h("li", {}, h("span", { class: `swatch ${verdict}`, "aria-hidden": "true" }), verdict)),
  );
}

/** A verdict with its mark and colour. */
export function verdictTag(verdict: Verdict): HTMLElement {
  return h(
    "span",
    { class: `verdict ${verdict}` },
    h("span", { class: "mark", "aria-hidden": "true" }, VERDICT_MARK[verdict]),
    verdict,
  );
}
