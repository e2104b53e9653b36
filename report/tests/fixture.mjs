// Reports made up from a seed, of the shape that src/data.ts describes, and pages made of them as the program makes them.

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const asset = new URL("../../crates/nodeproof-report/assets/report.html", import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "nodeproof-report-"));

/** Writes the page of a report, and gives its address. */
export function writePage(report, name = "report") {
  const json = JSON.stringify(report).replaceAll("<", "\\u003c");
  const path = join(folder, `${name}.html`);
  writeFileSync(
    path,
    readFileSync(asset, "utf8").replace("__NODEPROOF_DATA__", () => json),
  );
  return `file://${path}`;
}

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
export function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const CLASSES = ["animal", "artefact", "food", "location", "person", "plant", "substance"];
const SYLLABLES = [
  "ba",
  "ri",
  "to",
  "lem",
  "na",
  "vor",
  "el",
  "qui",
  "sta",
  "mo",
  "fen",
  "ga",
  "ul",
  "tri",
  "pe",
  "dor",
];

function word(random) {
  const syllables = Array.from(
    { length: 2 + Math.floor(random() * 2) },
    () => SYLLABLES[Math.floor(random() * SYLLABLES.length)],
  );
  return syllables.join("");
}

/** A graph that grows by attaching each node to earlier ones, mostly of its own class. */
function makeNodes(random, size, drawnOnly) {
  const all = size + drawnOnly;
  const classes = Array.from({ length: all }, () => Math.floor(random() * CLASSES.length));
  const neighbours = Array.from({ length: all }, () => new Set());
  const ends = [0];
  for (let node = 1; node < all; node++) {
    const wanted = 1 + Math.floor(random() * 3);
    for (let edge = 0; edge < wanted; edge++) {
      const other = ends[Math.floor(random() * ends.length)];
      if (other === node || (classes[other] !== classes[node] && random() < 0.6)) continue;
      neighbours[node].add(other);
      neighbours[other].add(node);
      ends.push(other);
    }
    ends.push(node);
  }
  const names = Array.from({ length: all }, () => `${word(random)} ${word(random)}`);
  return {
    classes,
    nodes: {
      subjects: size,
      id: Array.from({ length: all }, (_, position) => position * 3 + 1),
      name: names,
      label: classes.map((number) => (random() < 0.9 ? number : Math.floor(random() * CLASSES.length))),
      part: classes.map(() => (random() < 0.1 ? 1 : 0)),
      degree: neighbours.map(({ size }) => size),
      neighbours: neighbours.map((set) => [...set].slice(0, 64)),
    },
  };
}

function makeFlips(random, nodes, position, number) {
  const near = [position, ...nodes.neighbours[position]];
  const far = near.flatMap((node) => nodes.neighbours[node]);
  const keys = new Set();
  while (keys.size < number) {
    const from =
      random() < 0.5
        ? position
        : random() < 0.6
          ? near[Math.floor(random() * near.length)]
          : (far[Math.floor(random() * far.length)] ?? position);
    keys.add(`${from} ${Math.floor(random() * 200)}`);
  }
  return [...keys].map((key) => [...key.split(" ").map(Number), random() < 0.6 ? 1 : 0]);
}

function purityOf(nodes, predicted, position) {
  const seen = new Set([position, ...nodes.neighbours[position]]);
  for (const near of nodes.neighbours[position]) for (const far of nodes.neighbours[near]) seen.add(far);
  return [...seen].filter((node) => predicted[node] === predicted[position]).length / seen.size;
}

function makeBudget(global, attack) {
  if (attack === "deletions")
    return {
      attack,
      global,
      in_words: `at most ${global} edges deleted (2 at one node), each node keeps one`,
      limits_in_words: ", 2 at one node, each node keeps one",
    };
  const local = "2 at one node (1% of 200 attributes)";
  const flips = `at most ${global} flips, ${local}`;
  if (attack === "both")
    return { attack, global: 1, in_words: `${flips}, at most 1 edge deleted`, limits_in_words: "" };
  return { attack, global, in_words: flips, limits_in_words: `, ${local}` };
}

/** Edges near a node: its own, then those of its neighbours; each once. */
function makeDeletions(random, nodes, position, number) {
  const around = [position, ...nodes.neighbours[position]];
  const far = around.flatMap((near) => nodes.neighbours[near]);
  const keys = new Set();
  for (const from of [...around, ...far])
    for (const to of nodes.neighbours[from]) if (keys.size < number && random() < 0.7) keys.add(edgeKey(from, to));
  return [...keys].map((key) => key.split(" ").map(Number));
}

function edgeKey(a, b) {
  return `${Math.min(a, b)} ${Math.max(a, b)}`;
}

