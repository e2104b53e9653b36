/** Where nodes and their names go in the drawing of a neighbourhood. */

import { hierarchy, partition, type HierarchyRectangularNode } from "d3-hierarchy";
import type { Surroundings } from "./surroundings";

const RINGS = [0, 118, 204, 280] as const;
/** The ring of the last nodes that are drawn whatever is deleted. */
const OUTER = 2;
const EDGE = 46;
/** Room along its ring that a node takes. */
const ROOM = 27;

type Ring = 0 | 1 | 2 | 3;

interface Spot {
  position: number;
  ring: Ring;
  children: Spot[];
}

export interface Placed {
  position: number;
  ring: Ring;
  x: number;
  y: number;
}

export interface Layout {
  placed: Map<number, Placed>;
  /** Half the width of the drawing. It grows with the number of nodes, so that no two touch. */
  extent: number;
}

/**
 * Gives each neighbour a wedge as wide as it and its own neighbours need, and these the outer end of it. A third ring is there where an edge
 * is deleted that reaches that far.
 */
export function layOut(surroundings: Surroundings, drawn: Set<number>): Layout {
  const tree = hierarchy(treeOf(surroundings, drawn)).sum(ownAngle);
  const scale = Math.max(1, (tree.value ?? 0) / (2 * Math.PI));
  const wedges = partition<Spot>()
    .size([2 * Math.PI, 1])(tree)
    .descendants();
  const last = Math.max(OUTER, ...wedges.map(({ data }) => data.ring)) as Ring;
  return {
    placed: new Map(wedges.map((wedge) => [wedge.data.position, place(wedge, scale)])),
    extent: RINGS[last] * scale + EDGE,
  };
}

function treeOf({ target, distance, parent }: Surroundings, drawn: Set<number>): Spot {
  const root: Spot = { position: target, ring: 0, children: [] };
  const spots = new Map([[target, root]]);
  const byDistance = [...drawn].sort((a, b) => (distance.get(a) ?? 9) - (distance.get(b) ?? 9));
  for (const position of byDistance) {
    if (position === target) continue;
    const steps = distance.get(position);
    const spot: Spot = { position, ring: steps === 1 || steps === 3 ? steps : OUTER, children: [] };
    spots.set(position, spot);
    (spots.get(parent.get(position) ?? target) ?? root).children.push(spot);
  }
  return root;
}

/** The angle that a node needs beyond what its children take anyway. */
function ownAngle({ ring, children }: Spot): number {
  if (ring === 0) return 0;
  const taken = children.reduce((room, child) => room + ROOM / (RINGS[child.ring] || 1), 0);
  return Math.max(0, ROOM / RINGS[ring] - taken);
}

/** How far a node and its children are moved, to the middle of what their parent has. */
function shift({ data, parent }: HierarchyRectangularNode<Spot>): number {
  const last = parent?.children?.at(-1);
  return data.ring > 1 && parent && last ? shift(parent) + (parent.x1 - last.x1) / 2 : 0;
}

/** The middle of a wedge. */
function place(wedge: HierarchyRectangularNode<Spot>, scale: number): Placed {
  const { position, ring } = wedge.data;
  const angle = (wedge.x0 + wedge.x1) / 2 + shift(wedge);
  return { position, ring, x: RINGS[ring] * scale * Math.sin(angle), y: -RINGS[ring] * scale * Math.cos(angle) };
}

export interface Label {
  text: string;
  x: number;
  y: number;
}

/** A line from one node to another, between their rims. */
export interface Line {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
}

/** Radius of the disc of a node. */
export function radiusOf({ ring }: Placed): number {
  return ring === 0 ? 15 : 9.5;
}

/** The line between two nodes, from rim to rim. */
export function lineBetween(from: Placed, to: Placed): Line {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const at = (spot: Placed, distance: number) => [spot.x + (distance * dx) / length, spot.y + (distance * dy) / length];
  const [x1 = 0, y1 = 0] = at(from, radiusOf(from));
  const [x2 = 0, y2 = 0] = at(to, -radiusOf(to));
  return { x1, y1, x2, y2 };
}

/** Small boxes all along a line. */
function boxesAlong({ x1, y1, x2, y2 }: Line): Box[] {
  const steps = Math.ceil(Math.hypot(x2 - x1, y2 - y1) / 8);
  return Array.from({ length: steps + 1 }, (_, step) => {
    const share = steps === 0 ? 0 : step / steps;
    return box(x1 + share * (x2 - x1), y1 + share * (y2 - y1), 4, 4);
  });
}

/** Places names below, above or beside their nodes, and leaves out those that would cover a node, another name, or one of these lines. */
export function placeLabels({ placed, extent }: Layout, names: Map<number, string>, lines: Line[]): Label[] {
  const taken: Box[] = [...placed.values()].map(({ x, y, ring }) =>
    box(x, y, ring === 0 ? 20 : 12, ring === 0 ? 20 : 12),
  );
  taken.push(...lines.flatMap(boxesAlong));
  const labels: Label[] = [];
  for (const [position, text] of names) {
    const spot = placed.get(position);
    if (!spot) continue;
    const width = text.length * 3.6;
    const far = spot.ring === 0 ? 31 : 25;
    const tries = [
      [spot.x, spot.y + far],
      [spot.x, spot.y - far],
      [spot.x + width + far - 4, spot.y],
      [spot.x - width - far + 4, spot.y],
    ] as const;
    const fit = tries.find(
      ([x, y]) => Math.abs(x) + width < extent && taken.every((other) => !overlaps(other, box(x, y, width, 8))),
    );
    if (!fit) continue;
    taken.push(box(fit[0], fit[1], width, 8));
    labels.push({ text, x: fit[0], y: fit[1] });
  }
  return labels;
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

function box(x: number, y: number, halfWidth: number, halfHeight: number): Box {
  return { left: x - halfWidth, right: x + halfWidth, top: y - halfHeight, bottom: y + halfHeight };
}

function overlaps(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
