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

/** A number rounded down to the digits that `margin` shows, so that it stays a lower bound. */
export function atLeast(value: number): string {
  if (value === 0) return margin(value);
  const size = Math.abs(value);
  const power = Math.floor(Math.log10(size));
  const decimals = size < 1e-3 || size >= 1e5 ? 1 - power : size < 10 ? 3 : 1;
  // Two factors, since doubles do not hold all powers of ten; the last digits are not rounded down, so that 1 reads 1.000.
  const [up, down] = decimals > 300 ? [1e300, 10 ** (decimals - 300)] : [10 ** decimals, 1];
  return margin(Math.floor(value * up * down + 1e-6) / up / down);
}
