/** The neighbourhood of a node, drawn: the node in the middle, its neighbours around it, theirs around them. */

import { h, named, s, type Child } from "./dom";
import type { Deletion, Evidence, Findings, ModelFindings } from "./findings";
import { layOut, lineBetween, placeLabels, radiusOf, type Line, type Placed } from "./layout";
import { flipsByNode, Surroundings } from "./surroundings";
import { count, plural, short } from "./words";

const CLASS_COLOURS = 10;
const HINT = "Point at a node to see its name.";

export function neighbourhood(
  findings: Findings,
  model: ModelFindings,
  target: number,
  evidence: Evidence | null,
): HTMLElement {
  const { flips, deletions } = evidence ?? { flips: [], deletions: [] };
  const surroundings = new Surroundings(findings, target, Math.min(2, model.model.layers), deletions);
  const flipped = flipsByNode(flips);
  const ends = deletions.flat();
  const drawn = surroundings.choose([...flipped.keys(), ...ends]);
  const layout = layOut(surroundings, drawn);
  const { placed, extent } = layout;
  const changed = [target, ...flipped.keys(), ...ends];
  const named = new Map(changed.map((position) => [position, short(findings.name(position), 22)]));
  const hint = h("p", { class: "hint", "aria-hidden": "true" }, HINT);
  const spots = [...placed.values()].map((spot) => {
    const at = { flips: flipped.get(spot.position)?.length ?? 0, deletions: countOf(ends, spot.position) };
    return drawSpot(findings, model, spot, at, hint);
  });
  const unlinked = deletions.map((ends) => new Unlinked(findings, placed, ends));
  const lines = unlinked.flatMap(({ line }) => line ?? []);
  const labels = placeLabels(layout, named, lines).map(({ text, x, y }) => s("text", { x, y, dy: "0.35em" }, text));
  const svg = s(
    "svg",
    {
      viewBox: [-extent, -extent, 2 * extent, 2 * extent].join(" "),
      role: "group",
      "aria-label": `Neighbourhood of ${short(findings.name(target))}`,
    },
    s("g", { class: "links" }, links(findings, placed, deletions)),
    s(
      "g",
      { class: "deleted" },
      unlinked.map((edge) => edge.draw(hint)),
    ),
    s("g", { class: "spots" }, spots),
    s("g", { class: "labels", "aria-hidden": "true" }, labels),
  );
  return h(
    "div",
    { class: "neighbourhood" },
    svg,
    hint,
    legend(findings, model, drawn, deletions.length > 0),
    h(
      "p",
      { class: "quiet" },
      drawnNote(findings, surroundings, drawn, model.model.layers),
      flips.length > 0 && " A ring and a count mark the flips of the witness.",
    ),
  );
}

function countOf(numbers: number[], wanted: number): number {
  return numbers.filter((number) => number === wanted).length;
}

/** What an edge is called, whichever end comes first. */
function edgeKey(from: number, to: number): string {
  return from < to ? `${from} ${to}` : `${to} ${from}`;
}

/** An edge that is deleted: where it was, and what it is called. */
class Unlinked {
  readonly line: Line | null;
  private readonly words: string;

  constructor(findings: Findings, placed: Map<number, Placed>, [a, b]: Deletion) {
    const [from, to] = [placed.get(a), placed.get(b)];
    this.line = from && to ? lineBetween(from, to) : null;
    this.words = `deleted: ${short(findings.fullName(a), 60)} – ${short(findings.fullName(b), 60)}`;
  }

  /** A dashed line with a cross in its middle. */
  draw(hint: HTMLElement): Child {
    if (!this.line) return null;
    const { x1, y1, x2, y2 } = this.line;
    return s(
      "g",
      {
        role: "img",
        "aria-label": this.words,
        onpointerenter: () => (hint.textContent = this.words),
        onpointerleave: () => (hint.textContent = HINT),
      },
      s("title", {}, this.words),
      s("line", { x1, y1, x2, y2, class: "room" }),
      s("line", { x1, y1, x2, y2, class: "gone" }),
      cross((x1 + x2) / 2, (y1 + y2) / 2),
    );
  }
}

function cross(x: number, y: number): SVGElement {
  return s("path", { class: "cross", d: "M-5 -5L5 5M-5 5L5 -5", transform: `translate(${x} ${y})` });
}

/** Every edge between nodes that are drawn, once, but for those that are deleted. */
function links(findings: Findings, placed: Map<number, Placed>, deletions: Deletion[]): Child[] {
  const seen = new Set(deletions.map(([a, b]) => edgeKey(a, b)));
  const lines: Child[] = [];
  for (const [from, { x: x1, y: y1 }] of placed)
    for (const to of findings.neighbours(from)) {
      const other = placed.get(to);
      const key = edgeKey(from, to);
      if (!other || seen.has(key)) continue;
      seen.add(key);
      lines.push(s("line", { x1, y1, x2: other.x, y2: other.y }));
    }
  return lines;
}

