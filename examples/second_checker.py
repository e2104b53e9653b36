"""Checks certificates a second time, in exact numbers and another language than nodeproof's.

python examples/second_checker.py CERTIFICATES.jsonl GRAPH.npz MODEL.safetensors

It needs NumPy, and nothing of nodeproof. It speaks graph convolutional networks with ReLUs, up to six layers, on attributes
that are plain bits. Other networks and attributes, headers with more fields than it knows, and robust nodes that need a proof
are beyond it. Of an undecided node it checks the classes alone. It looks neither at hashes nor whether a node is missing. It
exits with 0 if it rejects nothing, with 1 if it rejects something, and with 2 if it cannot use a file. Lemmas: docs/maths.md.

Every double is a whole number times a power of two. So all that decides is in whole numbers, which Python adds and multiplies
exactly: P, W and b times 2^s, with one s for all, and pre-activations of layer i times r 4^(s(i+1)), where r is the most flips.
"""

import hashlib
import json
import struct
import sys
from collections import Counter
from fractions import Fraction
from zipfile import BadZipFile

import numpy as np

# Floats say which flips to look at, never what these gain. They are off by less than SLACK times the sum of all magnitudes, as
# each number passes through less than 2^20 roundings of 2^-53. Within these sizes no layer enlarges numbers by more than 2^64,
# so that nothing overflows, and what underflows, by 2^-1075 each time, adds up to less than TINY.
SLACK, TINY, LARGEST_SIZE, LARGEST_WEIGHT, MOST_LAYERS = 2.0**-30, 2.0**-500, 2**16, 2.0**32, 6
FIELDS = """format version nodeproof engine class graph fingerprint nodes edges attributes binarised model budget global local
direction local_count local_at protected_nodes protected_attributes proofs timings"""
DAMAGE = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError, struct.error, BadZipFile)


class Rejected(Exception):
    """The header or a certificate says what is not so, or what is not shown."""


class Beyond(Exception):
    """This script does not speak it."""


def need(condition: bool, otherwise: str) -> None:
    if not condition:
        raise Rejected(otherwise)


def entries(file, name: str) -> dict[tuple[int, int], float]:
    """The entries of a matrix in compressed row form that are not 0; those of one place are added up."""
    offsets, columns, values = (file[f"{name}_{part}"] for part in ("indptr", "indices", "data"))
    rows, sums = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), Counter()
    for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
        sums[row, column] += value
    return {place: value for place, value in sums.items() if value != 0}


class Graph:
    """Neighbours, attributes and labels (None for none) of the nodes, and a fingerprint of all of that."""

    def __init__(self, path: str) -> None:
        with np.load(path, allow_pickle=False) as file:
            self.nodes, self.attributes = map(int, file["attr_shape"])
            edges, bits = entries(file, "adj"), entries(file, "attr")
            labels = file["labels"].tolist() if "labels" in file.files else []
            if "edges_as_they_are" not in file.files:
                edges = {pair for m, n in edges if m != n for pair in [(m, n), (n, m)]}
        if set(bits.values()) - {1} or max(self.nodes, self.attributes) > LARGEST_SIZE:
            raise Beyond("attributes other than plain bits, or a graph of this size")
        self.neighbours, self.bits = ([[] for _ in range(self.nodes)] for _ in range(2))
        hashed = hashlib.sha256(b"nodeproof graph 1\n")
        for rows, places, columns in [(self.neighbours, edges, self.nodes), (self.bits, bits, self.attributes)]:
            for row, column in sorted(places):
                rows[row].append(column)
            hashed.update(struct.pack("<QQ", self.nodes, columns))
            for row in rows:
                hashed.update(struct.pack(f"<Q{len(row)}I", len(row), *row))
        hashed.update(b"".join(struct.pack("<I", label if label >= 0 else 2**32 - 1) for label in labels))
        self.fingerprint = hashed.hexdigest()
        self.labels = [label if label >= 0 else None for label in labels or [-1] * self.nodes]


