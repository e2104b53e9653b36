import type { Attack } from "./attack";

/** What `nodeproof report` writes into the page, as JSON. Positions are indices into the columns of `nodes`. */
export interface Report {
  format: "nodeproof-report";
  version: 2;
  /** Version of the program. */
  nodeproof: string;
  /** What the page is called; hostile text is possible here as in every other string. */
  title: string;
  checked: boolean; // a checker has accepted everything
  not_checked: number; // but for so many results, which it did not check
  graph: {
    name: string;
    fingerprint: string; // 64 hex digits
    nodes: number; // of the whole graph
    edges: number;
    attributes: number;
    kind: string; // "", ", divided by the number of ones in their row" or ", real values"
    binarised: number; // values that were neither 0 nor 1 before they were counted as one of these
    classes: string[]; // a name for each class; "class 3" where the graph has none
    named: boolean; // whether nodes have names
  };
  /** Names of the attributes that occur in flips, by their number. */
  attributes: Record<string, string>;
  /** The nodes of the report: every node with a certificate or radius (the first `subjects`), then those that witnesses and attacks change and neighbours, which are only drawn or named. */
  nodes: {
    subjects: number;
    id: number[];
    name: string[]; // "node 17" where the graph has no names; at most 300 characters
    label: (number | null)[]; // class
    part: (0 | 1)[] | null; // 1 = was labelled in training; null if no split is known
    degree: number[]; // true degree in the graph
    /** Positions of neighbours; of a node with very many only the first 64 (degree counts them all). */
    neighbours: number[][];
  };
  models: Model[]; // one or more, side by side
}

export interface Model {
  name: string;
  fingerprint: string;
  layers: number; // 2 = one hidden layer: a node sees its neighbours' neighbours
  propagation: string;
  certificates: Certificates | null;
  radii: Radii | null;
  collectives: Collectives | null; // at least one of the three is there
  /** Per subject: share of its two-hop neighbourhood (itself included) that the model puts into the same class; null if unknown. */
  purity: (number | null)[];
}

/** What an attacker may change. The words are the program's own, not those of a stranger's file. */
export interface Budget {
  attack: Attack;
  global: number; // Q, flips in total, or deletions where edges may be deleted; of radii the most that were tried
  in_words: string; // “at most 12 flips, 28 at one node (1% of 2879 attributes), only additions”
  limits_in_words: string; // the same without what `global` counts, and with what margins and arithmetic were asked for; begins with what separates it from that: “, 28 at one node”
}

/** A lower bound on a margin: a number; positive, by how much is not known; or nothing: not looked at, or numbers overflowed. */
export type Bound = number | "positive" | "unknown";

/** New value 0 or 1, or where attributes are real values, any, and the old one. */
export type Flip = [position: number, attribute: number, to: number, from?: number];

/** An edge that is deleted: the positions of its two ends. */
export type Deletion = [position: number, position: number];

export interface Certificates {
  budget: Budget;
  engine: "fast" | "tight" | "complete"; // strongest that was asked for
  arithmetic: "exact" | "f64" | "f32" | "tf32" | "bf16"; // in which predictions hold
  target: "predicted" | "label"; // whose margins are certified
  /** Columns, one entry per certified node; `position` says which node. */
  position: number[];
  predicted: number[]; // class
  class: number[]; // the class that is certified
  verdict: (0 | 1 | 2)[]; // 0 robust, 1 nonrobust, 2 undecided
  margins: (Bound | null)[][]; // for each class; null for the one that is certified
  bounds: ([lower: Bound, upper: number | null] | null)[]; // undecided only: the smallest margin lies between
  /** Flips [position of the node, attribute, new value] that change the prediction (nonrobust only). An empty list, and no edges: it is not even robust without flips (a tie, or misclassified with target "label"). */
  witness: (Flip[] | null)[];
  /** Edges that go with them; only in results about deletions of edges, and null where `witness` is. */
  witness_edges?: (Deletion[] | null)[];
  witness_class: (number | null)[];
  witness_margin: (number | null)[]; // ≤ 0, or what was asked for; 0 is a tie
}

export interface Radii {
  budget: Budget;
  engine: "fast" | "tight" | "complete";
  arithmetic: Certificates["arithmetic"]; // in which predictions withstand the flips
  target: "predicted" | "label"; // whose class withstands the flips
  scan: boolean; // true: only robust_up_to is known (nonrobust_from all null)
  position: number[];
  class: (number | null)[];
  robust_up_to: (number | null)[]; // proven robust up to this Q; null: not even without flips
  nonrobust_from: (number | null)[]; // a witness is known from this Q on; null: none up to the largest that was tried
  exact: boolean[];
  withstands_any?: boolean[]; // only in results about deletions of edges: true where all were tried that the node notices
  /** As in certificates, under nonrobust_from flips; null where there is none or it was left out to keep the page small. */
  witness: (Flip[] | null)[];
  witness_edges?: (Deletion[] | null)[];
  witness_class: (number | null)[];
  witness_margin: (number | null)[]; // ≤ 0, or what was asked for; 0 is a tie
  /** For Q = 0, 1, … up to the largest that was tried: number of nodes proven robust, and proven nonrobust. */
  curve: { robust: number[]; nonrobust: number[] };
}

/** What one attacker does to all predictions together. */
export interface Collectives {
  budget: Budget; // with the largest of the global budgets
  target: "predicted" | "label"; // whose class is to hold; a label that is not predicted counts as changed
  answers: Answer[]; // one for each global budget, ascending
}

export interface Answer {
  global: number; // Q, flips in total
  predictions: number; // that count
  at_most: number; // so many change at most: proven
  at_least: number; // so many change under the attack
  by_radii: number; // so many change at most, as far as radii and what nodes see tell
  alone: number; // so many are not proven to hold if all flips are for them
  seconds: number | null; // that it took
  /** The attack and the positions of the nodes whose predictions it changes; null where they were left out to keep the page small. */
  flips: Flip[] | null;
  changed: number[] | null;
}
