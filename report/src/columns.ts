/** The columns of the table of nodes: what they show, how they sort, and what goes into CSV. */

import { inShort, rank } from "./bounds";
import { verdictTag } from "./charts";
import { h, named, type Child } from "./dom";
import { radiusInShort, type Findings, type ModelFindings } from "./findings";
import { count, percent, VERDICTS } from "./words";

export interface Column {
  title: string;
  /** The model whose column it is; null for what is known of the node itself. */
  model: ModelFindings | null;
  width: number;
  numeric: boolean;
  /** Sorts as this; null goes last in either direction. */
  key: (position: number) => number | string | null;
  show: (position: number) => Child;
  text: (position: number) => string | number;
}

export function columnsOf(findings: Findings): Column[] {
  return [...nodeColumns(findings), ...findings.models.flatMap((model) => modelColumns(findings, model))];
}

function nodeColumns(findings: Findings): Column[] {
  const label = (position: number) => className(findings, findings.label(position));
  return [
    numeric("node", 76, null, (position) => findings.id(position)),
    {
      title: "name",
      model: null,
      width: 200,
      numeric: false,
      key: (position) => findings.name(position),
      show: (position) =>
        h("a", { href: `#node-${findings.id(position)}`, tabindex: -1 }, named(findings.name(position))),
      text: (position) => findings.name(position),
    },
    textual("label", 124, null, label),
    numeric("degree", 84, null, (position) => findings.degree(position), count),
  ];
}

function modelColumns(findings: Findings, model: ModelFindings): Column[] {
  const predicted = (position: number) => className(findings, model.predicted(position));
  const radius = (position: number) => {
    const radius = model.radius(position);
    return radius && radiusInShort(radius);
  };
  const columns: Column[] = [
    {
      ...textual("predicted", 160, model, predicted),
      show: (position) => [
        named(predicted(position) ?? "–"),
        isWrong(findings, model, position) && h("span", { class: "wrong" }, "wrong"),
      ],
    },
    {
      ...textual("verdict", 132, model, (position) => model.verdict(position)),
      key: (position) => {
        const verdict = model.verdict(position);
        return verdict && VERDICTS.indexOf(verdict);
      },
      show: (position) => {
        const verdict = model.verdict(position);
        return verdict ? verdictTag(verdict) : "–";
      },
    },
    marginColumn(model),
    {
      ...numeric(
        "radius",
        76,
        model,
        (position) => model.radius(position)?.from ?? (model.radius(position) ? -1 : null),
      ),
      show: (position) => radius(position) ?? "–",
      text: (position) => radius(position) ?? "",
    },
    numeric("purity", 76, model, (position) => model.purity(position), percent),
    unlinkedColumn(findings, model),
  ];
  const missing = [
    ...(model.certificates ? [] : ["verdict", "margin"]),
    ...(model.radii ? [] : ["radius"]),
    ...(model.attack === "flips" ? [UNLINKED] : []),
  ];
  return columns.filter(({ title }) => !missing.includes(title));
}

/** The smallest lower bounds; those of which nothing is known go last. */
function marginColumn(model: ModelFindings): Column {
  const known = (position: number) => {
    const bound = model.margin(position);
    return bound === "unknown" ? null : bound;
  };
  return {
    title: "margin",
    model,
    width: 84,
    numeric: true,
    key: (position) => {
      const bound = known(position);
      return bound === null ? null : rank(bound);
    },
    show: (position) => {
      const bound = model.margin(position);
      return bound === null ? "–" : inShort(bound);
    },
    text: (position) => known(position) ?? "",
  };
}

const UNLINKED = "deleted edges";

/** The edges that the witness deletes; those with fewer of them come first. */
function unlinkedColumn(findings: Findings, model: ModelFindings): Column {
  const edges = (position: number) => model.evidence(position)?.deletions ?? [];
  const text = (name: (position: number) => string, position: number) =>
    edges(position)
      .map(([a, b]) => `${name(a)} – ${name(b)}`)
      .join("; ");
  return {
    title: UNLINKED,
    model,
    width: 260,
    numeric: false,
    key: (position) => edges(position).length || null,
    show: (position) => named(text((at) => findings.name(at), position) || "–"),
    text: (position) => text((at) => findings.fullName(at), position),
  };
}

/** Whether the model gives the node another class than its label; null where one of them is not known. */
export function isWrong(findings: Findings, model: ModelFindings, position: number): boolean | null {
  const [label, predicted] = [findings.label(position), model.predicted(position)];
  return label === null || predicted === null ? null : label !== predicted;
}

function className(findings: Findings, number: number | null): string | null {
  return number === null ? null : findings.className(number);
}

function textual(
  title: string,
  width: number,
  model: ModelFindings | null,
  value: (position: number) => string | null,
): Column {
  return {
    title,
    model,
    width,
    numeric: false,
    key: value,
    show: (position) => named(value(position) ?? "–"),
    text: (position) => value(position) ?? "",
  };
}

function numeric(
  title: string,
  width: number,
  model: ModelFindings | null,
  value: (position: number) => number | null,
  format: (value: number) => string = String,
): Column {
  const show = (position: number) => {
    const number = value(position);
    return number === null ? "–" : format(number);
  };
  return { title, model, width, numeric: true, key: value, show, text: (position) => value(position) ?? "" };
}