function makeModel(
  random,
  { nodes, classes },
  { name, strength, attack, budget, maxBudget, radii, certificates, collectives, undecided },
) {
  const positions = Array.from({ length: nodes.subjects }, (_, position) => position);
  const predicted = classes.map((number) => (random() < 0.88 ? number : Math.floor(random() * CLASSES.length)));
  const hardness = positions.map((position) => strength * (0.4 + random()) * Math.log2(2 + nodes.degree[position]));
  const radius = hardness.map((value) => Math.min(maxBudget, Math.max(0, Math.floor(value * 4 - 2 + random() * 3))));
  const verdict = radius.map((value) => (random() < undecided ? 2 : value >= budget ? 0 : 1));
  const size = positions.map((position) => Math.abs(hardness[position] * 0.3 + 0.02) * (0.2 + random()));
  const least = positions.map((position) => {
    if (verdict[position] !== 0) return -size[position];
    return random() < 0.1 ? "positive" : size[position];
  });
  const other = (position) => (predicted[position] + 1 + Math.floor(random() * (CLASSES.length - 1))) % CLASSES.length;
  const rival = positions.map(other);
  const margins = positions.map((position) =>
    CLASSES.map((_, number) => {
      if (number === predicted[position]) return null;
      if (number === rival[position]) return least[position];
      return size[position] + 0.1 + random() * 2;
    }),
  );
  /** Witnesses of these sizes, where there are any; of a share of them. */
  const witnesses = (sizes, share = 1) => {
    const witness = sizes.map((size, position) => {
      if (size === null || (share < 1 && random() >= share)) return null;
      return attack === "deletions" ? [] : makeFlips(random, nodes, position, size);
    });
    const edges = (position) => makeDeletions(random, nodes, position, attack === "both" ? 1 : sizes[position]);
    return attack === "flips"
      ? { witness }
      : { witness, witness_edges: witness.map((flips, position) => flips && edges(position)) };
  };
  const certified = positions.map((position) =>
    verdict[position] === 1 ? Math.min(budget, radius[position] + 2) : null,
  );
  const ends = radius.map((value) => (value >= maxBudget ? null : value + 1 + (random() < undecided ? 2 : 0)));
  const curve = { robust: [], nonrobust: [] };
  for (let flipsInAll = 0; flipsInAll <= maxBudget; flipsInAll++) {
    curve.robust.push(radius.filter((value) => value >= flipsInAll).length);
    curve.nonrobust.push(ends.filter((value) => value !== null && value <= flipsInAll).length);
  }
  return {
    name,
    fingerprint: Array.from({ length: 64 }, () => Math.floor(random() * 16).toString(16)).join(""),
    layers: 2,
    propagation: "symmetric-gcn",
    purity: positions.map((position) => purityOf(nodes, predicted, position)),
    certificates: !certificates
      ? null
      : {
          budget: makeBudget(budget, attack),
          engine: "complete",
          target: "predicted",
          position: positions,
          predicted: predicted.slice(0, nodes.subjects),
          class: predicted.slice(0, nodes.subjects),
          verdict,
          margins,
          ...witnesses(certified),
          witness_class: positions.map((position) => (verdict[position] === 1 ? rival[position] : null)),
          witness_margin: positions.map((position) => (verdict[position] === 1 ? least[position] * 0.7 : null)),
          bounds: positions.map((position) => (verdict[position] === 2 ? [least[position], 0.05] : null)),
        },
    radii: !radii
      ? null
      : {
          budget: makeBudget(maxBudget, attack),
          engine: "complete",
          target: "predicted",
          scan: false,
          position: positions,
          class: predicted.slice(0, nodes.subjects),
          robust_up_to: radius,
          nonrobust_from: ends,
          exact: ends.map((end, position) => end === null || end === radius[position] + 1),
          ...witnesses(ends, 0.8),
          witness_class: positions.map((position) => (ends[position] !== null ? rival[position] : null)),
          witness_margin: positions.map((position) => (ends[position] !== null ? -0.1 : null)),
          curve,
        },
    collectives: !collectives
      ? null
      : {
          budget: makeBudget(collectives.at(-1), "flips"),
          target: "predicted",
          answers: collectives.map((global) => makeAnswer(random, nodes, global)),
        },
  };
}

/** One flip changes as many as any can; of more, every other one a prediction more than the attack does. */
function makeAnswer(random, nodes, global) {
  const at_least = Math.min(nodes.subjects, 2 * global);
  const spread = Math.floor(nodes.subjects / at_least);
  const at_most = Math.min(nodes.subjects, at_least + Math.floor(global / 2));
  const flips = Array.from({ length: global }, (_, number) => [
    (number * spread) % nodes.id.length,
    number % 200,
    random() < 0.6 ? 1 : 0,
  ]);
  return {
    global,
    predictions: nodes.subjects,
    at_most,
    at_least,
    by_radii: Math.min(nodes.subjects, at_most + 2 * global),
    alone: Math.min(nodes.subjects, at_most + 9 * global),
    seconds: global / 10,
    flips,
    changed: Array.from({ length: at_least }, (_, number) => number * spread),
  };
}

const MODEL = {
  name: "standard",
  strength: 0.5,
  attack: "flips",
  budget: 5,
  maxBudget: 40,
  radii: true,
  certificates: true,
  /** The budgets of collective certificates. */
  collectives: null,
  undecided: 0.03,
};

/** A report of `size` nodes; `models` overrides what a model is like. */
export function makeReport({ size = 300, drawnOnly = 40, seed = 1, models = [{}], title = "Nouns of WordNet" } = {}) {
  const random = randomNumbers(seed);
  const graph = makeNodes(random, size, drawnOnly);
  return {
    format: "nodeproof-report",
    version: 2,
    nodeproof: "0.1.0",
    title,
    checked: false,
    not_checked: 0,
    graph: {
      name: "wordnet.npz",
      fingerprint: "95f61c7515d96b566f5d903b36c144ae804067afb95724fd1e261f84abfb06d2",
      nodes: size + drawnOnly,
      edges: graph.nodes.degree.reduce((sum, degree) => sum + degree, 0) / 2,
      attributes: 200,
      kind: "",
      binarised: 0,
      classes: CLASSES,
      named: true,
    },
    attributes: Object.fromEntries(Array.from({ length: 200 }, (_, attribute) => [attribute, word(random)])),
    nodes: graph.nodes,
    models: models.map((model) => makeModel(random, graph, { ...MODEL, ...model })),
  };
}

export const TWO_MODELS = [{}, { name: "robust (rh-u)", strength: 1.3 }];
