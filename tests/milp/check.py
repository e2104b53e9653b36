#!/usr/bin/env python3
"""Certificates held against exact mixed-integer programs, solved by HiGHS.

Reads a graph, a model with one hidden layer and the certificates of `nodeproof certify --out`, and decides nodes once
more, sharing no code with nodeproof and looking at no verdict: for every other class, is there an admissible set of
flips under which the margin is at most 0?

    tests/milp/run --graph cora_ml.npz --binarise --model model.npz --certificates certificates.jsonl --nodes 100

Half of the nodes are the hardest ones, the others random. The exit status is 1 where a verdict is contradicted.
`tests/milp/run --self-test` holds the programs themselves against every admissible set of tiny problems.

The program for target t, class y and other class k, with u = W1[:, y] - W1[:, k] and P >= 0:

    margin = b1[y] - b1[k] + sum_m P_tm sum_j u_j h_mj,       h_mj = relu(x_mj)
    x_mj = H_mj + sum_f P_mn s_f W0[d, j] z_f                 f = (n, d) a flip, s_f = 1 - 2 X_nd, z_f binary
    sum_f z_f <= Q,   sum_{f at n} z_f <= q_n for every node n

A unit with lo >= 0 has h = x, one with hi <= 0 has h = 0. Of the others, u_j > 0 makes the margin rise with h, so
h >= 0 and h >= x hold h at relu(x) wherever the margin is to be small; u_j < 0 needs a binary a: h <= hi a and
h <= x - lo (1 - a), that is h <= 0 or h <= x. The sign is all that matters: `margin <= 0` is a constraint, the first
solution ends the search, and there is none if and only if the margin is always positive.
"""

import argparse
import itertools
import json
import struct
import sys
import time

import numpy as np
import scipy.optimize
import scipy.sparse

# Room for rounding where flips are left out: the bound that excludes them must exceed this.
SAFE = 1e-9
# HiGHS accepts constraints that are off by 1e-6: margins this close to 0 are not held against anyone.
CLOSE = 1e-5
# With more candidates than this, the most promising ones are tried by themselves first.
SHORT_LIST = 150
# So many candidates are left to HiGHS even where they could be excluded: it is the program that is to decide.
LEAST = 60
# Programs with more candidates are not even begun: HiGHS would go on for long past its limit of time.
LARGE = 4000


def read_graph(path, binarise, keep_self_loops):
    """Adjacency (symmetric, 0 or 1) and attributes (boolean), both in compressed row form."""
    with np.load(path, allow_pickle=False) as file:

        def matrix(name):
            parts = [file[f"{name}_{part}"] for part in ("data", "indices", "indptr", "shape")]
            read = scipy.sparse.csr_matrix((parts[0].astype(float), parts[1], parts[2]), shape=tuple(parts[3]))
            read.sum_duplicates()
            return read

        adjacency, attributes = matrix("adj"), matrix("attr")
    adjacency = (adjacency != 0).astype(float)
    adjacency = ((adjacency + adjacency.T) != 0).astype(float).tolil()
    if not keep_self_loops:
        adjacency.setdiag(0)
    adjacency = adjacency.tocsr()
    adjacency.eliminate_zeros()
    if not binarise and not np.isin(attributes.data, (0, 1)).all():
        sys.exit("attributes are not binary; try --binarise")
    attributes = (attributes > 0).tocsr()
    attributes.sort_indices()
    return adjacency, attributes


def read_model(path):
    """The arrays W0, b0, W1, b1 in double precision, and the name of the propagation."""
    if path.endswith(".npz"):
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name].astype(float) for name in file.files}
        propagation = "symmetric-gcn"
    else:
        with open(path, "rb") as file:
            content = file.read()
        (length,) = struct.unpack("<Q", content[:8])
        header, content = json.loads(content[8 : 8 + length]), content[8 + length :]
        metadata = header.pop("__metadata__", {})
        propagation = metadata.get("propagation", "symmetric-gcn")
        if "network" in metadata:
            propagation = only_propagation(json.loads(metadata["network"]))
        arrays = {}
        for name, tensor in header.items():
            if tensor["dtype"] in ("F32", "F64"):
                start, end = tensor["data_offsets"]
                values = np.frombuffer(content[start:end], "<f4" if tensor["dtype"] == "F32" else "<f8")
                arrays[name] = values.astype(float).reshape(tensor["shape"])
    if "W2" in arrays or "W1" not in arrays:
        sys.exit("only models with one hidden layer can be checked")
    if propagation not in ("symmetric-gcn", "row-normalised"):
        sys.exit(f"the propagation {propagation} is not supported")
    return [arrays[name] for name in ("W0", "b0", "W1", "b1")], propagation


