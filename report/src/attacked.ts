/** One attack on all predictions: its flips, and the predictions that it changes. */

import { download, lines } from "./csv";
import type { Answer } from "./data";
import { h, named, type Child } from "./dom";
import type { Findings, Flip } from "./findings";
import { flipsByNode } from "./surroundings";
import { margin, plural } from "./words";

/** Entries of a list that are shown; the file has all of them. */
const SHOWN = 200;

/** What can be unfolded; made when it is. */
export function attackOf(findings: Findings, answer: Answer): HTMLElement {
  const [flips, changed] = [answer.flips ?? [], answer.changed ?? []];
  const changes = `${plural(changed.length, "prediction")} ${changed.length === 1 ? "changes" : "change"}`;
  const details = h(
    "details",
    { class: "attack" },
    h("summary", {}, `Q = ${answer.global}: ${plural(flips.length, "flip")}, and ${changes}`),
  );
  const fill = () =>
    details.append(
      h("div", { class: "pair" }, flipList(findings, flips), changedList(findings, changed)),
      h(
        "button",
        {
          type: "button",
          class: "screen-only",
          onclick: () => download(`attack-${answer.global}.csv`, attackFile(findings, flips, changed)),
        },
        "Download this attack as CSV",
      ),
    );
  details.addEventListener("toggle", fill, { once: true });
  return details;
}

/** The flips, those at one node together. */
function flipList(findings: Findings, flips: Flip[]): HTMLElement {
  const nodes = [...flipsByNode(flips)];
  return h(
    "div",
    {},
    h(
      "h4",
      {},
      flips.length === 0 ? "Without any flip" : `${plural(flips.length, "flip")} at ${plural(nodes.length, "node")}`,
    ),
    list(nodes, ([position, own]) => [
      node(findings, position),
      ": ",
      own.map((flip, place) => [place > 0 && ", ", flipInWords(findings, flip)]),
    ]),
  );
}

/** What a flip does at its node. */
function flipInWords(findings: Findings, [, attribute, to, from]: Flip): Child[] {
  const name = ["“", named(findings.attributeName(attribute)), "”"];
  if (from === undefined)
    return [h("strong", { class: to === 1 ? "add" : "remove" }, to === 1 ? "add" : "remove"), " ", name];
  const [verb, sort] = to > from ? ["raise", "add"] : ["lower", "remove"];
  return [h("strong", { class: sort }, verb), " ", name, ` from ${margin(from)} to ${margin(to)}`];
}

function changedList(findings: Findings, changed: number[]): HTMLElement {
  return h(
    "div",
    {},
    h("h4", {}, `${plural(changed.length, "prediction")} that ${changed.length === 1 ? "changes" : "change"}`),
    list(changed, (position) => node(findings, position)),
  );
}

/** The first entries as a list, and how many more there are. */
function list<T>(entries: T[], show: (entry: T) => Child): Child {
  const more = entries.length - SHOWN;
  return [
    h(
      "ul",
      { class: "scroll", tabindex: 0, role: "list" },
      entries.slice(0, SHOWN).map((entry) => h("li", {}, show(entry))),
    ),
    more > 0 && h("p", { class: "quiet" }, `… and ${more} more, which the CSV file has`),
  ];
}

/** A node by its name, which leads to its own view if it has one. */
function node(findings: Findings, position: number): Child[] {
  const [id, name] = [findings.id(position), named(findings.name(position))];
  return [
    findings.isSubject(position) ? h("a", { href: `#node-${id}` }, name) : name,
    findings.name(position) !== `node ${id}` && h("span", { class: "quiet" }, ` (node ${id})`),
  ];
}

/** A line for each flip, then one for each prediction that changes. */
function attackFile(findings: Findings, flips: Flip[], changed: number[]): string {
  const about = (position: number) => [findings.id(position), findings.name(position)];
  return lines([
    ["what", "node", "name", "attribute", "attribute_name", "to"],
    ...flips.map(([position, attribute, to]) => [
      "flip",
      ...about(position),
      attribute,
      findings.attributeName(attribute),
      to,
    ]),
    ...changed.map((position) => ["changes", ...about(position), "", "", ""]),
  ]);
}
