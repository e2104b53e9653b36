"""Robust or not, by programs: one for every other class."""

import dataclasses
import time

import numpy as np
from one_layer import OneLayer
from two_layers import TwoLayers

# HiGHS accepts constraints that are off by 1e-6: margins this close to 0 are not held against anyone.
CLOSE = 1e-5


@dataclasses.dataclass
class Decision:
    """The verdict for a node, one of

    * robust: no admissible set of flips has a margin of 0 or less;
    * nonrobust: the program found a set, whose margin is clearly negative;
    * close: it found a set, whose margin is too close to 0 to count;
    * time, large: a program ran out of time, or had too many candidates to begin with;
    * restricted (two hidden layers only): the same, but among the `searched` most promising candidates there is no such
      set. That says nothing about the others.

    `candidates` is the largest number that a program had, `needed` the largest that bounds had not excluded then."""

    verdict: str
    margin: float | None = None
    candidates: int = 0
    needed: int = 0
    searched: int | None = None


def view(world, node):
    """What `node` sees."""
    return (TwoLayers if world.deep else OneLayer)(world, node)


def decide(target, class_, limit):
    """Is there an admissible set of flips after which another class is at least equal?"""
    world = target.world
    weights, bias = world.head
    end = time.perf_counter() + limit
    decision = Decision("robust")
    problems = []
    for other in range(len(bias)):
        if other != class_:
            u = weights[:, class_] - weights[:, other]
            constant = bias[class_] - bias[other]
            problems.append((other, u, constant, target.prune(u, constant)))
    # The class that can gain the most first.
    problems.sort(key=lambda problem: -len(problem[3][0]))
    for other, u, constant, pruned in problems:
        decision.candidates = max(decision.candidates, len(pruned[0]))
        decision.needed = max(decision.needed, pruned[4])
        found, searched = search(target, u, constant, pruned[:4], limit, end)
        if isinstance(found, list):
            logits = target.logits(found)
            margin = logits[class_] - logits[other]
            if margin < -CLOSE:
                return Decision("nonrobust", margin, decision.candidates, decision.needed)
            decision.verdict, decision.margin = "close", margin
        elif found is not None:
            join(decision, found, searched if world.deep else None)
    return decision


def join(decision, found, searched):
    """Notes a class that was not decided, for which `found` is "time" or "large". The node is restricted if all of
    these classes are."""
    if searched is not None and decision.verdict in ("robust", "restricted"):
        decision.verdict = "restricted"
        decision.searched = min(searched, decision.searched or searched)
    elif decision.verdict in ("robust", "restricted"):
        decision.verdict, decision.searched = found, None


def search(target, u, constant, pruned, limit, end):
    """Flips with margin <= 0, None if there are none, "time" or "large"; and among how many of the most promising
    candidates there are none, where that is known."""
    rows, columns, gains, bounds = pruned
    limits = target.world.limits
    searched = None
    if len(rows) > limits.short_list:
        # A solution from some of the candidates is a solution; that there is none among them says nothing.
        some = np.sort(np.argsort(-gains)[: limits.short_list])
        left = end - time.perf_counter()
        if left <= 0:
            return "time", None
        near = target.interval(rows[some], columns[some])
        found = target.solve(u, constant, rows[some], columns[some], near, min(left, limit / 4))
        if isinstance(found, list):
            return found, None
        searched = len(some) if found is None else None
    left = end - time.perf_counter()
    if left <= 0:
        return "time", searched
    if len(rows) > limits.large:
        return "large", searched
    return target.solve(u, constant, rows, columns, bounds, left), searched
