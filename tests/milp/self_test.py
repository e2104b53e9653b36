"""The programs held against every admissible set of tiny random problems."""

import copy
import itertools
import sys

import numpy as np
import scipy.sparse
from decide import CLOSE, decide, view
from problem import Limits, World


def self_test(count, hidden, seed):
    """Tiny random problems with `hidden` hidden layers, decided by trying every admissible set: the programs must say
    the same. They must too where the bias is moved so that the smallest margin is just above or below 0, where a bound
    or an encoding that is a little off shows."""
    random = np.random.default_rng(seed)
    tally = {}
    for case in range(count):
        world = tiny(random, hidden)
        smallest, classes = every_set(world)
        for node, truth in enumerate(smallest):
            hold(world, node, classes[node], truth, case, tally)
            near = random.choice([-1, 1]) * 10 * CLOSE
            hold(moved(world, classes[node], near - truth), node, classes[node], near, case, tally)
    layers = "one hidden layer" if hidden == 1 else "two hidden layers"
    print(f"{count} problems with {layers}, every set tried, as the programs say:", tally)


def tiny(random, hidden):
    """A random problem with `hidden` hidden layers."""
    large = random.choice([4000, 4000, 4000, 6])
    limits = Limits(short_list=random.choice([2, 5, 150]), least=random.choice([0, 3, 60]), large=large)
    nodes, attributes, units, classes = random.integers((1, 1, 1, 2), (5, 5, 5, 4))
    adjacency = np.triu(random.random((nodes, nodes)) < 0.5, 1)
    adjacency = scipy.sparse.csr_matrix((adjacency | adjacency.T).astype(float))
    x = scipy.sparse.csr_matrix(random.random((nodes, attributes)) < 0.4)
    widths = [attributes, units, *random.integers(1, 5, size=hidden - 1), classes]
    layers = [(2 * random.normal(size=pair), 2 * random.normal(size=pair[1])) for pair in itertools.pairwise(widths)]
    layers[-1][1][0] += random.choice([0, 0, 1])
    budget = {"global": int(random.integers(0, 5)), "local_count": int(random.integers(1, attributes + 1))}
    budget["direction"] = random.choice(["both", "both", "add-only", "delete-only"])
    budget["protected_attributes"] = [0] if random.random() < 0.2 else []
    propagation = random.choice(["symmetric-gcn", "row-normalised"])
    return World(adjacency, x, layers, propagation, budget, limits)


def every_set(world):
    """The smallest margin of each node and its class, without anything of the programs but P."""
    dense = world.attributes.toarray()
    budget = world.budget
    nodes, attributes = dense.shape
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
            logits = dense.astype(float)
            for flip in flips:
                logits[flip] = 1 - logits[flip]
            for layer, (weights, bias) in enumerate(world.layers):
                logits = world.p @ (np.maximum(logits, 0) if layer else logits) @ weights + bias
            if smallest is None:
                classes = logits.argmax(axis=1)
            margins = logits[np.arange(nodes), classes][:, None] - logits
            margins[np.arange(nodes), classes] = np.inf
            smallest = margins if smallest is None else np.minimum(smallest, margins)
    return smallest.min(axis=1), classes


def moved(world, class_, shift):
    """The same problem, with all margins of a class moved by `shift`."""
    weights, bias = world.layers[-1]
    bias = bias.copy()
    bias[class_] += shift
    other = copy.copy(world)
    other.head = weights, bias
    return other


def hold(world, node, class_, truth, case, tally):
    decision = decide(view(world, node), class_, 60)
    tally[decision.verdict] = tally.get(decision.verdict, 0) + 1
    if decision.verdict in ("large", "restricted") and decision.candidates > world.limits.large:
        return
    if abs(truth) > CLOSE and decision.verdict != ("robust" if truth > 0 else "nonrobust"):
        said = f"the program says {decision.verdict}, the smallest margin is {truth:g}"
        sys.exit(f"hidden layers: {len(world.layers) - 1}, case {case}, node {node}: {said}")
