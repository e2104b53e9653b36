"""What can go wrong. Everything that nodeproof raises by itself is a `NodeproofError`."""

from __future__ import annotations

import sys

__all__ = [
    "FileError",
    "InputError",
    "InternalError",
    "MissingBudgetError",
    "MissingDependencyError",
    "MissingFileError",
    "MissingRowError",
    "NodeproofError",
    "NotCopyableError",
    "NotFittedError",
    "NotRunnableError",
    "PrecisionError",
    "VerificationError",
]


class NodeproofError(Exception):
    """Whatever nodeproof cannot or will not do; the message says where and what to do about it."""


class InputError(NodeproofError, ValueError):
    """What was given is wrong: a `ValueError`."""


class VerificationError(InputError):
    """An imported model does not compute what the module computes."""


class NotRunnableError(InputError):
    """A module itself cannot be run on its data."""


class PrecisionError(VerificationError):
    """A module rounds on its way to another precision."""


class MissingBudgetError(InputError, KeyError):
    """Several budgets were certified, and this one is not among them: a `KeyError`."""

    __str__ = Exception.__str__  # That of `KeyError` puts the message in quotes.


class MissingRowError(InputError, IndexError):
    """Results have no such row: an `IndexError`."""


class NotCopyableError(NodeproofError, TypeError):
    """Something cannot be copied or pickled: a `TypeError`."""


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