def only_propagation(network):
    """The propagation of a plain network with one hidden layer; others are refused."""
    sources = [[term["source"] for term in layer["terms"]] for layer in network["layers"]]
    activations = [layer["activation"] for layer in network["layers"]]
    scalars = any("scalar" in term for layer in network["layers"] for term in layer["terms"])
    if sources != [["attributes"], [{"layer": 0}]] or activations != ["relu", "none"] or scalars:
        sys.exit("the network is not a plain one with one hidden layer")
    if len(network["propagations"]) != 1:
        sys.exit("several propagations are not supported")
    return network["propagations"][0]


def propagation_matrix(adjacency, name):
    """P, from A + I; a kept self-loop adds to the diagonal, but not twice to the degree."""
    degrees = np.asarray(adjacency.sum(axis=1)).ravel() + 1
    looped = (adjacency + scipy.sparse.identity(adjacency.shape[0])).tocsr()
    if name == "row-normalised":
        return scipy.sparse.diags(1 / degrees).dot(looped).tocsr()
    scale = scipy.sparse.diags(1 / np.sqrt(degrees))
    return scale.dot(looped).dot(scale).tocsr()


def largest(values, count):
    """The sum of the `count` largest entries along axis 0; entries must not be negative."""
    if count == 0:
        return np.zeros(values.shape[1:])
    if len(values) > count:
        values = np.partition(values, len(values) - count, axis=0)[len(values) - count :]
    return values.sum(axis=0)


class World:
    """Graph, model and budget."""

    def __init__(self, adjacency, attributes, model, propagation, budget):
        self.attributes = attributes
        self.w0, self.b0, self.w1, self.b1 = model
        self.p = propagation_matrix(adjacency, propagation)
        self.budget = budget
        nodes, count = attributes.shape
        self.global_budget = budget["global"]
        self.local = np.full(nodes, budget["local_count"])
        for node, own in budget.get("local_at", {}).items():
            self.local[int(node)] = own
        self.local[budget.get("protected_nodes", [])] = 0
        self.flippable = np.ones(count, bool)
        self.flippable[budget.get("protected_attributes", [])] = False

    def x(self, node):
        row = np.zeros(self.attributes.shape[1], bool)
        row[self.attributes.indices[self.attributes.indptr[node] : self.attributes.indptr[node + 1]]] = True
        return row

    def allowed(self, node):
        """The attributes that may be flipped at `node`, each on its own."""
        if self.local[node] == 0 or self.global_budget == 0:
            return np.zeros(0, int)
        allowed = self.flippable.copy()
        if self.budget["direction"] == "add-only":
            allowed &= ~self.x(node)
        if self.budget["direction"] == "delete-only":
            allowed &= self.x(node)
        return np.flatnonzero(allowed)

    def neighbours(self, node):
        row = slice(self.p.indptr[node], self.p.indptr[node + 1])
        return self.p.indices[row], self.p.data[row]


