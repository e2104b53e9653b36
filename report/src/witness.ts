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
  [, attribute, to, from]: Flip,
  position: number,
): Child[] {
  const where = position === surroundings.target ? ["this node"] : elsewhere(findings, surroundings, position);
  const name = named(findings.attributeName(attribute));
  if (from !== undefined) {
    const [verb, sort] = to > from ? ["raise", "add"] : ["lower", "remove"];
    return [
      h("strong", { class: sort }, verb),
      " “",
      name,
      "” of ",
      ...where,
      ` from ${margin(from)} to ${margin(to)}`,
    ];
  }
  const [verb, preposition] = to === 1 ? ["add", "to"] : ["remove", "from"];
  return [h("strong", { class: verb }, verb), " “", name, `” ${preposition} `, ...where];
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
  if (value !== null && value > 0)
    return [start, "the margin over ", name, ` is ${margin(value)}, less than was asked for.`];
  return [start, "the model says ", name, value === null ? "." : `; the margin over it is ${margin(value)}.`];
}
