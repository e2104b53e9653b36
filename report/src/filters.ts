/** The controls above the table: search, class, right or wrong, part, and a verdict for each model. */

import { h, type Child } from "./dom";
import type { Findings } from "./findings";
import { fold, type Selection } from "./selection";
import { short, VERDICTS, type Verdict } from "./words";

export function filterBar(findings: Findings, selection: Selection, changed: () => void): HTMLElement {
  const { filter } = selection;
  const several = findings.models.length > 1;
  const set = (change: (value: string) => void) => (value: string) => {
    change(value);
    changed();
  };
  const verdicts = findings.models
    .filter(({ certificates }) => certificates)
    .map(({ number, letter }) =>
      choice(
        several ? `verdict ${letter}` : "verdict",
        VERDICTS.map((verdict) => [verdict, verdict]),
        set((value) => (value === "" ? filter.verdicts.delete(number) : filter.verdicts.set(number, value as Verdict))),
      ),
    );
  const classes = findings.report.graph.classes.map((_, number): [string, string] => [
    String(number),
    short(findings.className(number), 50),
  ]);
  const hasLabels = findings.positions().some((position) => findings.label(position) !== null);
  return h(
    "form",
    { class: "filters", role: "search", onsubmit: (event: Event) => event.preventDefault() },
    searchBox(set((value) => (filter.search = fold(value.trim())))),
    verdicts,
    choice(
      "predicted class",
      classes,
      set((value) => (filter.class = value === "" ? null : Number(value))),
    ),
    hasLabels &&
      choice(
        "prediction",
        [
          ["right", "right"],
          ["wrong", "wrong"],
        ],
        set((value) => (filter.judged = (value || null) as typeof filter.judged)),
      ),
    findings.report.nodes.part &&
      choice(
        "part",
        [
          ["labelled", "labelled"],
          ["unlabelled", "unlabelled"],
        ],
        set((value) => (filter.part = (value || null) as typeof filter.part)),
      ),
  );
}

function searchBox(changed: (value: string) => void): HTMLElement {
  const box = h("input", {
    type: "search",
    placeholder: "name or number",
    autocomplete: "off",
    spellcheck: "false",
    dir: "auto",
  });
  box.addEventListener("input", () => changed(box.value));
  return field("search", box);
}

function choice(
  label: string,
  options: [value: string, text: string][],
  changed: (value: string) => void,
): HTMLElement {
  const select = h(
    "select",
    {},
    h("option", { value: "" }, "any"),
    options.map(([value, text]) => h("option", { value }, text)),
  );
  select.addEventListener("change", () => changed(select.value));
  return field(label, select);
}

function field(label: string, control: Child): HTMLElement {
  return h("label", {}, h("span", {}, label), control);
}
