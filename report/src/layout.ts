/** Where nodes and their names go in the drawing of a neighbourhood. */

import { hierarchy, partition, type HierarchyRectangularNode } from "d3-hierarchy";
import type { Surroundings } from "./surroundings";

const RINGS = [0, 118, 204] as const;
const EDGE = 46;
/** Room along its ring that a node takes. */
const ROOM = 27;

interface Spot {
  position: number;
  ring: 0 | 1 | 2;
  children: Spot[];
}

export interface Placed {
  position: number;
  ring: 0 | 1 | 2;
  x: number;
  y: number;
}

export interface Layout {
  placed: Map<number, Placed>;
  /** Half the width of the drawing. It grows with the number of nodes, so that no two touch. */
  extent: number;
}

/** Gives each neighbour a wedge as wide as it and its own neighbours need, and these the outer end of it. */
export function layOut(surroundings: Surroundings, drawn: Set<number>): Layout {
  const tree = hierarchy(treeOf(surroundings, drawn)).sum(ownAngle);
  const scale = Math.max(1, (tree.value ?? 0) / (2 * Math.PI));
  const wedges = partition<Spot>()
    .size([2 * Math.PI, 1])(tree)
    .descendants();
  return {
    placed: new Map(wedges.map((wedge) => [wedge.data.position, place(wedge, scale)])),
    extent: RINGS[2] * scale + EDGE,
  };
}

function treeOf({ target, distance, parent }: Surroundings, drawn: Set<number>): Spot {
  const root: Spot = { position: target, ring: 0, children: [] };
  const spots = new Map([[target, root]]);
  const byDistance = [...drawn].sort((a, b) => (distance.get(a) ?? 9) - (distance.get(b) ?? 9));
  for (const position of byDistance) {
    if (position === target) continue;
    const spot: Spot = { position, ring: distance.get(position) === 1 ? 1 : 2, children: [] };
    spots.set(position, spot);
    (spots.get(parent.get(position) ?? target) ?? root).children.push(spot);
  }
  return root;
}

/** The angle that a node needs beyond what its children take anyway. */
function ownAngle({ ring, children }: Spot): number {
  if (ring === 0) return 0;
  return ring === 2 ? ROOM / RINGS[2] : Math.max(0, ROOM / RINGS[1] - (children.length * ROOM) / RINGS[2]);
}

/** The middle of a wedge; children are moved to the middle of what their parent has. */
function place(wedge: HierarchyRectangularNode<Spot>, scale: number): Placed {
  const { position, ring } = wedge.data;
  const last = wedge.parent?.children?.at(-1);
  const spare = ring === 2 && wedge.parent && last ? wedge.parent.x1 - last.x1 : 0;
  const angle = (wedge.x0 + wedge.x1 + spare) / 2;
  return { position, ring, x: RINGS[ring] * scale * Math.sin(angle), y: -RINGS[ring] * scale * Math.cos(angle) };
}

export interface Label {
  text: string;
  x: number;
  y: number;
}

/** Places names below, above or beside their nodes, and leaves out those that would cover something. */
export function placeLabels({ placed, extent }: Layout, names: Map<number, string>): Label[] {
  const taken: Box[] = [...placed.values()].map(({ x, y, ring }) =>
    box(x, y, ring === 0 ? 20 : 12, ring === 0 ? 20 : 12),
  );
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