class Target:
    """What one node sees: neighbours m with P_tm, their neighbours n, and H_mj."""

    def __init__(self, world, node):
        self.world = world
        self.middle, self.to_target = world.neighbours(node)
        self.outer = np.unique(np.concatenate([world.neighbours(m)[0] for m in self.middle]))
        self.p = np.zeros((len(self.middle), len(self.outer)))
        for row, m in enumerate(self.middle):
            columns, values = world.neighbours(m)
            self.p[row, np.searchsorted(self.outer, columns)] = values
        self.x = np.array([world.x(n) for n in self.outer])
        self.local = np.minimum(world.local[self.outer], world.global_budget)
        self.clean = self.hidden(self.x)
        # All candidates: row n of `outer`, attribute.
        pairs = [(np.full(len(allowed), row), allowed) for row, allowed in enumerate(map(world.allowed, self.outer))]
        self.rows, self.columns = (np.concatenate(part) for part in zip(*pairs))
        self.bounds = self.interval(self.rows, self.columns)

    def hidden(self, x):
        """Pre-activations, m × j, under the attributes `x`."""
        return self.p @ (x.astype(float) @ self.world.w0) + self.world.b0

    def logits(self, flips):
        x = self.x.copy()
        for row, column in flips:
            x[row, column] = not x[row, column]
        return self.to_target @ np.maximum(self.hidden(x), 0) @ self.world.w1 + self.world.b1

    def signs(self, rows, columns):
        return 1.0 - 2.0 * self.x[rows, columns]

    def interval(self, rows, columns):
        """lo and hi, m × j, over all admissible subsets of the candidates: per unit a flip is worth P_mn times its
        weight, so the Q most valuable ones, at most q_n of them at n, are the extreme set. `rows` ascend."""
        units = self.world.w0.shape[1]
        tops = {sign: np.zeros((len(self.outer), self.local.max(initial=0), units)) for sign in (1, -1)}
        starts = np.searchsorted(rows, np.arange(len(self.outer) + 1))
        for n in range(len(self.outer)):
            here = slice(starts[n], starts[n + 1])
            moves = self.signs(rows[here], columns[here])[:, None] * self.world.w0[columns[here]]
            count = min(self.local[n], len(moves))
            if count == 0:
                continue
            for sign, top in tops.items():
                gains = np.maximum(sign * moves, 0)
                top[n, :count] = np.partition(gains, len(gains) - count, axis=0)[len(gains) - count :]
        change = {sign: np.zeros_like(self.clean) for sign in tops}
        for m in range(len(self.middle)):
            near = np.flatnonzero(self.p[m])
            for sign, top in tops.items():
                values = (self.p[m, near][:, None, None] * top[near]).reshape(-1, units)
                change[sign][m] = largest(values, self.world.global_budget)
        return self.clean - change[-1], self.clean + change[1]

    def additive(self, u, constant, bounds, under, mix, rows, columns):
        """`base` and a gain for each candidate, such that margin(F) >= base - the gains of F for every admissible set F
        of candidates, between whose `bounds` pre-activations then stay. `under` and `mix` may be anything in [0, 1].

        Proof: relu(x) = x if lo >= 0, and 0 if hi <= 0. Else each term P_tm u_j relu(x_mj) is bounded from below; P >= 0.
        * u_j > 0: relu(x) >= under x, since 0 <= under <= 1.
        * u_j < 0: relu, being convex, is below its chord hi / (hi - lo) (x - lo) between lo and hi. And relu is
          subadditive, relu(y + z) <= relu(y) + relu(z): with x = H + a_1 + ... + a_r, r <= Q the number of flips, each a_i
          taken together with H / Q, and Q - r times H / Q left over,
          relu(x) <= Q relu(H / Q) + sum_i (relu(H / Q + a_i) - relu(H / Q)).
          So relu(x) is below every mix of these two.
        All of this is a constant plus a number for each flip."""
        lo, hi = bounds
        q = max(self.world.global_budget, 1)
        open_ = (lo < 0) & (hi > 0)
        concave = open_ & (u < 0)
        chord = np.where(open_, hi / np.where(open_, hi - lo, 1), 0)
        slope = np.where(open_, np.where(u > 0, under, (1 - mix) * chord), lo >= 0)
        rest = np.maximum(self.clean / q, 0)
        shift = np.where(concave, mix * q * rest - (1 - mix) * chord * lo, 0)
        factors = self.to_target[:, None] * u
        base = constant + (factors * (slope * self.clean + shift)).sum()
        signs = self.signs(rows, columns)
        gains = -((self.p.T @ (factors * slope)) @ self.world.w0.T)[rows, columns] * signs
        units = np.flatnonzero((concave & (mix > 0)).any(axis=0))
        scaled = np.where(concave, mix * factors, 0)[:, units]
        starts = np.searchsorted(rows, np.arange(len(self.outer) + 1))
        for n in range(len(self.outer)):
            here = slice(starts[n], starts[n + 1])
            moves = signs[here, None] * self.world.w0[columns[here]][:, units]
            for m in np.flatnonzero(self.p[:, n]) if len(moves) else ():
                with_flip = np.maximum(self.clean[m, units] / q + self.p[m, n] * moves, 0)
                gains[here] -= (with_flip - rest[m, units]) @ scaled[m]
        return base, gains

    def best(self, gains, rows, count):
        """An admissible set of at most `count` candidates with the largest sum of gains: the largest ones, as long as
        there is room at their nodes. Gains that are not positive are left out."""
        chosen, used = [], np.zeros(len(self.outer), int)
        for place in np.argsort(-gains):
            if len(chosen) == count or gains[place] <= 0:
                break
            if used[rows[place]] < self.local[rows[place]]:
                used[rows[place]] += 1
                chosen.append(place)
        return np.array(chosen, int)

    def prune(self, u, constant):
        """Candidates that a set with margin <= 0 can contain, with their gains, and bounds over those.

        Let margin(F) >= base - sum_{f in F} gain_f for every admissible F (`additive`). Let T be the largest sum of
        gains over admissible sets of at most Q - 1 flips (`best`: such sets are the independent sets of a matroid, where
        taking the largest first is optimal). A set that contains f consists of f and of such a set, so its margin is at
        least base - gain_f - T. Where that is positive, no set with margin <= 0 contains f: leaving f out changes no
        answer. Then it is enough that everything holds for sets of what is left: lo and hi are taken anew over those, and
        the argument repeated.

        `under` and `mix` go towards what is best against the set that the bound selects; any values would be valid."""
        rows, columns, bounds = self.rows, self.columns, self.bounds
        gains = np.zeros(len(rows))
        under, mix = (self.clean > 0).astype(float), np.ones_like(self.clean)
        still = 0
        for step in range(40):
            base, gains = self.additive(u, constant, bounds, under, mix, rows, columns)
            chosen = self.best(gains, rows, self.world.global_budget)
            # `chosen` is found greedily, so all but its last are a best set of one flip less.
            others = gains[chosen[: max(self.world.global_budget - 1, 0)]].sum()
            keep = base - gains - others <= SAFE
            keep[np.argsort(-gains)[:LEAST]] = True
            still = 0 if keep.sum() < 0.95 * len(keep) else still + 1
            lo, hi = bounds
            moves = self.moves(rows[chosen], columns[chosen])
            x = self.clean + moves.sum(axis=0)
            q = max(self.world.global_budget, 1)
            rest = np.maximum(self.clean / q, 0)
            by_flip = q * rest + (np.maximum(self.clean / q + moves, 0) - rest).sum(axis=0)
            by_chord = np.where(hi > lo, hi / np.where(hi > lo, hi - lo, 1), 0) * (x - lo)
            pace = 2 / (step + 3)
            under = under + pace * ((x > 0) - under)
            mix = mix + pace * ((by_flip < by_chord) - mix)
            if not keep.all():
                rows, columns, gains = rows[keep], columns[keep], gains[keep]
                bounds = self.interval(rows, columns)
            if len(rows) <= LEAST or still == 6:
                break
        return rows, columns, gains, bounds

    def moves(self, rows, columns):
        """By how much each flip moves the pre-activations: flips × m × j."""
        weights = self.signs(rows, columns)[:, None] * self.world.w0[columns]
        return self.p[:, rows].T[:, :, None] * weights[:, None, :]

    def solve(self, u, constant, rows, columns, bounds, seconds):
        """A set of flips with margin <= 0 from the candidates: the flips, None if there is none, or "time"."""
        lo, hi = bounds
        flips = len(rows)
        if flips == 0:
            return [] if constant + self.to_target @ np.maximum(self.clean, 0) @ u <= 0 else None
        signs = self.signs(rows, columns)
        factors = self.to_target[:, None] * u
        always = lo >= 0
        open_ = np.argwhere((lo < 0) & (hi > 0) & (factors != 0))
        concave = open_[factors[tuple(open_.T)] < 0]
        convex = open_[factors[tuple(open_.T)] > 0]
        # Variables: z of the flips, h of the concave and convex units, a of the concave ones.
        h_concave = flips + np.arange(len(concave))
        h_convex = flips + len(concave) + np.arange(len(convex))
        a = flips + len(open_) + np.arange(len(concave))
        total = flips + len(open_) + len(concave)

        def effects(units):
            """By how much each flip moves the pre-activations of `units`."""
            return self.p[units[:, 0]][:, rows] * self.world.w0[columns][:, units[:, 1]].T * signs

        base = constant + (factors * always * self.clean).sum()
        weights = (self.p.T @ (factors * always)) @ self.world.w0.T
        objective = np.zeros(total)
        objective[:flips] = weights[rows, columns] * signs
        objective[h_concave] = factors[tuple(concave.T)]
        objective[h_convex] = factors[tuple(convex.T)]

        constraints = []

        def add(matrix, upper):
            constraints.append(scipy.optimize.LinearConstraint(scipy.sparse.csr_matrix(matrix), -np.inf, upper))

        def place(count, *blocks):
            matrix = np.zeros((count, total))
            for variables, values in blocks:
                if np.ndim(values) == 2:
                    matrix[:, variables] = values
                else:
                    matrix[np.arange(count), variables] = values
            return matrix

        add(objective[None], -base)
        budget = np.zeros((1 + len(self.outer), total))
        budget[0, :flips] = 1
        budget[1 + rows, np.arange(flips)] = 1
        add(budget, np.concatenate([[self.world.global_budget], self.local]))
        z = np.arange(flips)
        if len(concave):
            where = tuple(concave.T)
            add(place(len(concave), (h_concave, 1), (a, -hi[where])), 0)
            # h <= x - lo (1 - a)
            blocks = (z, -effects(concave)), (h_concave, 1), (a, -lo[where])
            add(place(len(concave), *blocks), self.clean[where] - lo[where])
        if len(convex):
            add(place(len(convex), (z, effects(convex)), (h_convex, -1)), -self.clean[tuple(convex.T)])
        upper = np.ones(total)
        upper[h_concave], upper[h_convex] = hi[tuple(concave.T)], hi[tuple(convex.T)]
        whole = np.zeros(total)
        whole[:flips] = whole[a] = 1
        result = scipy.optimize.milp(
            objective,
            constraints=constraints,
            integrality=whole,
            bounds=scipy.optimize.Bounds(0, upper),
            # Any gap will do: the first solution has a margin of at most 0.
            options={"mip_rel_gap": 1e30, "time_limit": max(seconds, 0.01)},
        )
        if result.x is not None:
            chosen = result.x[:flips] > 0.5
            return list(zip(rows[chosen].tolist(), columns[chosen].tolist()))
        return None if result.status == 2 else "time"


