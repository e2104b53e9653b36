/** The table of nodes. Only the rows in sight are in the page, however many there are. */

import { modelLetter } from "./charts";
import { columnsOf, type Column } from "./columns";
import { csv, download } from "./csv";
import { h, named } from "./dom";
import type { Findings } from "./findings";
import { filterBar } from "./filters";
import { Selection } from "./selection";
import { count, plural } from "./words";

const ROW_HEIGHT = 36;
const SPARE_ROWS = 8;
const PRINTED_ROWS = 50;

export class NodeTable {
  readonly element: HTMLElement;
  readonly selection: Selection;
  private readonly columns: Column[];
  private readonly several: boolean;
  private readonly body = h("tbody");
  private readonly table: HTMLTableElement;
  private readonly scroller: HTMLElement;
  private readonly status = h("p", { class: "status", role: "status", "aria-live": "polite" });
  private readonly printNote = h("p", { class: "print-only note" });
  private readonly sortButtons: { cell: HTMLElement; column: number }[] = [];
  private readonly paper = matchMedia("print");
  private active = 0;
  private drawn = { first: -1, last: -1 };

  constructor(
    private readonly findings: Findings,
    private readonly open: (position: number) => void,
  ) {
    this.several = findings.models.length > 1;
    this.columns = columnsOf(findings);
    this.selection = new Selection(findings, this.columns);
    this.table = this.makeTable();
    this.scroller = h("div", { class: "scroll rows" }, this.table);
    this.element = this.makeSection();
    this.listen();
    this.update();
  }

  /** The node a number of places after (or before) another one, in the present order. */
  beside(position: number, step: number): number | null {
    const at = this.selection.positions.indexOf(position);
    return at < 0 ? null : (this.selection.positions[at + step] ?? null);
  }

  /** “12 of 340”: where a node stands in the present order. */
  place(position: number): string | null {
    const at = this.selection.positions.indexOf(position);
    return at < 0 ? null : `${count(at + 1)} of ${count(this.selection.positions.length)}`;
  }

  /** Makes a node the active row, and brings it into sight. */
  activate(position: number): void {
    const at = this.selection.positions.indexOf(position);
    if (at >= 0) this.moveTo(at);
  }

  private makeSection(): HTMLElement {
    const save = () => download("nodes.csv", csv(this.columns, this.selection.positions, this.several));
    return h(
      "section",
      { "aria-labelledby": "nodes", class: "nodes" },
      h("h2", { id: "nodes" }, "Nodes"),
      filterBar(this.findings, this.selection, () => this.update()),
      h("div", { class: "table-head" }, this.status, h("button", { type: "button", onclick: save }, "Download as CSV")),
      this.printNote,
      this.scroller,
      h(
        "p",
        { class: "quiet screen-only", id: "keys" },
        "Select a row, or move with the arrow keys and press Enter, to see a node’s neighbourhood, margins and witness.",
      ),
    );
  }

  private makeTable(): HTMLTableElement {
    const sort = this.columns.map((column, number) => this.headCell(column, number));
    return h(
      "table",
      {
        role: "grid",
        tabindex: 0,
        "aria-readonly": "true",
        "aria-describedby": "keys",
        style: `width: ${this.columns.reduce((sum, { width }) => sum + width, 0)}px`,
      },
      h("caption", { class: "unseen" }, "Nodes with their verdicts"),
      h(
        "colgroup",
        {},
        this.columns.map(({ width }) => h("col", { style: `width: ${width}px` })),
      ),
      h("thead", {}, this.several && this.modelRow(), h("tr", {}, sort)),
      this.body,
    );
  }

  /** Which columns belong to which model. */
  private modelRow(): HTMLElement {
    const own = this.columns.filter(({ model }) => model === null).length;
    return h(
      "tr",
      { class: "models" },
      h("td", { colspan: own }),
      this.findings.models.map((model) =>
        h(
          "th",
          { scope: "colgroup", colspan: this.columns.filter((column) => column.model === model).length },
          modelLetter(model),
          named(model.model.name),
        ),
      ),
    );
  }

  private headCell(column: Column, number: number): HTMLElement {
    const label = column.model && this.several ? `${column.title}, model ${column.model.letter}` : column.title;
    const arrow = h("span", { class: "arrow", "aria-hidden": "true" });
    const content = column.numeric ? [arrow, column.title] : [column.title, arrow];
    const button = h("button", { type: "button", "aria-label": label, onclick: () => this.sortBy(number) }, content);
    const cell = h("th", { scope: "col", class: this.cellClass(number) }, button);
    this.sortButtons.push({ cell, column: number });
    return cell;
  }

  /** Numbers stand at the right; the first column of a model has a line before it. */
  private cellClass(number: number): string {
    const [column, before] = [this.columns[number], this.columns[number - 1]];
    return [column?.numeric && "numeric", column?.model && column.model !== before?.model && "first"]
      .filter(Boolean)
      .join(" ");
  }

