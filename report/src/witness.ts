/** A witness in words: which flips, where, and what they lead to. */

import { h, named, type Child } from "./dom";
import type { Evidence, Findings, Flip } from "./findings";
import { flipsByNode, type Surroundings } from "./surroundings";
import { margin, plural } from "./words";

/** The flips in words, those at one node together, the node itself first. */
export function witness(findings: Findings, surroundings: Surroundings, evidence: Evidence): HTMLElement {
  const groups = [...flipsByNode(evidence.flips)].sort(
    ([a], [b]) => Number(b === surroundings.target) - Number(a === surroundings.target),
  );
  return h(
    "div",
    { class: "witness" },
    groups.map(([position, flips]) =>
      h(
        "ul",
        {},
        flips.map((flip) => h("li", {}, flipInWords(findings, surroundings, flip, position))),
      ),
    ),
    h("p", {}, outcome(findings, evidence)),
  );
}

function flipInWords(
  findings: Findings,
  surroundings: Surroundings,
  [, attribute, to]: Flip,
  position: number,
): Child[] {
  return [
    h("strong", { class: to === 1 ? "add" : "remove" }, to === 1 ? "add" : "remove"),
    " “",
    named(findings.attributeName(attribute)),
    to === 1 ? "” to " : "” from ",
    ...(position === surroundings.target ? ["this node"] : elsewhere(findings, surroundings, position)),
  ];
}

function elsewhere(findings: Findings, surroundings: Surroundings, position: number): Child[] {
  const name = named(findings.name(position));
  const where = surroundings.inWords(position);
  const id = findings.id(position);
  return [
    "“",
    findings.isSubject(position) ? h("a", { href: `#node-${id}` }, name) : name,
    "”",
    h(
      "span",
      { class: "quiet" },
      ` ${[findings.name(position) === `node ${id}` ? "" : `node ${id}`, where].filter(Boolean).join(", ")}`,
    ),
  ];
}

/** What the flips lead to. */
function outcome(findings: Findings, { flips, overtakes, margin: value }: Evidence): Child[] {
  const start =
    flips.length > 0
      ? flips.length === 1
        ? "After this flip "
        : `After these ${plural(flips.length, "flip")} `
      : "Without any flip ";
  if (overtakes === null) return [start, "the class no longer holds."];
  const name = h("strong", {}, named(findings.className(overtakes)));
  if (value === 0) return [start, name, " is level with the certified class: a tie, and nothing says which one wins."];
  return [start, "the model says ", name, value === null ? "." : `; the margin over it is ${margin(value)}.`];
}