def decide(target, class_, limit):
    """("robust", None), ("nonrobust", margin), ("close", margin), ("time", None) or ("large", None); and how many
    candidates there were."""
    world = target.world
    end = time.perf_counter() + limit
    most, unsure = 0, None
    problems = []
    for other in range(len(world.b1)):
        if other != class_:
            u = world.w1[:, class_] - world.w1[:, other]
            constant = world.b1[class_] - world.b1[other]
            problems.append((other, u, constant, target.prune(u, constant)))
    # The class that can gain the most first.
    problems.sort(key=lambda problem: -len(problem[3][0]))
    for other, u, constant, (rows, columns, gains, bounds) in problems:
        most = max(most, len(rows))
        attempts = [np.arange(len(rows))]
        if len(rows) > SHORT_LIST:
            # A solution from some of the candidates is a solution; that there is none among them says nothing.
            attempts.insert(0, np.sort(np.argsort(-gains)[:SHORT_LIST]))
        for attempt in attempts:
            left = end - time.perf_counter()
            whole = len(attempt) == len(rows)
            if left <= 0:
                return ("time", None), most
            some = bounds if whole else target.interval(rows[attempt], columns[attempt])
            seconds = left if whole else min(left, limit / 4)
            found = "large"
            if len(attempt) <= LARGE:
                found = target.solve(u, constant, rows[attempt], columns[attempt], some, seconds)
            if found in ("time", "large") and whole:
                unsure = unsure or (found, None)
            elif isinstance(found, list):
                logits = target.logits(found)
                margin = logits[class_] - logits[other]
                if margin < -CLOSE:
                    return ("nonrobust", margin), most
                unsure = ("close", margin)
                break
    return unsure or ("robust", None), most


