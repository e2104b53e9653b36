/** Lower bounds on the margin to each class, as a chart and as a table. */

import * as Plot from "@observablehq/plot";
import { max, min } from "d3-array";
import { inShort, rank } from "./bounds";
import { figure, plot } from "./charts";
import type { Bound } from "./data";
import { h, named } from "./dom";
import type { Findings, ModelFindings } from "./findings";
import { short } from "./words";

/** The margin to a class is at least this. */
interface ClassBound {
  class: number;
  bound: Bound;
}

export function classMargins(findings: Findings, model: ModelFindings, position: number): HTMLElement | null {
  const bounds = (model.margins(position) ?? []).flatMap((bound, number): ClassBound[] =>
    bound === null ? [] : [{ class: number, bound }],
  );
  if (bounds.length === 0) return null;
  return h(
    "div",
    {},
    figure(null, (width) => chart(findings, bounds, width), undefined, "Lower bound on the margin to each class"),
    table(findings, bounds),
  );
}

function chart(findings: Findings, bounds: ClassBound[], width: number): Element {
  const [low, high] = [Math.min(0, min(bounds, length) ?? 0), Math.max(0, max(bounds, length) ?? 0)];
  const marginLeft = Math.min(150, width * 0.4);
  const space = ((high - low || 1) * LABEL_WIDTH) / Math.max(LABEL_WIDTH, width - marginLeft - 2 * LABEL_WIDTH);
  return plot({
    width,
    height: 50 + 24 * bounds.length,
    marginTop: 6,
    marginBottom: 40,
    marginLeft,
    marginRight: 8,
    x: {
      label: "margin at least, in logits",
      labelAnchor: "center",
      labelArrow: "none",
      domain: [low < 0 ? low - space : 0, high + space],
      ticks: Math.max(2, width / 100),
      grid: true,
    },
    y: {
      domain: bounds.map(({ class: number }) => number),
      label: null,
      tickSize: 0,
      tickFormat: (number: number) => short(findings.className(number), 20),
    },
    marks: [
      Plot.barX(bounds, {
        y: "class",
        x: length,
        fill: ({ bound }: ClassBound) => (rank(bound) > 0 ? "var(--robust)" : "var(--nonrobust)"),
        insetTop: 4,
        insetBottom: 4,
      }),
      Plot.ruleX([0], { stroke: "currentColor", strokeWidth: 1.5 }),
      Plot.text(
        bounds.filter((bound) => length(bound) >= 0),
        { ...LABEL, text: boundInShort, textAnchor: "start", dx: 5 },
      ),
      Plot.text(
        bounds.filter((bound) => length(bound) < 0),
        { ...LABEL, text: boundInShort, textAnchor: "end", dx: -5 },
      ),
    ],
  });
}

/** Room for a number beside a bar. */
const LABEL_WIDTH = 52;
const LABEL = { y: "class", x: length, fill: "currentColor" } as const;

/** The length of a bar: none where no number is known. */
function length({ bound }: ClassBound): number {
  return typeof bound === "number" ? bound : 0;
}

function boundInShort({ bound }: ClassBound): string {
  return inShort(bound);
}

function table(findings: Findings, bounds: ClassBound[]): HTMLElement {
  return h(
    "details",
    { class: "numbers" },
    h("summary", {}, "As a table"),
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "margin over"),
          h("th", { scope: "col", class: "numeric" }, "at least"),
          h("th", { scope: "col" }, "status"),
        ),
      ),
      h(
        "tbody",
        {},
        bounds.map((bound) =>
          h(
            "tr",
            {},
            h("td", {}, named(findings.className(bound.class))),
            h("td", { class: "numeric" }, boundInShort(bound)),
            h("td", {}, status(bound)),
          ),
        ),
      ),
    ),
  );
}

function status({ bound }: ClassBound): string {
  if (bound === "unknown") return "unknown: not looked at, or numbers overflowed";
  if (bound === "positive") return "holds, by how much is not known";
  return bound > 0 ? "holds" : "not proven to hold";
}
