/** A witness in words: which flips, where, which edges, and what they lead to. */

import { changes, one, type Attack } from "./attack";
import { h, named, type Child } from "./dom";
import type { Deletion, Evidence, Findings, Flip } from "./findings";
import { flipsByNode, type Surroundings } from "./surroundings";
import { margin } from "./words";

/** The flips in words, those at one node together, the node itself first; then the edges that are deleted, its own first. */
export function witness(
  findings: Findings,
  attack: Attack,
  surroundings: Surroundings,
  evidence: Evidence,
): HTMLElement {
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
    evidence.deletions.length > 0 &&
      h(
        "ul",
        {},
        endsInOrder(surroundings, evidence.deletions).map((ends) =>
          h("li", {}, deletionInWords(findings, surroundings, ends)),
        ),
      ),
    h("p", {}, outcome(findings, attack, evidence)),
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

/** Edges of the node first, then those nearest to it; of each edge the nearer end first, which others are unlinked from. */
function endsInOrder({ distance }: Surroundings, deletions: Deletion[]): Deletion[] {
  const away = (position: number) => distance.get(position) ?? Infinity;
  const ordered = deletions.map(([a, b]): Deletion => (away(b) < away(a) ? [b, a] : [a, b]));
  return ordered.sort(([a], [b]) => (away(a) === away(b) ? 0 : away(a) - away(b)));
}

function deletionInWords(findings: Findings, surroundings: Surroundings, [a, b]: Deletion): Child[] {
  const where = (position: number) =>
    position === surroundings.target ? ["this node"] : elsewhere(findings, surroundings, position);
  return [h("strong", { class: "unlink" }, "unlink"), " ", ...where(b), " from ", ...where(a)];
}

function elsewhere(findings: Findings, surroundings: Surroundings, position: number): Child[] {
  const name = named(findings.name(position));
  const where = surroundings.inWords(position);
  const id = findings.id(position);
  const more = [findings.name(position) === `node ${id}` ? "" : `node ${id}`, where].filter(Boolean).join(", ");
  return [
    "“",
    findings.isSubject(position) ? h("a", { href: `#node-${id}` }, name) : name,
    "”",
    h("span", { class: "quiet" }, more && ` (${more})`),
  ];
}

/** What the flips and deletions lead to. */
function outcome(
  findings: Findings,
  attack: Attack,
  { flips, deletions, size, overtakes, margin: value }: Evidence,
): Child[] {
  const all = changes(flips.length, deletions.length);
  const start =
    size === 0
      ? `Without any ${one(attack)} `
      : size === 1
        ? `After this ${all.replace("1 ", "")} `
        : `After these ${all} `;
  if (overtakes === null) return [start, "the class no longer holds."];
  const name = h("strong", {}, named(findings.className(overtakes)));
  if (value === 0) return [start, name, " is level with the certified class: a tie, and nothing says which one wins."];
  if (value !== null && value > 0)
    return [start, "the margin over ", name, ` is ${margin(value)}, less than was asked for.`];
  return [start, "the model says ", name, value === null ? "." : `; the margin over it is ${margin(value)}.`];
}