def check_witness(target, record):
    """What is wrong with the witness, or None, and its margin."""
    world = target.world
    counts, flips = {}, []
    for flip in record["witness"]:
        node, attribute = flip["node"], flip["attribute"]
        counts[node] = counts.get(node, 0) + 1
        if attribute not in world.allowed(node):
            return f"flip of {attribute} at {node} is not allowed", None
        if flip["to"] == int(world.x(node)[attribute]):
            return f"flip of {attribute} at {node} changes nothing", None
        if node in target.outer:
            flips.append((int(np.searchsorted(target.outer, node)), attribute))
    if len({(flip["node"], flip["attribute"]) for flip in record["witness"]}) < len(record["witness"]):
        return "a flip is listed twice", None
    if len(record["witness"]) > world.global_budget or any(n > world.local[node] for node, n in counts.items()):
        return "too many flips", None
    logits = target.logits(flips)
    margin = float(logits[record["class"]] - logits[record["witness_class"]])
    if record["witness_margin"] == 0 and abs(margin) < 1e-9:
        return None, margin
    if not margin < 0:
        return f"the witness leaves a margin of {margin:g}", margin
    if abs(margin - record["witness_margin"]) > 1e-9 * max(1, abs(margin)):
        return f"its margin is {margin!r}, not {record['witness_margin']!r}", margin
    return None, margin


