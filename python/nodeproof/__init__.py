"""Proofs that a graph neural network's predictions withstand tampering with node attributes.

Give nodeproof a graph, a trained network and a budget of attribute flips, and every node gets a verdict: *robust*, proven;
*nonrobust*, with the flips that change its class; or, if time runs out, *undecided*.

>>> import nodeproof
>>> graph = nodeproof.Graph.bundled()
>>> model = nodeproof.train(graph, "ce", global_budget=5, steps=40).model
>>> certificates = nodeproof.certify(graph, model, global_budget=5, nodes=range(20), engine="fast")
>>> len(certificates)
20

From PyTorch Geometric: `graph, model = nodeproof.from_pyg(module, data)`. In a training loop of your own: `nodeproof.torch`.
On a cluster: `nodeproof.distributed`.
"""

from __future__ import annotations

from . import distributed, planetoid, torch
from ._core import __version__
from .budget import Budget
from .by_budget import CertificatesByBudget
from .certification import certify, radius
from .collectives import Collective, Collectives, collective
from .errors import (
    FileError,
    InputError,
    InternalError,
    MissingBudgetError,
    MissingDependencyError,
    MissingFileError,
    MissingRowError,
    NodeproofError,
    NotCopyableError,
    NotFittedError,
    NotRunnableError,
    PrecisionError,
    VerificationError,
)
from .estimator import RobustGCN
from .explanation import Explanation, explain
from .figure import Figure
from .graph import Graph
from .model import Layer, Model, Term
from .page import Report, report
from .pyg import Verification, from_pyg, to_pyg
from .results import Certificate, Certificates, Radii, Radius
from .split import Split
from .training import Training, train
from .witness import Flip, Witness

__all__ = [
    "Budget",
    "Certificate",
    "Certificates",
    "CertificatesByBudget",
    "Collective",
    "Collectives",
    "Explanation",
    "Figure",
    "FileError",
    "Flip",
    "Graph",
    "InputError",
    "InternalError",
    "Layer",
    "MissingBudgetError",
    "MissingDependencyError",
    "MissingFileError",
    "MissingRowError",
    "Model",
    "NodeproofError",
    "NotCopyableError",
    "NotFittedError",
    "NotRunnableError",
    "PrecisionError",
    "Radii",
    "Radius",
    "Report",
    "RobustGCN",
    "Split",
    "Term",
    "Training",
    "Verification",
    "VerificationError",
    "Witness",
    "__version__",
    "certify",
    "collective",
    "distributed",
    "explain",
    "from_pyg",
    "planetoid",
    "radius",
    "report",
    "to_pyg",
    "torch",
    "train",
]


def __dir__() -> list[str]:
    return sorted(__all__)
