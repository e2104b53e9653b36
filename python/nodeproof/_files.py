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


#: Endings of names that say what is in a file, or how it is compressed.
_TELLING = frozenset(
    "7z arrow bz2 csv feather graph gz h5 html jsonl json mat ndjson npy npz onnx parquet pdf pickle pkl png pt pth "
    "safetensors svg tar toml tsv xls xlsx xml xz yaml zip zst".split()
)


def check_ending(path: str, what: str, *endings: str, instead: str = "") -> None:
    """Refuses a name that says that a file is something else than `what`.

    That has one of these `endings`, the first of which is the usual one; `instead` says how else to write.
    """
    ending = os.path.splitext(path)[1].lower().removeprefix(".")
    if ending in _TELLING and ending not in endings:
        raise InputError(
            f"{path} ends in .{ending}, but {what} are written as .{endings[0]}; give it such a name{instead}"
        )


def destination(path: StrPath, what: str, *endings: str) -> str:
    """The path of a file that can be written, with a name as `check_ending` wants it."""
    path = path_text(path)
    check_ending(path, what, *endings)
    _core.check_destination(path)
    return path


def replace(path: StrPath, content: bytes) -> None:
    """Writes `content` beside `path` and puts it in its place; an existing file stays as it was if that fails."""
    _core.write_file(path_text(path), content)
