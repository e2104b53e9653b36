"""What can go wrong. Everything that nodeproof raises by itself is a `NodeproofError`."""

from __future__ import annotations

__all__ = [
    "FileError",
    "InputError",
    "InternalError",
    "MissingDependencyError",
    "MissingFileError",
    "NodeproofError",
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


class MissingDependencyError(NodeproofError, ImportError):
    """An optional package is not installed: an `ImportError`."""


class InternalError(NodeproofError, RuntimeError):
    """A mistake of nodeproof's own; please report it."""