def check(world, record, limit):
    """One line about a node: how it came out, and why."""
    node, start = record["node"], time.perf_counter()
    target = Target(world, node)
    logits = target.logits([])
    problems = []
    if logits[record["predicted"]] < logits.max() - 1e-9:
        problems.append(f"predicted {record['predicted']}, not {logits.argmax()}")
    stated = record["verdict"]
    close = False
    if stated == "nonrobust":
        problem, margin = check_witness(target, record)
        problems += [problem] if problem else []
        close = margin is not None and margin > -CLOSE
    (verdict, margin), candidates = decide(target, record["class"], limit)
    if {stated, verdict} == {"robust", "nonrobust"} and not close:
        problems.append(f"{stated}, but the program says {verdict}" + (f" ({margin:g})" if margin is not None else ""))
    if problems:
        outcome = "disagree"
    elif verdict in ("time", "large"):
        outcome = "timed out" if verdict == "time" else "too large"
    elif verdict == "close" or stated not in ("robust", "nonrobust") or stated != verdict:
        outcome = "open"
    else:
        outcome = "agree"
    return {
        "node": node,
        "outcome": outcome,
        "verdict": stated,
        "program": verdict,
        "engine": record["engine"],
        "candidates": candidates,
        "seconds": round(time.perf_counter() - start, 3),
        **({"problems": problems} if problems else {}),
    }


