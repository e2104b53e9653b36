#!/usr/bin/env python3
"""Certificates held against exact mixed-integer programs, solved by HiGHS.

Reads a graph, a model with one or two hidden layers and the certificates of `nodeproof certify --out`, and decides
nodes once more, sharing no code with nodeproof and looking at no verdict: for every other class, is there an admissible
set of flips under which the margin is at most 0?

    tests/milp/run --graph cora_ml.npz --binarise --model model.npz --certificates certificates.jsonl --nodes 100

Half of the nodes are the hardest ones, the others random. The exit status is 1 where a verdict is contradicted.
With two hidden layers, nodes are chosen among those that depend on few other nodes (`--reach`), and a node where only
the most promising flips could be searched, without success, is reported as restricted: that confirms nothing.
`tests/milp/run --self-test` holds the programs themselves against every admissible set of tiny problems.

one_layer.py and two_layers.py say what the programs are, first_layer.py which flips they may leave out, and why.
"""

import argparse
import json
import sys
import time

import numpy as np
import scipy.sparse
from decide import CLOSE, decide, view
from problem import World, read_graph, read_model
from self_test import self_test


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
    target = view(world, node)
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
    decision = decide(target, record["class"], limit)
    verdict, margin = decision.verdict, decision.margin
    if {stated, verdict} == {"robust", "nonrobust"} and not close:
        problems.append(f"{stated}, but the program says {verdict}" + (f" ({margin:g})" if margin is not None else ""))
    if problems:
        outcome = "disagree"
    elif verdict in ("time", "large"):
        outcome = "timed out" if verdict == "time" else "too large"
    elif verdict == "restricted":
        outcome = "restricted"
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
        "candidates": decision.candidates,
        **({"needed": decision.needed} if world.deep else {}),
        **({"searched": decision.searched} if decision.searched else {}),
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


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test(250, 1, 0)
        return self_test(250, 2, 0)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graph", required=True, help=".npz, as nodeproof read it")
    parser.add_argument("--binarise", action="store_true")
    parser.add_argument("--keep-self-loops", action="store_true")
    parser.add_argument("--model", required=True, help=".npz or .safetensors")
    parser.add_argument("--certificates", required=True, help="JSON Lines of `nodeproof certify --out`")
    parser.add_argument("--nodes", type=int, default=100, help="how many, half of them the hardest (100)")
    parser.add_argument("--only", type=int, nargs="+", help="these nodes instead")
    few = "two hidden layers: choose among the nodes that depend on at most so many nodes (60)"
    parser.add_argument("--reach", type=int, default=60, help=few)
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
        if world.deep:
            reach = world.reach()
            total = len(records)
            records = [record for record in records if reach[record["node"]] <= options.reach]
            print(f"{len(records)} of {total} nodes depend on at most {options.reach} nodes")
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

    summarise(results, world.deep)
    sys.exit(any(result["outcome"] == "disagree" for result in results))


def summarise(results, deep):
    if deep:
        decided = [result for result in results if result["program"] in ("robust", "nonrobust")]
        robust = [result for result in decided if result["program"] == "robust"]
        hard = sum(result["needed"] > 0 for result in robust)
        print(f"decided for all admissible flips: {len(decided)} of {len(results)} nodes")
        print(f"robust: {len(robust)}; for {hard} of them bounds had not excluded every flip when the program began")
    for outcome in ("agree", "disagree", *(["restricted"] if deep else []), "timed out", "too large", "open"):
        found = [result for result in results if result["outcome"] == outcome]
        kinds = [result["verdict"] for result in found]
        parts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
        print(f"{outcome}: {len(found)}" + (f" ({parts})" if parts else ""))
    seconds = sorted(result["seconds"] for result in results)
    if seconds:
        median = seconds[len(seconds) // 2]
        print(f"seconds: {sum(seconds):.1f} in total, median {median:.2f}, slowest {seconds[-1]:.1f}")
        print(f"candidates: at most {max(result['candidates'] for result in results)}")


if __name__ == "__main__":
    main()
