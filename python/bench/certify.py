"""What certifying from Python costs beyond the command line, in CPU seconds: the same graph, model, budget and engine in turns.

    python python/bench/certify.py --program target/release/nodeproof --graph cora_ml.npz --binarise --model model.npz

Both count the work alone, as `nodeproof certify --json` does, and Python also the table: reading the files, and starting an
interpreter with NumPy and SciPy, which takes some tenths of a second, are left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time

import nodeproof


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="nodeproof", help="the command line")
    parser.add_argument("--graph", required=True)
    parser.add_argument("--binarise", action="store_true")
    parser.add_argument("--keep-self-loops", action="store_true")
    parser.add_argument("--model", required=True)
    parser.add_argument("--global-budget", type=int, default=12)
    parser.add_argument("--engine", default="complete", choices=["fast", "tight", "complete"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()

    graph = nodeproof.Graph.read(options.graph, binarise=options.binarise, keep_self_loops=options.keep_self_loops)
    model = nodeproof.Model.read(options.model)
    flags = ["--binarise"] * options.binarise + ["--keep-self-loops"] * options.keep_self_loops
    command = [
        options.program, "certify", "--graph", options.graph, *flags, "--model", options.model, "--global-budget",
        str(options.global_budget), "--engine", options.engine, "--threads", str(options.threads), "--json",
    ]  # fmt: skip
    theirs, ours = [], []
    for _ in range(options.runs):
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        theirs.append(_cpu_seconds(json.loads(printed)))
        start = time.process_time()
        certificates = nodeproof.certify(
            graph,
            model,
            global_budget=options.global_budget,
            engine=options.engine,
            threads=options.threads,
            progress=False,
        )
        certificates.to_pandas()
        ours.append(time.process_time() - start)
    print(certificates)
    for name, seconds in (("command line", theirs), ("Python", ours)):
        print(f"{name:<12}  median {statistics.median(seconds):.4f}  smallest {min(seconds):.4f} CPU-s")
    medians = statistics.median(ours) / statistics.median(theirs)
    print(f"ratio         median {medians:.3f}  smallest {min(ours) / min(theirs):.3f}")


def _cpu_seconds(summary: object) -> float:
    """The field `cpu_seconds`, wherever it is."""
    if isinstance(summary, dict):
        if "cpu_seconds" in summary:
            return float(summary["cpu_seconds"])
        for value in summary.values():
            found = _cpu_seconds(value)
            if found >= 0:
                return found
    return -1.0


if __name__ == "__main__":
    main()
