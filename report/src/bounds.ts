/** Lower bounds on margins: their order, and how people read them. */

import { least } from "d3-array";
import type { Bound } from "./data";
import { margin } from "./words";

/** A number that sorts as the bound does: one that is only known to be positive comes after 0 and before all other positive ones. */
export function rank(bound: Bound): number {
  if (bound === "unknown") return -Infinity;
  return bound === "positive" ? Number.MIN_VALUE : bound;
}

/** The smallest of them, the first of several; null where there are none. */
export function smallest(bounds: (Bound | null)[]): Bound | null {
  return (
    least(
      bounds.filter((bound) => bound !== null),
      rank,
    ) ?? null
  );
}

/** “−0.250”, “> 0” or “?”. */
export function inShort(bound: Bound): string {
  if (bound === "unknown") return "?";
  return bound === "positive" ? "> 0" : atLeast(bound);
}

/** A number rounded down, so that it stays a lower bound. */
export function atLeast(value: number): string {
  const [size, digits] = [Math.abs(value), Math.abs(value) < 10 ? 1e3 : 10];
  return margin(size >= 1e-3 && size < 1e5 ? Math.floor(value * digits) / digits : value);
}
