/** The neighbourhood of a node, drawn: the node in the middle, its neighbours around it, theirs around them. */

import { hierarchy, tree, type HierarchyPointNode } from "d3-hierarchy";
import { h, named, s, type Child } from "./dom";
import type { Findings, Flip, ModelFindings } from "./findings";
import { count, plural, short } from "./words";

const MOST_DRAWN = 60;
const RINGS = [0, 118, 204];
const EXTENT = 250;

interface Spot {
  position: number;
  children: Spot[];
}

/** Steps from the target to every node that is known to lie within a number of them, and the way there. */
export class Surroundings {
  readonly distance = new Map<number, number>();
  readonly parent = new Map<number, number>();

  constructor(
    readonly findings: Findings,
    readonly target: number,
    reach: number,
  ) {
    this.distance.set(target, 0);
    let frontier = [target];
    for (let steps = 1; steps <= reach; steps++)
      frontier = frontier.flatMap((position) => this.discover(position, steps));
  }

  private discover(from: number, steps: number): number[] {
    const found = this.findings.neighbours(from).filter((position) => !this.distance.has(position));
    for (const position of found) {
      this.distance.set(position, steps);
      this.parent.set(position, from);
    }
    return found;
  }

  at(steps: number): number[] {
    return [...this.distance].filter(([, distance]) => distance === steps).map(([position]) => position);
  }

  /** “a neighbour”, “two steps away”; empty for the target itself or where it is not known. */
  inWords(position: number): string {
    return ["", "a neighbour", "two steps away", "three steps away"][this.distance.get(position) ?? 0] ?? "";
  }
}

export function neighbourhood(findings: Findings, model: ModelFindings, target: number, flips: Flip[]): HTMLElement {
  const reach = Math.min(2, model.model.layers);
  const surroundings = new Surroundings(findings, target, reach);
  const flipped = flipsByNode(flips);
  const drawn = chooseDrawn(surroundings, [...flipped.keys()], reach);
  const spots = layOut(surroundings, drawn);
  const hint = h("p", { class: "hint", "aria-hidden": "true" }, HINT);
  const svg = s(
    "svg",
    {
      viewBox: `${-EXTENT} ${-EXTENT} ${2 * EXTENT} ${2 * EXTENT}`,
      role: "group",
      "aria-label": `Neighbourhood of ${short(findings.name(target))}`,
    },
    s("g", { class: "links" }, links(findings, spots)),
    s(
      "g",
      { class: "spots" },
      [...spots.values()].map((spot) =>
        drawSpot(findings, model, spot, flipped.get(spot.data.position)?.length ?? 0, hint),
      ),
    ),
    s(
      "g",
      { class: "labels" },
      [...spots.values()].map((spot) =>
        spot.depth === 0 || flipped.has(spot.data.position) ? spotLabel(findings, spot) : null,
      ),
    ),
  );
  return h(
    "div",
    { class: "neighbourhood" },
    svg,
    hint,
    classLegend(findings, model, drawn),
    h("p", { class: "quiet" }, drawnNote(findings, surroundings, drawn, reach, model.model.layers)),
  );
}

const HINT = "Point at a node to see its name.";

export function flipsByNode(flips: Flip[]): Map<number, Flip[]> {
  const byNode = new Map<number, Flip[]>();
  for (const flip of flips) byNode.set(flip[0], [...(byNode.get(flip[0]) ?? []), flip]);
  return byNode;
}

/** The target, every node with flips and the way to it, then the nearest others, up to what can be read. */
function chooseDrawn(surroundings: Surroundings, flipped: number[], reach: number): Set<number> {
  const drawn = new Set([surroundings.target]);
  for (const position of flipped) {
    const way = surroundings.parent.get(position);
    if (way !== undefined) drawn.add(way);
    drawn.add(position);
  }
  for (let steps = 1; steps <= reach; steps++)
    for (const position of surroundings.at(steps)) {
      const way = surroundings.parent.get(position) ?? surroundings.target;
      if (drawn.size < MOST_DRAWN && drawn.has(way)) drawn.add(position);
    }
  return drawn;
}

type Placed = HierarchyPointNode<Spot>;

/** A place for each node that is drawn: angle and ring in a tidy tree around the target. */
function layOut(surroundings: Surroundings, drawn: Set<number>): Map<number, Placed> {
  const spots = new Map([...drawn].map((position): [number, Spot] => [position, { position, children: [] }]));
  const root = spots.get(surroundings.target) ?? { position: surroundings.target, children: [] };
  for (const [position, spot] of spots)
    if (spot !== root)
      (spots.get(surroundings.parent.get(position) ?? surroundings.target) ?? root).children.push(spot);
  const placed = tree<Spot>()
    .size([2 * Math.PI, 1])
    .separation((a, b) => (a.parent === b.parent ? 1 : 1.6) / Math.max(1, a.depth))(hierarchy(root));
  return new Map(placed.descendants().map((spot) => [spot.data.position, spot]));
}

function point(spot: Placed): [x: number, y: number] {
  const radius = RINGS[Math.min(spot.depth, 2)] ?? 0;
  return [radius * Math.sin(spot.x), -radius * Math.cos(spot.x)];
}

