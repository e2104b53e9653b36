/** What lies around a node, and how far away. */

import type { Deletion, Findings, Flip } from "./findings";

const MOST_DRAWN = 56;
const STEPS = ["", "a neighbour", "two steps away", "three steps away", "four steps away"];

/** Steps from a node to every other that is known to lie within a number of them, or at an edge that is deleted there, and the way there. */
export class Surroundings {
  readonly distance = new Map<number, number>();
  readonly parent = new Map<number, number>();
  /** The other ends of the edges that are deleted at a node: of a node with very many neighbours the report has only some. */
  private readonly unlinked = new Map<number, number[]>();

  constructor(
    private readonly findings: Findings,
    readonly target: number,
    readonly reach: number,
    deletions: Deletion[] = [],
  ) {
    for (const [a, b] of deletions) {
      this.unlinked.set(a, [...(this.unlinked.get(a) ?? []), b]);
      this.unlinked.set(b, [...(this.unlinked.get(b) ?? []), a]);
    }
    this.distance.set(target, 0);
    let frontier = [target];
    for (let steps = 1; steps <= reach; steps++)
      frontier = frontier.flatMap((position) => this.discover(position, steps));
    for (const position of frontier) this.add(this.unlinked.get(position) ?? [], position, reach + 1);
  }

  private discover(from: number, steps: number): number[] {
    return this.add([...this.findings.neighbours(from), ...(this.unlinked.get(from) ?? [])], from, steps);
  }

  /** Takes in those of these that are not known yet, and gives them. */
  private add(near: number[], from: number, steps: number): number[] {
    const found = [...new Set(near)].filter((position) => !this.distance.has(position));
    for (const position of found) {
      this.distance.set(position, steps);
      this.parent.set(position, from);
    }
    return found;
  }

  at(steps: number): number[] {
    return [...this.distance].filter(([, distance]) => distance === steps).map(([position]) => position);
  }

  /** “a neighbour”, “two steps away”; empty for the node itself, or where it is not known. */
  inWords(position: number): string {
    return STEPS[this.distance.get(position) ?? 0] ?? "";
  }

  /** Whether all edges of the node and of its neighbours are in the report. */
  isComplete(): boolean {
    const known = (position: number) => this.findings.neighbours(position).length >= this.findings.degree(position);
    return known(this.target) && this.at(1).every(known);
  }

  /** The nodes to draw: the node itself, those that must be there with the way to them, then the nearest others. */
  choose(required: Iterable<number>): Set<number> {
    const chosen = new Set([this.target]);
    for (const position of required) {
      for (let at: number | undefined = position; at !== undefined; at = this.parent.get(at)) chosen.add(at);
    }
    for (const [position, distance] of this.distance) {
      if (distance > this.reach) continue;
      const way = this.parent.get(position) ?? this.target;
      if (chosen.size < MOST_DRAWN && chosen.has(way)) chosen.add(position);
    }
    return chosen;
  }
}

export function flipsByNode(flips: Flip[]): Map<number, Flip[]> {
  const byNode = new Map<number, Flip[]>();
  for (const flip of flips) byNode.set(flip[0], [...(byNode.get(flip[0]) ?? []), flip]);
  return byNode;
}
