"""What the tests share. `NODEPROOF` names the program, against which files are held; without it those tests are skipped."""

from __future__ import annotations

import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest

import nodeproof

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "examples" / "papers"


@pytest.fixture(scope="session")
def papers() -> tuple[nodeproof.Graph, nodeproof.Model]:
    """The small example: 24 papers, and a network with one hidden layer."""
    return nodeproof.Graph.read(PAPERS / "graph.npz"), nodeproof.Model.read(PAPERS / "model.safetensors")


@pytest.fixture(scope="session")
def bundled() -> nodeproof.Graph:
    return nodeproof.Graph.bundled()


@pytest.fixture(scope="session")
def standard(bundled: nodeproof.Graph) -> nodeproof.Model:
    """A network trained in the standard way on the bundled graph."""
    return nodeproof.train(bundled, "ce", global_budget=5, evaluate=False, progress=False).model


@pytest.fixture(scope="session")
def program():
    """Runs the command line, and returns what it printed."""
    path = os.environ.get("NODEPROOF")
    if not path:
        pytest.skip("NODEPROOF does not name the program")

    def run(*arguments: object) -> str:
        done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def tiny(seed: int, nodes: int = 5, attributes: int = 4, hidden: int = 3, classes: int = 3):
    """A random problem, small enough to try all sets of flips; isolated nodes and empty rows come up."""
    random = np.random.default_rng(seed)
    upper = np.triu(random.random((nodes, nodes)) < 0.35, 1)
    x = random.random((nodes, attributes)) < 0.4
    x[random.integers(nodes)] = False
    # Weights with few digits make ties come up.
    weights = [
        np.round(random.normal(size=(attributes, hidden)), 1),
        np.round(random.normal(size=(hidden, classes)), 1),
    ]
    biases = [np.round(random.normal(size=hidden) / 3, 1), np.round(random.normal(size=classes) / 3, 1)]
    return (upper | upper.T).astype(int), x.astype(int), weights, biases


def sent(value: object, offset: int) -> object:
    """A value pickled and read again as Dask does it: arrays lie one after another in one message, from this offset on."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    message, spans = bytearray(offset), []
    for buffer in buffers:
        spans.append((len(message), len(message) + buffer.raw().nbytes))
        message += buffer.raw()
    return pickle.loads(pickled, buffers=[memoryview(message)[start:end] for start, end in spans])
