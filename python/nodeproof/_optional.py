"""Packages that nodeproof can do without."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import MissingDependencyError

#: What the extras of `pyproject.toml` install.
_PACKAGES = {
    "arrow": "pyarrow",
    "dask": "distributed",
    "pandas": "pandas",
    "polars": "polars",
    "progress": "tqdm",
    "pyg": "torch torch_geometric",
    "ray": "ray",
}


def optional(package: str, extra: str, purpose: str) -> Any:
    """The module `package`, or an error that says how to get it and what it is for; `extra` is what brings it along."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose} needs the package {package}, which cannot be imported ({error}); "
            f"pip install {_PACKAGES[extra]} installs it"
        ) from error


def pytorch(package: str = "torch") -> Any:
    """PyTorch, or what belongs to it, without which there are no modules to follow."""
    return optional(package, "pyg", "reading a PyTorch module")
