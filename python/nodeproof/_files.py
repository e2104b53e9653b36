"""Paths, and files that are written whole or not at all."""

from __future__ import annotations

import os

from . import _core
from .errors import FileError, InputError, MissingFileError

StrPath = str | os.PathLike[str]


def path_text(path: StrPath) -> str:
    """The path as text."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        text = ""
    if not text or "\0" in text:
        raise InputError(f"{path!r} is no path; give text or a pathlib.Path")
    return text


def existing(path: StrPath) -> str:
    """The path of a file that is there."""
    path = path_text(path)
    if not os.path.exists(path):
        raise MissingFileError(f"{path} does not exist; check the path")
    if os.path.isdir(path):
        raise FileError(f"{path} is a folder, not a file; check the path")
    return path


def replace(path: StrPath, content: bytes) -> None:
    """Writes `content` beside `path` and puts it in its place; an existing file stays as it was if that fails."""
    _core.write_file(path_text(path), content)
