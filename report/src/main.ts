/** Puts the report together. */

import { anyOf } from "./attack";
import type { Report } from "./data";
import { curves } from "./curves";
import { byId, h } from "./dom";
import { Findings } from "./findings";
import { groupSection } from "./groups";
import { guarantee } from "./guarantee";
import { marginSection } from "./margins";
import { NodeView } from "./nodeview";
import { header, overview } from "./overview";
import { NodeTable } from "./table";
import { themeSwitch } from "./theme";
import { together } from "./together";
import { capital, short } from "./words";

function start(report: Report): void {
  if (report.format !== "nodeproof-report" || report.version !== 2)
    throw new Error("its data are not those of a nodeproof report, version 2");
  document.title = short(report.title, 120);
  const findings = new Findings(report);
  const view = new NodeView(findings);
  const table = findings.subjects > 0 ? new NodeTable(findings, (position) => view.open(position)) : null;
  const sections = [
    overview(findings),
    curves(findings),
    together(findings),
    marginSection(findings),
    groupSection(findings),
    guarantee(findings),
    table && table.element,
  ];
  byId("main").append(...sections.filter((section) => section !== null));
  byId("header").append(h("div", { class: "bar" }, contents(findings), themeSwitch()), ...header(findings));
  byId("footer").prepend(
    h("p", {}, `Written by nodeproof ${short(report.nodeproof)}. This page is one file; it sends nothing anywhere.`),
  );
  if (table) view.attach(table);
}

/** Links to the sections that this report has. */
function contents(findings: Findings): HTMLElement {
  const places: [id: string, text: string][] = [
    ["overview", "Overview"],
    ["curves", capital(anyOf(findings.attacks()))],
    ["together", "Together"],
    ["margins", "Margins"],
    ["groups", "Groups"],
    ["guarantee", "Guarantee"],
    ["nodes", "Nodes"],
  ];
  return h(
    "nav",
    { "aria-label": "Contents" },
    places.filter(([id]) => document.getElementById(id)).map(([id, text]) => h("a", { href: `#${id}` }, text)),
  );
}

function fail(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  byId("main").replaceChildren(h("p", { class: "note", role: "alert" }, `This report cannot be shown: ${message}`));
}

try {
  start(JSON.parse(byId("data").textContent ?? "") as Report);
} catch (error) {
  fail(error);
}
