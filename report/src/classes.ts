/** Lower bounds on the margin to each class, as a chart and as a table. */

import * as Plot from "@observablehq/plot";
import { max, min } from "d3-array";
import { figure, plot } from "./charts";
import { h, named } from "./dom";
import type { Findings, ModelFindings } from "./findings";
import { atLeast, short, SOME_MARGIN } from "./words";

interface Bound {
  class: number;
  /** null where numbers overflowed. */
  value: number | null;
}

export function classMargins(findings: Findings, model: ModelFindings, position: number): HTMLElement | null {
  const bounds = (model.margins(position) ?? []).flatMap((value, number): Bound[] =>
    value === null ? [] : [{ class: number, value: value === "?" ? null : value }],
  );
  if (bounds.length === 0) return null;
  return h(
    "div",
    {},
    figure(null, (width) => chart(findings, bounds, width), undefined, "Lower bound on the margin to each class"),
    table(findings, bounds),
  );
}

function chart(findings: Findings, bounds: Bound[], width: number): Element {
  const drawn = bounds.filter(({ value }) => value !== null);
  const [low, high] = [
    Math.min(0, min(drawn, ({ value }) => value ?? 0) ?? 0),
    Math.max(0, max(drawn, ({ value }) => value ?? 0) ?? 0),
  ];
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
      domain: bounds.map((bound) => bound.class),
      label: null,
      tickSize: 0,
      tickFormat: (number: number) => short(findings.className(number), 20),
    },
    marks: [
      Plot.barX(drawn, {
        y: "class",
        x: "value",
        fill: ({ value }: Bound) => ((value ?? 0) > 0 ? "var(--robust)" : "var(--nonrobust)"),
        insetTop: 4,
        insetBottom: 4,
      }),
      Plot.ruleX([0], { stroke: "currentColor", strokeWidth: 1.5 }),
      Plot.text(
        bounds.filter(({ value }) => (value ?? 0) >= 0),
        { ...LABEL, text: boundInShort, textAnchor: "start", dx: 5 },
      ),
      Plot.text(
        bounds.filter(({ value }) => (value ?? 0) < 0),
        { ...LABEL, text: boundInShort, textAnchor: "end", dx: -5 },
      ),
    ],
  });
}

/** Room for a number beside a bar. */
const LABEL_WIDTH = 52;
const LABEL = { y: "class", x: ({ value }: Bound) => value ?? 0, fill: "currentColor" } as const;

function boundInShort({ value }: Bound): string {
  return value === null ? "?" : atLeast(value);
}

function table(findings: Findings, bounds: Bound[]): HTMLElement {
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

function status({ value }: Bound): string {
  if (value === null) return "unknown: numbers overflowed";
  if (value === SOME_MARGIN) return "holds, by how much was not asked";
  return value > 0 ? "holds" : "not proven to hold";
}
