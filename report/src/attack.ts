/** What an attacker does, counted and in words. */

import { plural } from "./words";

/** Flips attributes, deletes edges, or both at once. */
export type Attack = "flips" | "deletions" | "both";

/** “flip”, “deletion” or “change”. */
export function one(attack: Attack): string {
  return { flips: "flip", deletions: "deletion", both: "change" }[attack];
}

/** “flips”, “deletions” or “flips and deletions”. */
export function many(attack: Attack): string {
  return { flips: "flips", deletions: "deletions", both: "flips and deletions" }[attack];
}

/** What budgets count and searches for radii vary: “flip”, or “deletion” where edges may be deleted. */
export function counted(attack: Attack): string {
  return attack === "flips" ? "flip" : "deletion";
}

/** “flips”, “deletions”, or, where some models are asked about the one and some about the other, “flips or deletions”. */
export function anyOf(attacks: Attack[]): string {
  return [...new Set(attacks.map((attack) => `${counted(attack)}s`))].join(" or ");
}

/** What the sets of some models are made of: “flips”, “flips or deletions”, “flips, deletions or both”. */
export function setsOf(attacks: Attack[]): string {
  const [first, ...others] = new Set(attacks);
  if (first === undefined || others.length === 0) return many(first ?? "flips");
  return [first, ...others].includes("both") ? "flips, deletions or both" : "flips or deletions";
}

/** “2 flips”, “1 deletion”, “2 flips and 1 deletion”. */
export function changes(flips: number, deletions: number): string {
  const parts = [
    flips > 0 || deletions === 0 ? plural(flips, "flip") : "",
    deletions > 0 ? plural(deletions, "deletion") : "",
  ];
  return parts.filter(Boolean).join(" and ");
}