def choose(records, count, seed):
    """Half of the nodes are the hardest, by branches, engine and distance from 0; the others random among the rest."""

    def hardness(record):
        engine = ("fast", "tight", "complete").index(record["engine"])
        bounds = [0.0 if bound == "positive" else bound for bound in record["margins"] if bound is not None]
        margin = record.get("witness_margin", min(bounds, default=0.0))
        return -record.get("branches", 0), -engine, abs(margin)

    ordered = sorted(records, key=hardness)
    half = min(count // 2, len(ordered))
    rest = ordered[half:]
    drawn = np.random.default_rng(seed).permutation(len(rest))[: count - half]
    return ordered[:half] + [rest[i] for i in sorted(drawn)]


def self_test(count, seed):
    """Tiny random problems, decided by trying every admissible set: the programs must say the same."""
    global SHORT_LIST, LEAST
    random = np.random.default_rng(seed)
    tally = {}
    for case in range(count):
        SHORT_LIST, LEAST = random.choice([2, 5, 150]), random.choice([0, 3, 60])
        nodes, attributes, units, classes = random.integers((1, 1, 1, 2), (5, 5, 5, 4))
        adjacency = np.triu(random.random((nodes, nodes)) < 0.5, 1)
        adjacency = scipy.sparse.csr_matrix((adjacency | adjacency.T).astype(float))
        x = scipy.sparse.csr_matrix(random.random((nodes, attributes)) < 0.4)
        shapes = (attributes, units), units, (units, classes), classes
        model = [2 * random.normal(size=shape) for shape in shapes]
        model[3][0] += random.choice([0, 0, 1])
        budget = {"global": int(random.integers(0, 5)), "local_count": int(random.integers(1, attributes + 1))}
        budget["direction"] = random.choice(["both", "both", "add-only", "delete-only"])
        budget["protected_attributes"] = [0] if random.random() < 0.2 else []
        propagation = random.choice(["symmetric-gcn", "row-normalised"])
        world = World(adjacency, x, model, propagation, budget)
        # The truth, without anything of the above but P.
        dense = x.toarray()
        allowed = [(n, d) for n in range(nodes) for d in range(attributes)]
        if budget["direction"] != "both":
            allowed = [flip for flip in allowed if dense[flip] == (budget["direction"] == "delete-only")]
        allowed = [flip for flip in allowed if flip[1] not in budget["protected_attributes"]]
        smallest = None
        for size in range(budget["global"] + 1):
            for flips in itertools.combinations(allowed, size):
                at_node = [node for node, _ in flips]
                if any(at_node.count(node) > budget["local_count"] for node in at_node):
                    continue
                changed = dense.astype(float)
                for flip in flips:
                    changed[flip] = 1 - changed[flip]
                logits = world.p @ np.maximum(world.p @ changed @ model[0] + model[1], 0) @ model[2] + model[3]
                if smallest is None:
                    chosen = logits.argmax(axis=1)
                margins = logits[np.arange(nodes), chosen][:, None] - logits
                margins[np.arange(nodes), chosen] = np.inf
                smallest = margins if smallest is None else np.minimum(smallest, margins)
        for node in range(nodes):
            truth = smallest[node].min()
            (verdict, _), _ = decide(Target(world, node), chosen[node], 60)
            tally[verdict] = tally.get(verdict, 0) + 1
            if abs(truth) > CLOSE and verdict != ("robust" if truth > 0 else "nonrobust"):
                sys.exit(f"case {case}, node {node}: the program says {verdict}, the smallest margin is {truth:g}")
    print(f"{count} problems, every set tried, as the programs say:", tally)


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test(400, 0)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graph", required=True, help=".npz, as nodeproof read it")
    parser.add_argument("--binarise", action="store_true")
    parser.add_argument("--keep-self-loops", action="store_true")
    parser.add_argument("--model", required=True, help=".npz or .safetensors")
    parser.add_argument("--certificates", required=True, help="JSON Lines of `nodeproof certify --out`")
    parser.add_argument("--nodes", type=int, default=100, help="how many, half of them the hardest (100)")
    parser.add_argument("--only", type=int, nargs="+", help="these nodes instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=60, help="seconds for one node (60)")
    parser.add_argument("--out", help="a line of JSON for each node")
    options = parser.parse_args()

    adjacency, attributes = read_graph(options.graph, options.binarise, options.keep_self_loops)
    model, propagation = read_model(options.model)
    with open(options.certificates, encoding="utf-8") as file:
        header, *records = map(json.loads, file)
    if header["format"] != "nodeproof-certificates" or header["version"] not in (1, 2):
        sys.exit("these are not certificates of version 1 or 2")
    edges = int(scipy.sparse.triu(adjacency).nnz)
    sizes = {"nodes": adjacency.shape[0], "edges": edges, "attributes": attributes.shape[1]}
    for name, size in sizes.items():
        if header["graph"][name] != size:
            sys.exit(f"certificates are for {header['graph'][name]} {name}, the graph has {size}")
    if header["model"]["propagation"] != propagation:
        sys.exit(f"certificates are for the propagation {header['model']['propagation']}, the model has {propagation}")
    world = World(adjacency, attributes, model, propagation, header["budget"])

    if options.only:
        chosen = [record for record in records if record["node"] in options.only]
    else:
        chosen = choose(records, options.nodes, options.seed)
    results = []
    out = open(options.out, "w", encoding="utf-8") if options.out else None
    for place, record in enumerate(chosen, 1):
        result = check(world, record, options.time_limit)
        results.append(result)
        line = json.dumps(result)
        if out:
            print(line, file=out, flush=True)
        if result["outcome"] != "agree":
            print(line, flush=True)
        if sys.stderr.isatty():
            print(f"\r{place} of {len(chosen)}", end="\n" if place == len(chosen) else "", file=sys.stderr, flush=True)

    for outcome in ("agree", "disagree", "timed out", "too large", "open"):
        found = [result for result in results if result["outcome"] == outcome]
        kinds = [result["verdict"] for result in found]
        parts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
        print(f"{outcome}: {len(found)}" + (f" ({parts})" if parts else ""))
    seconds = sorted(result["seconds"] for result in results)
    if seconds:
        print(f"seconds: {sum(seconds):.1f} in total, median {seconds[len(seconds) // 2]:.2f}, slowest {seconds[-1]:.1f}")
        print(f"candidates: at most {max(result['candidates'] for result in results)}")
    sys.exit(any(result["outcome"] == "disagree" for result in results))


if __name__ == "__main__":
    main()