  private sortBy(column: number): void {
    const { order } = this.selection;
    this.selection.order = { column, descending: order.column === column && !order.descending };
    this.update();
  }

  private listen(): void {
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.table.addEventListener("keydown", (event) => this.pressed(event));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.paper.addEventListener("change", () => this.redraw());
    addEventListener("beforeprint", () => this.drawForPrint());
    addEventListener("afterprint", () => this.redraw());
  }

  private clicked(event: MouseEvent): void {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const row = (event.target as Element).closest<HTMLElement>("tr[data-place]");
    if (!row) return;
    event.preventDefault();
    this.active = Number(row.dataset.place);
    this.redraw();
    this.openActive();
  }

  private pressed(event: KeyboardEvent): void {
    if (event.target !== this.table || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_HEIGHT) - 2);
    const moves = new Map([
      ["ArrowDown", this.active + 1],
      ["ArrowUp", this.active - 1],
      ["PageDown", this.active + page],
      ["PageUp", this.active - page],
      ["Home", 0],
      ["End", this.selection.positions.length - 1],
    ]);
    const to = moves.get(event.key);
    if (to !== undefined) this.moveTo(to);
    else if (event.key === "Enter") this.openActive();
    else return;
    event.preventDefault();
  }

  private openActive(): void {
    const position = this.selection.positions[this.active];
    if (position === undefined) return;
    this.table.focus({ preventScroll: true });
    this.open(position);
  }

  private moveTo(place: number): void {
    this.active = Math.max(0, Math.min(place, this.selection.positions.length - 1));
    const top = this.active * ROW_HEIGHT;
    const room = this.scroller.clientHeight - this.headHeight() - ROW_HEIGHT;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
    this.redraw();
  }

  private headHeight(): number {
    return this.table.tHead?.offsetHeight ?? 0;
  }

  /** After a change of filter or order. */
  private update(): void {
    this.selection.update();
    const shown = this.selection.positions.length;
    this.active = 0;
    this.scroller.scrollTop = 0;
    this.status.textContent =
      shown === this.findings.subjects
        ? plural(shown, "node")
        : `${count(shown)} of ${plural(this.findings.subjects, "node")}`;
    this.table.setAttribute("aria-rowcount", String(shown));
    for (const { cell, column } of this.sortButtons) this.markOrder(cell, column);
    this.redraw();
  }

  private markOrder(cell: HTMLElement, column: number): void {
    const { order } = this.selection;
    const direction = order.column !== column ? "none" : order.descending ? "descending" : "ascending";
    cell.setAttribute("aria-sort", direction);
  }

  private redraw(): void {
    this.drawn = { first: -1, last: -1 };
    this.draw();
  }

  /** Puts the rows in sight into the page, with empty space for those above and below. */
  private draw(): void {
    if (this.paper.matches) return this.drawForPrint();
    const shown = this.selection.positions.length;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - SPARE_ROWS);
    const room = Math.ceil((this.scroller.clientHeight || 400) / ROW_HEIGHT);
    const last = Math.min(shown, first + room + 2 * SPARE_ROWS);
    if (first === this.drawn.first && last === this.drawn.last) return;
    this.drawn = { first, last };
    const rows = Array.from(this.selection.positions.subarray(first, last), (position, index) =>
      this.row(position, first + index),
    );
    this.body.replaceChildren(this.gap(first), ...(shown > 0 ? rows : [this.nothing()]), this.gap(shown - last));
    if (first <= this.active && this.active < last) this.table.setAttribute("aria-activedescendant", "active-row");
    else this.table.removeAttribute("aria-activedescendant");
  }

  /** The first rows only: paper does not scroll. */
  private drawForPrint(): void {
    const printed = this.selection.positions.subarray(0, PRINTED_ROWS);
    const left = this.selection.positions.length - printed.length;
    this.printNote.textContent =
      left > 0
        ? `The first ${printed.length} nodes in this order; ${count(left)} more are in the interactive page.`
        : "";
    this.body.replaceChildren(...Array.from(printed, (position, place) => this.row(position, place)));
  }

  private gap(rows: number): HTMLElement {
    return h("tr", { class: "gap", "aria-hidden": "true", style: `height: ${rows * ROW_HEIGHT}px` });
  }

  private nothing(): HTMLElement {
    return h("tr", {}, h("td", { colspan: this.columns.length, class: "nothing" }, "No node matches."));
  }

  private row(position: number, place: number): HTMLElement {
    const active = place === this.active;
    return h(
      "tr",
      {
        "data-place": place,
        "aria-rowindex": place + 1,
        id: active && "active-row",
        class: active && "active",
        "aria-selected": active ? "true" : "false",
      },
      this.columns.map((column, number) => h("td", { class: this.cellClass(number) }, column.show(position))),
    );
  }
}
