/** The neighbourhood of a node, drawn: the node in the middle, its neighbours around it, theirs around them. */

import { h, named, s, type Child } from "./dom";
import type { Findings, Flip, ModelFindings } from "./findings";
import { layOut, placeLabels, type Placed } from "./layout";
import { flipsByNode, Surroundings } from "./surroundings";
import { count, plural, short } from "./words";

const CLASS_COLOURS = 10;
const HINT = "Point at a node to see its name.";

export function neighbourhood(findings: Findings, model: ModelFindings, target: number, flips: Flip[]): HTMLElement {
  const surroundings = new Surroundings(findings, target, Math.min(2, model.model.layers));
  const flipped = flipsByNode(flips);
  const drawn = surroundings.choose(flipped.keys());
  const layout = layOut(surroundings, drawn);
  const { placed, extent } = layout;
  const named = new Map([target, ...flipped.keys()].map((position) => [position, short(findings.name(position), 22)]));
  const hint = h("p", { class: "hint", "aria-hidden": "true" }, HINT);
  const spots = [...placed.values()].map((spot) =>
    drawSpot(findings, model, spot, flipped.get(spot.position)?.length ?? 0, hint),
  );
  const labels = placeLabels(layout, named).map(({ text, x, y }) => s("text", { x, y, dy: "0.35em" }, text));
  const svg = s(
    "svg",
    {
      viewBox: [-extent, -extent, 2 * extent, 2 * extent].join(" "),
      role: "group",
      "aria-label": `Neighbourhood of ${short(findings.name(target))}`,
    },
    s("g", { class: "links" }, links(findings, placed)),
    s("g", { class: "spots" }, spots),
    s("g", { class: "labels", "aria-hidden": "true" }, labels),
  );
  return h(
    "div",
    { class: "neighbourhood" },
    svg,
    hint,
    classLegend(findings, model, drawn),
    h(
      "p",
      { class: "quiet" },
      drawnNote(findings, surroundings, drawn, model.model.layers),
      flips.length > 0 && " A ring and a count mark the flips of the witness.",
    ),
  );
}

/** Every edge between nodes that are drawn, once. */
function links(findings: Findings, placed: Map<number, Placed>): Child[] {
  const seen = new Set<string>();
  const lines: Child[] = [];
  for (const [from, { x: x1, y: y1 }] of placed)
    for (const to of findings.neighbours(from)) {
      const other = placed.get(to);
      const key = from < to ? `${from} ${to}` : `${to} ${from}`;
      if (!other || seen.has(key)) continue;
      seen.add(key);
      lines.push(s("line", { x1, y1, x2: other.x, y2: other.y }));
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
  const { position, ring, x, y } = spot;
  const predicted = model.predicted(position);
  const radius = ring === 0 ? 15 : 9.5;
  const words = spotInWords(findings, predicted, position, flips);
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

function spotInWords(findings: Findings, predicted: number | null, position: number, flips: number): string {
  const words = [
    short(findings.fullName(position), 80),
    predicted === null ? "no prediction in this report" : `predicted ${short(findings.className(predicted))}`,
    ...(flips > 0 ? [plural(flips, "flip")] : []),
  ];
  return words.join(", ");
}

function classLegend(findings: Findings, model: ModelFindings, drawn: Set<number>): HTMLElement {
  const classes = [...new Set([...drawn].map((position) => model.predicted(position)))];
  const known = classes.filter((number) => number !== null).sort((a, b) => a - b);
  const entry = (number: number | null, text: Child) =>
    h("li", {}, h("span", { class: `disc ${classStyle(number)}`, "aria-hidden": "true" }, number ?? "·"), text);
  return h(
    "ul",
    { class: "legend classes" },
    known.map((number) => entry(number, named(findings.className(number)))),
    classes.includes(null) && entry(null, "not in this report"),
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