class Model:
    """Weights (inputs × outputs) and biases of the layers of a GCN, and a fingerprint of them."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            tensors, data = json.loads(file.read(*struct.unpack("<Q", file.read(8)))), file.read()
        network = json.loads(tensors.get("__metadata__", {}).get("network", '{"layers": []}'))
        depth, sources = len(network["layers"]), ["attributes", *({"layer": i} for i in range(MOST_LAYERS))]
        layers = [{"terms": [{"source": source, "propagation": 0}], "activation": "relu"} for source in sources[:depth]]
        is_gcn = network["layers"] == [*layers[:-1], *({**layer, "activation": "none"} for layer in layers[-1:])]
        if depth == 0 or not is_gcn or network["propagations"] != ["symmetric-gcn"] or "kind" in network:
            raise Beyond("a network other than a GCN, or one of this depth")
        self.weights, self.biases, hashed = [], [], hashlib.sha256(b"nodeproof model 1\nsymmetric-gcn")
        for name in (f"{kind}{i}" for i in range(depth) for kind in "Wb"):
            (start, end), kind = tensors[name]["data_offsets"], {"F32": "<f4", "F64": "<f8"}[tensors[name]["dtype"]]
            values = np.frombuffer(data[start:end], kind).astype("<f8").reshape(tensors[name]["shape"])
            if not (abs(values) <= LARGEST_WEIGHT).all() or max(values.shape) > LARGEST_SIZE:
                raise Beyond("weights of this size")
            hashed.update((struct.pack("<QQ", *values.shape) if name[0] == "W" else b"") + values.tobytes())
            (self.weights if name[0] == "W" else self.biases).append(values)
        self.fingerprint = hashed.hexdigest()


class Network:
    """Weights, biases and the rows of P as whole numbers, all times 2^shift."""

    def __init__(self, graph: Graph, model: Model) -> None:
        self.graph, self.doubles, self.classes = graph, model.weights, len(model.biases[-1])
        # P_mn = Ã_mn / √((d_m + 1)(d_n + 1)) as doubles have it; a self-loop makes Ã_mm 2 (Definition 1).
        size = [len(row) + 1.0 for row in graph.neighbours]
        rows = [dict.fromkeys(row, 1.0) | {m: 1.0 + (m in row)} for m, row in enumerate(graph.neighbours)]
        p = [[a / float(np.sqrt(size[m] * size[n])) for n, a in row.items()] for m, row in enumerate(rows)]
        arrays = [*model.weights, *model.biases, np.concatenate(p)]
        self.shift = max(x.as_integer_ratio()[1] for of in arrays for x in of.ravel().tolist()).bit_length() - 1
        self.weights, self.biases = ([self.whole(array) for array in of] for of in (model.weights, model.biases))
        self.p = [dict(zip(row, self.whole(np.array(q)), strict=True)) for row, q in zip(rows, p, strict=True)]

    def whole(self, array: np.ndarray) -> np.ndarray:
        ratios = [x.as_integer_ratio() for x in array.ravel().tolist()]
        return np.array([a * (2**self.shift // b) for a, b in ratios], object).reshape(array.shape)


class Budget:
    """How many flips there may be, in total and at each node, and which ones (Definition 5)."""

    def __init__(self, fields: dict, graph: Graph) -> None:
        self.graph, self.most, local = graph, fields["global"], fields["local"]
        share = Fraction(local.rstrip("% ")) / 100 * graph.attributes
        count = max(1, int(share)) if local.endswith("%") else int(local)
        own = {int(node): most for node, most in fields.get("local_at", {}).items()}
        own |= dict.fromkeys(fields.get("protected_nodes", []), 0)
        self.protected, self.attributes = set(fields.get("protected_attributes", [])), range(graph.attributes)
        exist = own.keys() <= set(range(graph.nodes)) and self.protected <= set(self.attributes)
        need(exist and fields["local_count"] == count and min(self.most, count, *own.values()) >= 0, "no such budget")
        self.at = [min(own.get(n, count), graph.attributes) for n in range(graph.nodes)]
        self.to = {"both": (0, 1), "add-only": (1,), "delete-only": (0,)}[fields["direction"]]

    def admits(self, flips: list) -> bool:
        """Whether flips (node, attribute, new value) may be made, all of them together."""
        places, counts = {(n, d) for n, d, _ in flips}, Counter(n for n, _, _ in flips)
        if not all(n in range(self.graph.nodes) and d in self.attributes for n, d in places):
            return False
        may = all(d not in self.protected and to in self.to and to != (d in self.graph.bits[n]) for n, d, to in flips)
        return may and len(places) == len(flips) <= self.most and all(counts[n] <= self.at[n] for n in counts)


class View:
    """What one node sees (Definition 3), with flips made: z of all layers, and lower bounds of its margins."""

    def __init__(self, network: Network, budget: Budget, target: int, flips: list) -> None:
        self.network, rows, self.p = network, [target], []
        for _ in network.weights:
            nodes, rows = rows, sorted({n for m in rows for n in network.p[m]})
            self.p.insert(0, np.array([[network.p[m].get(n, 0) for n in rows] for m in nodes], object))
        # r of Lemma 1; where it is 0 no flip is allowed.
        self.most = max(1, min(budget.most, sum(budget.at[n] for n in rows)))
        bits = [sorted({*network.graph.bits[n]} ^ {d for m, d, _ in flips if m == n}) for n in rows]
        product, self.z = self.most * np.array([network.weights[0][row].sum(axis=0) for row in bits]), []
        for i, bias in enumerate(network.biases):
            product = np.maximum(self.z[-1], 0) @ network.weights[i] if i > 0 else product
            self.z.append(self.p[i] @ product + self.most * bias * 2 ** (network.shift * (2 * i + 1)))
        self.one, self.hidden = self.most * 4 ** (network.shift * len(self.z)), range(len(self.z) - 1)
        # Units that are hardly above 0 count as not on, as in nodeproof's intervals: Lemma 38, where the sign is not sure.
        self.above, self.on = [z > 0 for z in self.z[:-1]], [2**40 * z > abs(z).max() for z in self.z[:-1]]
        self.unsure = [np.where(above & ~on, z, 0) for above, on, z in zip(self.above, self.on, self.z, strict=False)]
        # Lemma 36 with ς = 1: r times θ is |z|. The division leaves no rest, since z has the factor r.
        self.thresholds = [abs(z - unsure) // self.most for z, unsure in zip(self.z, self.unsure, strict=False)]
        self.capacities = np.array([min(budget.at[n], budget.most) for n in rows])
        self.is_one = np.array([np.bincount(row, minlength=network.graph.attributes) > 0 for row in bits])
        may = np.where(self.is_one, 0 in budget.to, 1 in budget.to) & (self.capacities[:, None] > 0)
        self.allowed = may & [d not in budget.protected for d in budget.attributes]

    def margin(self, y: int, k: int) -> int:
        return self.z[-1][0, y] - self.z[-1][0, k]

    def lower_bound(self, y: int, k: int) -> int:
        """c − Σ g_f over the flips that gain most, by tangents: no admissible set has a smaller margin (Lemma 39)."""
        alphas, gradient = [], np.array([[(j == y) - (j == k) for j in range(self.network.classes)]], object)
        for i in reversed(self.hidden):
            alphas.insert(0, self.p[i + 1].T @ (gradient @ self.network.weights[i + 1].T))
            gradient = np.where(self.on[i], alphas[0], 0)
        gradient = self.p[0].T @ gradient
        limits, chosen = self.screen(alphas, gradient), []
        for place in np.argsort(-limits, axis=None).tolist():
            # Lemmas 2 and 3: a flip takes the place of the least one that stands in its way, if it gains more.
            row, attribute = divmod(place, limits.shape[1])
            is_full, of_row = len(chosen) == self.most, [flip for flip in chosen if flip[1] == row]
            limit = Fraction(max(limits[row, attribute], 0)) * self.one
            if limit <= (min(chosen)[0] if is_full else 0):
                break
            least = min(of_row if len(of_row) == self.capacities[row] else chosen if is_full else [(0, row)])
            gain = self.gain(row, attribute, alphas, gradient) if limit > least[0] else 0
            if gain > least[0]:
                chosen = [flip for flip in chosen if flip is not least] + [(gain, row)]
        lost = sum((np.maximum(alpha, 0) * z).sum() for alpha, z in zip(alphas, self.unsure, strict=True))
        return self.margin(y, k) - lost - sum(gain for gain, _ in chosen)

    def gain(self, row: int, attribute: int, alphas: list[np.ndarray], gradient: np.ndarray) -> int:
        """g_f = −w_n · σ W_d + Σ (α)₋ e_f (Lemma 39), with the excesses e_f of cones L ≤ U (the table of Lemma 38)."""
        change = (-self.most if self.is_one[row, attribute] else self.most) * self.network.weights[0][attribute]
        gain, sent = -(gradient[row] @ change), {row: (change, change)}
        for i in self.hidden:
            p, moves, sent = self.p[i][:, list(sent)], list(sent.values()), {}
            for m in np.flatnonzero(p.any(axis=1)).tolist():
                upper, lower = (sum(a * move[end] for a, move in zip(p[m], moves, strict=True)) for end in (0, 1))
                on, threshold = self.on[i][m], self.thresholds[i][m]
                excess = np.maximum(np.where(on, -lower, upper) - threshold, 0)
                gain += np.maximum(-alphas[i][m], 0) @ excess
                if i + 1 in self.hidden:
                    upper = np.where(on, upper + np.maximum(-upper - threshold, 0), excess)
                    lower = np.where(on, lower, np.where(self.above[i][m], np.minimum(lower, 0), 0))
                    # Twice the centre meets W, twice the radius |W|; P is not negative.
                    weight = self.network.weights[i + 1]
                    centre, radius = (upper + lower) @ weight, (upper - lower) @ abs(weight)
                    sent[m] = (centre + radius) // 2, (centre - radius) // 2
        return gain

    def screen(self, alphas: list[np.ndarray], gradient: np.ndarray) -> np.ndarray:
        """At least what each flip gains, in floats, −∞ where none is allowed: Lemma 40, with ζ = 1, the most that it can be."""
        weights, shift, rise, fall = self.network.doubles, self.network.shift, 0.0, 0.0
        for i in reversed(self.hidden):
            cost = np.maximum(-doubles(alphas[i], 4 ** (shift * (len(self.hidden) - i))), 0)
            p = doubles(self.p[i], 2**shift).T
            rise, fall = p @ np.where(self.on[i], rise, rise + cost), p @ np.where(self.above[i], fall + cost, 0)
            if i > 0:
                up, down = np.maximum(weights[i], 0).T, np.maximum(-weights[i], 0).T
                rise, fall = rise @ up + fall @ down, fall @ up + rise @ down
        w = doubles(gradient, 2 ** (shift * (2 * len(self.hidden) + 1)))
        linear = ((rise - fall) / 2 - w) @ weights[0].T
        others = ((rise + fall) / 2 + SLACK * (rise + fall + abs(w))) @ abs(weights[0]).T + TINY
        return np.where(self.allowed, np.where(self.is_one, -linear, linear) + others, -np.inf)


def doubles(whole: np.ndarray, one: int) -> np.ndarray:
    """Whole numbers divided by what is 1 among them, each rounded once."""
    return np.array([x / one for x in whole.ravel().tolist()]).reshape(whole.shape)


def check(record: dict, target_class: str, network: Network, budget: Budget) -> None:
    """Whether a certificate is right (Definition 6)."""
    node, predicted, y, classes = record["node"], record["predicted"], record["class"], range(network.classes)
    need(node in range(network.graph.nodes) and {predicted, y} <= set(classes), "there is no such node or class")
    need(record["verdict"] in ("robust", "nonrobust", "undecided"), "there is no such verdict")
    label, view = network.graph.labels[node], View(network, budget, node, [])
    need(record.get("label") == label, "its label is not that of the graph")
    need(all(view.margin(predicted, k) >= 0 for k in classes), "another class is predicted")
    need(y == {"predicted": predicted, "label": predicted if label is None else label}[target_class], "wrong class")
    if record["verdict"] == "nonrobust":
        k, said = record["witness_class"], Fraction(record["witness_margin"])
        flips = [(flip["node"], flip["attribute"], flip["to"]) for flip in record["witness"]]
        need(k in classes and k != y and said <= 0, "its witness brings no other class level")
        need(budget.admits(flips), "its witness is not within the budget")
        view = View(network, budget, node, flips)
        need(view.margin(y, k) <= said * view.one, "the margin under its witness is larger than it says")
    elif record["verdict"] == "robust":
        need(len(record["margins"]) == network.classes, "it does not have one margin a class")
        for k in (k for k in classes if k != y):
            said = record["margins"][k]
            need(said == "positive" or (said is not None and said > 0), f"its margin over {k} is not positive")
            bound = view.lower_bound(y, k)
            if bound <= 0 or (said != "positive" and bound < Fraction(said) * view.one):
                need(k in [tree["class"] for tree in record.get("proofs") or []], f"its margin over {k} is not shown")
                raise Beyond("a proof of slopes or flips")


def main(*paths: str) -> int:
    try:
        certificates, graph_path, model_path = paths
        with open(certificates, encoding="utf-8") as file:
            header, *records = map(json.loads, file)
        if (header["format"], header["version"]) != ("nodeproof-certificates", 2):
            raise ValueError("there are no certificates of version 2")
        if others := (header.keys() | header["graph"].keys() | header["budget"].keys()) - set(FIELDS.split()):
            raise Beyond(f"a header with {' and '.join(sorted(others))}")
        graph, model = Graph(graph_path), Model(model_path)
        need(header["graph"]["fingerprint"] == graph.fingerprint, "it is about another graph")
        need(header["model"]["fingerprint"] == model.fingerprint, "it is about another model")
        sizes = [header["graph"]["nodes"], header["graph"]["attributes"], len(model.weights[0])]
        need(sizes == [graph.nodes, graph.attributes, graph.attributes], "its sizes are not those of graph and model")
        network, budget, counts = Network(graph, model), Budget(header["budget"], graph), Counter()
    except (Beyond, Rejected, *DAMAGE) as problem:
        code = 0 if isinstance(problem, Beyond) else 1 if isinstance(problem, Rejected) else 2
        word = ("all certificates: beyond this script,", "header: rejected,", "unusable:")[code]
        print(word, problem if code < 2 else repr(problem))
        return code
    for line, record in enumerate(records, 2):
        try:
            check(record, header["class"], network, budget)
            word, why = f"accepted {record['verdict']}", ""
        except (Beyond, Rejected, *DAMAGE) as reason:
            word = "beyond this script" if isinstance(reason, Beyond) else "rejected"
            why = f", {reason if isinstance(reason, (Beyond, Rejected)) else repr(reason)}"
        print(f"line {line}: {word}{why}")
        counts[word] += 1
    print(*(f"{count} {word}" for word, count in sorted(counts.items())), sep="\n")
    return int("rejected" in counts)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
