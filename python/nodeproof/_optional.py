"""Packages that nodeproof can do without."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import MissingDependencyError


def optional(package: str, extra: str, purpose: str) -> Any:
    """The module `package`, or an error that says how to get it and what it is for."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose} needs the package {package}, which cannot be imported ({error}); "
            f"pip install 'nodeproof[{extra}]' installs it"
        ) from error