/** Every edge between nodes that are drawn, once. */
function links(findings: Findings, spots: Map<number, Placed>): Child[] {
  const seen = new Set<string>();
  const lines: Child[] = [];
  for (const [from, spot] of spots)
    for (const to of findings.neighbours(from)) {
      const other = spots.get(to);
      const key = from < to ? `${from} ${to}` : `${to} ${from}`;
      if (!other || seen.has(key)) continue;
      seen.add(key);
      const [[x1, y1], [x2, y2]] = [point(spot), point(other)];
      lines.push(s("line", { x1, y1, x2, y2 }));
    }
  return lines;
}

function drawSpot(
  findings: Findings,
  model: ModelFindings,
  spot: Placed,
  flips: number,
  hint: HTMLElement,
): SVGElement {
  const { position } = spot.data;
  const predicted = model.predicted(position);
  const radius = spot.depth === 0 ? 15 : 9.5;
  const [x, y] = point(spot);
  const words = spotInWords(findings, predicted, position, flips);
  const content = [
    s("title", {}, words),
    flips > 0 && s("circle", { r: radius + 4.5, class: "flipped" }),
    s("circle", { r: radius, class: predicted === null ? "unknown" : `class-${predicted % 10}` }),
    s("text", { class: "class", dy: "0.35em" }, predicted === null ? "·" : predicted),
    flips > 0 && badge(radius, flips),
  ];
  const show = {
    onpointerenter: () => (hint.textContent = words),
    onfocusin: () => (hint.textContent = words),
    onpointerleave: () => (hint.textContent = HINT),
  };
  const place = { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, ...show };
  return spot.depth > 0 && findings.isSubject(position)
    ? s("a", { href: `#node-${findings.id(position)}`, "aria-label": words, ...place }, content)
    : s("g", { role: "img", "aria-label": words, ...place }, content);
}

/** The number of flips at a node, beside it. */
function badge(radius: number, flips: number): SVGElement {
  const at = radius * 0.75 + 4.5;
  return s(
    "g",
    { class: "badge", transform: `translate(${at} ${-at})` },
    s("circle", { r: 8 }),
    s("text", { dy: "0.35em" }, flips),
  );
}

function spotInWords(findings: Findings, predicted: number | null, position: number, flips: number): string {
  const parts = [
    short(findings.fullName(position), 80),
    predicted === null ? "no prediction in this report" : `predicted ${short(findings.className(predicted))}`,
    ...(flips > 0 ? [plural(flips, "flip")] : []),
  ];
  return parts.join(", ");
}

function spotLabel(findings: Findings, spot: Placed): SVGElement {
  const [x, y] = point(spot);
  const radius = spot.depth === 0 ? 15 : 9.5;
  const anchor = Math.abs(x) < 90 ? "middle" : x < 0 ? "start" : "end";
  const from = anchor === "middle" ? x : Math.sign(x) * Math.min(Math.abs(x) + 14, EXTENT - 4);
  return s(
    "text",
    { x: from.toFixed(1), y: (y + radius + 18).toFixed(1), "text-anchor": anchor },
    short(findings.name(spot.data.position), 24),
  );
}

function classLegend(findings: Findings, model: ModelFindings, drawn: Set<number>): HTMLElement {
  const classes = [...new Set([...drawn].map((position) => model.predicted(position)))];
  const known = classes.filter((number) => number !== null).sort((a, b) => a - b);
  return h(
    "ul",
    { class: "legend classes" },
    known.map((number) =>
      h(
        "li",
        {},
        h("span", { class: `disc class-${number % 10}`, "aria-hidden": "true" }, number),
        named(findings.className(number).slice(0, 200)),
      ),
    ),
    classes.includes(null) &&
      h("li", {}, h("span", { class: "disc unknown", "aria-hidden": "true" }, "·"), "not in this report"),
  );
}

/** How much of the neighbourhood the drawing leaves out. */
function drawnNote(
  findings: Findings,
  surroundings: Surroundings,
  drawn: Set<number>,
  reach: number,
  layers: number,
): string {
  const near = [...drawn].filter((position) => surroundings.distance.get(position) === 1).length;
  const far = [...drawn].filter((position) => surroundings.distance.get(position) === 2).length;
  const degree = findings.degree(surroundings.target);
  const complete =
    surroundings.at(1).every((position) => findings.neighbours(position).length >= findings.degree(position)) &&
    surroundings.at(1).length === degree;
  const beyond = surroundings.at(2).length;
  const parts = [
    near < degree ? `${count(near)} of ${plural(degree, "neighbour")}` : "",
    reach > 1 && (far < beyond || !complete)
      ? `${count(far)} of ${complete ? "" : "at least "}${plural(beyond, "node")} two steps away`
      : "",
  ].filter(Boolean);
  const left = parts.length > 0 ? `Drawn are ${parts.join(" and ")}. ` : "";
  return `${left}The colour and number of a node are those of its predicted class.${layers > 2 ? ` The model sees ${layers} steps far; two are drawn.` : ""}`;
}
