"""What a step of robust training costs in a loop of one's own and in `nodeproof.train`, in CPU milliseconds on one thread.

    python python/bench/steps.py

All train the same GCN from the same weights on the bundled graph, with the loss of "rh": cross entropy of the labelled nodes,
and the hinge loss of a batch of them. The loops differ in where the cross entropy comes from: `robust.logits`, or the module
itself, whose attributes are dense or sparse. Runs take turns; the first step of each, and what comes before, is left out.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from typing import Any

import torch
from torch.nn import functional as F

import nodeproof

LOOPS = ("robust.logits", "module, sparse x", "module, dense x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--global-budget", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()

    torch.set_num_threads(1)
    graph = nodeproof.Graph.bundled()
    split = nodeproof.Split.stratified(graph, train="10%", seed=0)
    print(f"{graph}, {len(split.train)} labelled nodes, batches of {options.batch}, {options.steps} steps")
    loops = [Loop(graph, split, options, name) for name in LOOPS]
    spent: dict[str, list[float]] = {name: [] for name in ("nodeproof.train", *LOOPS)}
    for _ in range(options.rounds):
        spent["nodeproof.train"].append(trained(graph, split, options))
        for loop in loops:
            spent[loop.name].append(loop.run())
    print(f"{'a step':<18} {'median':>7}   ratio to nodeproof.train in the same round: median, quartiles")
    for name, times in spent.items():
        ratios = [time / other for time, other in zip(times, spent["nodeproof.train"], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"{name:<18} {statistics.median(times):7.1f}   {middle:.2f}, {low:.2f} to {high:.2f}")


def train(graph: nodeproof.Graph, split: nodeproof.Split, options: Any, **others: Any) -> nodeproof.Model:
    """The same as the loop below."""
    settings = {"learning_rate": 0.01, "steps": options.steps} | others
    training = nodeproof.train(
        graph, "rh", split=split, global_budget=options.global_budget, batch=options.batch, schedule="constant",
        weight_decay=0.0, dropout=0.0, attribute_dropout=0.0, warm_up=0, robust_weight=1.0, cross_entropy_weight=1.0,
        patience=None, evaluate=False, threads=1, progress=False, **settings,
    )  # fmt: skip
    return training.model


def trained(graph: nodeproof.Graph, split: nodeproof.Split, options: Any) -> float:
    begin = time.process_time()
    train(graph, split, options, steps=1)
    one = time.process_time()
    train(graph, split, options, steps=options.steps + 1)
    return ((time.process_time() - one) - (one - begin)) / options.steps * 1e3


class Loop:
    """A loop that always starts from the same weights."""

    def __init__(self, graph: nodeproof.Graph, split: nodeproof.Split, options: Any, name: str) -> None:
        # The weights after one step that moved nothing.
        start = train(graph, split, options, steps=1, learning_rate=1e-300)
        self.name, self.options = name, options
        self.module, data = start.to_pyg(), graph.to_pyg(split)
        self.start = copy.deepcopy(self.module.state_dict())
        self.robust = nodeproof.torch.Robust(self.module, data, global_budget=options.global_budget, threads=1)
        self.labelled = torch.as_tensor(split.train.astype("int64"))
        self.labels, self.edges = data.y[self.labelled], data.edge_index
        self.x = data.x.to_sparse_csr() if "sparse" in name else data.x

    def run(self) -> float:
        self.module.load_state_dict(self.start)
        optimiser = torch.optim.Adam(self.module.parameters(), lr=0.01)
        self.step(optimiser)
        begin = time.process_time()
        for _ in range(self.options.steps):
            self.step(optimiser)
        return (time.process_time() - begin) / self.options.steps * 1e3

    def step(self, optimiser: torch.optim.Optimizer) -> None:
        optimiser.zero_grad()
        if self.name == "robust.logits":
            logits = self.robust.logits(self.labelled)
        else:
            logits = self.module(self.x, self.edges)[self.labelled]
        some = torch.randperm(len(self.labelled))[: self.options.batch]
        loss = F.cross_entropy(logits, self.labels) + self.robust.hinge(self.labelled[some], self.labels[some])
        loss.backward()
        optimiser.step()


if __name__ == "__main__":
    main()
