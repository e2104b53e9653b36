"""What modules of PyTorch Geometric cost on a graph, in CPU seconds: importing them, and certifying all nodes with `fast`.

    python python/bench/modules.py --graph cora_ml.npz --binarise

Modules are trained for a few epochs first, so that weights, and the statistics of BatchNorm, are like those that people have.
Without `--graph` it is the bundled one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch_geometric.nn import APPNP, GCN, GIN, MLP, BatchNorm, ChebConv, GraphSAGE, Sequential, SGConv, TAGConv

import nodeproof

Make = Callable[[int, int], torch.nn.Module]
NAMES = "x, edge_index"
MODULES: dict[str, Make] = {
    "GCN": lambda inputs, classes: GCN(inputs, 64, 2, classes),
    "GraphSAGE": lambda inputs, classes: GraphSAGE(inputs, 64, 2, classes),
    "GIN with BatchNorm": lambda inputs, classes: GIN(inputs, 64, 2, classes, norm=BatchNorm(64)),
    "SGConv": lambda inputs, classes: Sequential(NAMES, [(SGConv(inputs, classes, K=2), f"{NAMES} -> x")]),
    "APPNP": lambda inputs, classes: Sequential(
        NAMES, [(MLP([inputs, 64, classes], norm=None), "x -> x"), (APPNP(10, 0.1), f"{NAMES} -> x")]
    ),
    "TAGConv": lambda inputs, classes: Sequential(
        NAMES,
        [(TAGConv(inputs, 64), f"{NAMES} -> x"), torch.nn.ReLU(), (TAGConv(64, classes), f"{NAMES} -> x")],
    ),
    "ChebConv": lambda inputs, classes: Sequential(
        NAMES,
        [(ChebConv(inputs, 64, 3), f"{NAMES} -> x"), torch.nn.ReLU(), (ChebConv(64, classes, 3), f"{NAMES} -> x")],
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph")
    parser.add_argument("--binarise", action="store_true")
    parser.add_argument("--global-budget", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--modules", nargs="+", default=list(MODULES), choices=MODULES, metavar="NAME")
    parser.add_argument("--import-only", action="store_true")
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    given = (
        nodeproof.Graph.bundled()
        if options.graph is None
        else nodeproof.Graph.read(options.graph, binarise=options.binarise)
    )
    data = given.to_pyg()
    nodes = torch.as_tensor(nodeproof.Split.stratified(given, seed=0).train.astype("int64"))
    nodeproof.from_pyg(trained(MODULES["GCN"](data.num_features, given.classes), data, nodes, 1), data, progress=False)
    print(f"{'module':<20} {'import':>7} {'fast':>7}   CPU-s, the smallest of {options.runs}")
    for name in options.modules:
        module = trained(MODULES[name](data.num_features, given.classes), data, nodes, options.epochs)
        (graph, model), imported = least(options.runs, partial(nodeproof.from_pyg, module, data, progress=False))
        if options.import_only:
            print(f"{name:<20} {imported:7.2f}")
            continue
        budget = {"global_budget": options.global_budget, "engine": "fast", "threads": 1, "progress": False}
        certificates, certified = least(options.runs, partial(nodeproof.certify, graph, model, **budget))
        print(f"{name:<20} {imported:7.2f} {certified:7.2f}   {certificates}")


def trained(module: torch.nn.Module, data: Any, nodes: torch.Tensor, epochs: int) -> torch.nn.Module:
    """Cross entropy on these nodes, by Adam."""
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        optimiser.zero_grad()
        logits = module(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(logits[nodes], data.y[nodes]).backward()
        optimiser.step()
    return module.eval()


def least(runs: int, work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and the CPU seconds of the quickest run."""
    result, seconds = None, []
    for _ in range(runs):
        begin = time.process_time()
        result = work()
        seconds.append(time.process_time() - begin)
    return result, min(seconds)


if __name__ == "__main__":
    main()
