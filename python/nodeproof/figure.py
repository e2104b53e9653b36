"""Figures of results."""

from __future__ import annotations

import os
from typing import Any

from . import _core
from ._checks import number, text
from ._files import StrPath, path_text, replace
from .errors import InputError


def look(title: Any, width: Any, height: Any) -> tuple[str | None, float, float]:
    """Title, width and height of a figure, checked."""
    return None if title is None else text("title", title), number("width", width), number("height", height)


class Figure:
    """A figure; notebooks show it, `save` keeps it.

    >>> import nodeproof
    >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
    >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
    >>> figure = nodeproof.radius(graph, model, local_budget=2).plot()
    >>> figure.svg[:4]
    '<svg'
    """

    def __init__(self, made: _core.Figure) -> None:
        self._core = made
        #: The SVG document.
        self.svg = made.svg()

    def save(self, path: StrPath, *, dpi: float = 300) -> None:
        """Writes an `.svg` or a `.png`, as the name ends; the latter with so many dots per inch."""
        path = path_text(path)
        kind = os.path.splitext(path)[1].lower()
        if kind == ".svg":
            replace(path, self.svg.encode())
        elif kind == ".png":
            replace(path, self._core.png(number("dpi", dpi)))
        else:
            raise InputError(f"{path} ends neither in .svg nor in .png, which says what to write; give it such a name")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Figure({len(self.svg) / 1e3:.1f} kB of SVG; write it with .save('figure.svg'))"
