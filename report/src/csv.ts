/** Tables as CSV, safe to open in a spreadsheet. */

import type { Column } from "./columns";

/** The table of nodes: one line a node, in the order of the table. */
export function csv(columns: Column[], positions: ArrayLike<number>, several: boolean): string {
  const head = columns.map(({ title, model }) =>
    model && several ? `${title} (${model.letter}: ${model.model.name})` : title,
  );
  const rows = Array.from(positions, (position) => columns.map((column) => column.text(position)));
  return lines([head, ...rows]);
}

/** Rows of fields as lines. */
export function lines(rows: (string | number)[][]): string {
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

/** A number as it is; text quoted where it must be, and with an apostrophe in front where a spreadsheet would compute it. */
function field(value: string | number): string {
  if (typeof value === "number") return String(value);
  const harmless = /^\s*[=+\-@]|^[\t\r\n]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** Hands the reader a file. */
export function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
