"""Paths, and files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

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
    target = Path(path_text(path))
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(beside, 0o666 & ~mask)
            os.replace(beside, target)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError as error:
        remedy = "make room there or choose another place" if target.parent.is_dir() else "make the folder first"
        raise FileError(f"cannot write {target}: {error.strerror}; {remedy}") from error