/** How many flips there are at a node, and deletions of its edges. */
interface ChangesAt {
  flips: number;
  deletions: number;
}

function drawSpot(
  findings: Findings,
  model: ModelFindings,
  spot: Placed,
  { flips, deletions }: ChangesAt,
  hint: HTMLElement,
): SVGElement {
  const { position, ring, x, y } = spot;
  const predicted = model.predicted(position);
  const radius = radiusOf(spot);
  const words = spotInWords(findings, predicted, position, { flips, deletions });
  const content = [
    s("title", {}, words),
    flips > 0 && s("circle", { r: radius + 4, class: "flipped" }),
    s("circle", { r: radius, class: classStyle(predicted) }),
    s("text", { class: "class", dy: "0.35em", "aria-hidden": "true" }, predicted ?? "·"),
    flips > 0 && badge(radius, flips),
  ];
  const say = () => (hint.textContent = words);
  const place = {
    transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
    "aria-label": words,
    onpointerenter: say,
    onfocusin: say,
    onpointerleave: () => (hint.textContent = HINT),
  };
  return ring > 0 && findings.isSubject(position)
    ? s("a", { href: `#node-${findings.id(position)}`, ...place }, content)
    : s("g", { role: "img", ...place }, content);
}

function classStyle(number: number | null): string {
  return number === null ? "unknown" : `class-${number % CLASS_COLOURS}`;
}

/** The number of flips at a node, beside it. */
function badge(radius: number, flips: number): SVGElement {
  const at = radius * 0.7 + 4;
  return s(
    "g",
    { class: "badge", "aria-hidden": "true", transform: `translate(${at} ${-at})` },
    s("circle", { r: 7.5 }),
    s("text", { dy: "0.35em" }, flips),
  );
}

function spotInWords(
  findings: Findings,
  predicted: number | null,
  position: number,
  { flips, deletions }: ChangesAt,
): string {
  const words = [
    short(findings.fullName(position), 80),
    predicted === null ? "no prediction in this report" : `predicted ${short(findings.className(predicted))}`,
    ...(flips > 0 ? [plural(flips, "flip")] : []),
    ...(deletions > 0 ? [`${plural(deletions, "edge")} deleted`] : []),
  ];
  return words.join(", ");
}

/** Which colour and number stand for which class, and what a deleted edge looks like, if there is one. */
function legend(findings: Findings, model: ModelFindings, drawn: Set<number>, unlinked: boolean): HTMLElement {
  const classes = [...new Set([...drawn].map((position) => model.predicted(position)))];
  const known = classes.filter((number) => number !== null).sort((a, b) => a - b);
  const entry = (number: number | null, text: Child) =>
    h("li", {}, h("span", { class: `disc ${classStyle(number)}`, "aria-hidden": "true" }, number ?? "·"), text);
  return h(
    "ul",
    { class: "legend classes" },
    known.map((number) => entry(number, named(findings.className(number)))),
    classes.includes(null) && entry(null, "not in this report"),
    unlinked && h("li", {}, deletedSample(), "edge that the witness deletes"),
  );
}

function deletedSample(): SVGElement {
  return s(
    "svg",
    { class: "deleted", viewBox: "0 -7 34 14", width: 34, height: 14, "aria-hidden": "true" },
    s("line", { x1: 0, y1: 0, x2: 34, y2: 0, class: "gone" }),
    cross(17, 0),
  );
}

/** What the drawing shows, and how much it leaves out. */
function drawnNote(findings: Findings, surroundings: Surroundings, drawn: Set<number>, layers: number): string {
  const drawnAt = (steps: number) => surroundings.at(steps).filter((position) => drawn.has(position)).length;
  const degree = findings.degree(surroundings.target);
  const [complete, beyond] = [surroundings.isComplete(), surroundings.at(2).length];
  const cutNear = drawnAt(1) < degree;
  const cutFar = surroundings.reach > 1 && (drawnAt(2) < beyond || !complete);
  const cut = [
    ...(cutNear ? [`${count(drawnAt(1))} of ${plural(degree, "neighbour")}`] : []),
    ...(cutFar
      ? [`${count(drawnAt(2))} of ${complete ? "" : "at least "}${plural(beyond, "node")} two steps away`]
      : []),
  ];
  return [
    cut.length > 0 ? `Drawn: ${cut.join(" and ")}.` : "",
    "Colour and number stand for the predicted class.",
    layers > 2 ? `The model sees ${layers} steps far; two are drawn.` : "",
  ]
    .filter(Boolean)
    .join(" ");
}
