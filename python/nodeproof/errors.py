"""What can go wrong. Everything that nodeproof raises by itself is a `NodeproofError`."""

from __future__ import annotations

import sys

__all__ = [
    "FileError",
    "InputError",
    "InternalError",
    "MissingDependencyError",
    "MissingFileError",
    "NodeproofError",
    "NotFittedError",
    "VerificationError",
]


class NodeproofError(Exception):
    """Whatever nodeproof cannot or will not do; the message says where and what to do about it."""


class InputError(NodeproofError, ValueError):
    """What was given is wrong: a `ValueError`."""


class VerificationError(InputError):
    """An imported model does not compute what the module computes."""


class FileError(NodeproofError, OSError):
    """A file cannot be read or written: an `OSError`."""


class MissingFileError(FileError, FileNotFoundError):
    """A file is not there: a `FileNotFoundError`."""


class NotFittedError(NodeproofError, ValueError, AttributeError):
    """An estimator is asked for something before `fit`; where scikit-learn is loaded, a `NotFittedError` of it, too."""


class MissingDependencyError(NodeproofError, ImportError):
    """An optional package is not installed: an `ImportError`."""


class InternalError(NodeproofError, RuntimeError):
    """A mistake of nodeproof's own; please report it."""


def not_fitted(message: str) -> NotFittedError:
    """The error; one that code which knows scikit-learn catches, if that can be."""
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return NotFittedError(message)
    both: type[NotFittedError] = type("NotFittedError", (NotFittedError, theirs.NotFittedError), {})
    return both(message)


def __dir__() -> list[str]:
    return sorted(__all__)
