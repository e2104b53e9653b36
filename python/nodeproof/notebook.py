"""What notebooks show of results: small tables in HTML, without scripts, readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .graph import Graph
    from .results import Certificates, Summary

#: Classes that are shown by name.
_CLASSES = 12
#: One colour a verdict, which people who do not see red and green can distinguish.
COLOURS = {"robust": "#0072b2", "nonrobust": "#d55e00", "undecided": "#999999"}
_CELL = "text-align:right;padding:2px 10px"


def _table(title: str, caption: str, rows: list[tuple[str, str]]) -> str:
    cells = "".join(
        f'<tr><th style="text-align:left;padding:2px 10px">{escape(name)}</th><td style="{_CELL}">{value}</td></tr>'
        for name, value in rows
    )
    return (
        f'<div><strong>{escape(title)}</strong><div style="opacity:.75">{escape(caption)}</div>'
        f'<table style="margin:4px 0">{cells}</table></div>'
    )


def _share(count: int, of: int) -> str:
    return f"{count:,} ({100 * count / of:.1f} %)" if of else str(count)


def _swatch(colour: str) -> str:
    return f' <span style="display:inline-block;width:10px;height:10px;background:{colour}"></span>'


def certificates(summary: Summary, caption: str) -> str:
    """Counts of verdicts, with a bar; `summary` is that of `Certificates`."""
    total = int(summary["nodes"] or 0)
    counts = (summary["robust"], summary["nonrobust"], summary["undecided"])
    parts = list(zip(COLOURS, counts, strict=True))
    bar = "".join(
        f'<span title="{word}: {count}" style="display:inline-block;height:10px;width:{360 * count / total:.2f}px;'
        f'background:{COLOURS[word]}"></span>'
        for word, count in parts
        if total
    )
    rows = [(word, _share(count, total) + _swatch(COLOURS[word])) for word, count in parts]
    if summary["mean_margin"] is not None:
        rows.append(("mean lower bound of margins", f"{summary['mean_margin']:.3f}"))
    if summary["accuracy"] is not None:
        rows.append(("accuracy on these nodes", f"{100 * summary['accuracy']:.1f} %"))
    return _table(f"Certificates of {total:,} nodes", caption, rows) + f'<div style="line-height:0">{bar}</div>'


def radii(robust_up_to: npt.NDArray[np.int64], exact: int, caption: str) -> str:
    """Quartiles of radii."""
    total = len(robust_up_to)
    rows = [("exact", _share(exact, total))]
    if total:
        largest = robust_up_to.clip(0)
        rows += [
            (name, f"{value:g}")
            for name, value in zip(
                ("mean", "lower quartile", "median", "upper quartile"),
                (round(float(largest.mean()), 2), *np.percentile(largest, (25, 50, 75))),
                strict=True,
            )
        ]
    return _table(f"Radii of {total:,} nodes", caption, rows)


def training(method: str, split: str, steps: int, shares: Iterable[tuple[str, float | None]]) -> str:
    """What a trained network is worth: its shares, where they are known."""
    rows = [(name, f"{100 * share:.1f} %") for name, share in shares if share is not None]
    return _table(f"Trained by {method}", split, [("steps", f"{steps:,}"), *rows])


def graph(of: Graph) -> str:
    """Sizes of a graph, and its classes."""
    # Real values may be many, and are not looked at.
    ones = "" if of.kind == "real-values" else f" ({len(of._core.attributes()[1]) / of.nodes:.1f} at a node)"
    rows = [
        ("nodes", f"{of.nodes:,}"),
        ("edges", f"{of.edges:,}"),
        ("attributes", f"{of.attribute_count:,}{ones}"),
    ]
    labels = of.labels
    if labels is not None:
        counts = np.bincount(labels[labels >= 0], minlength=of.classes)
        rows += [(of.class_name(place), _share(int(count), of.nodes)) for place, count in enumerate(counts[:_CLASSES])]
        if len(counts) > _CLASSES:
            rows.append((f"{len(counts) - _CLASSES} more classes", _share(int(counts[_CLASSES:].sum()), of.nodes)))
        if (labels < 0).any():
            rows.append(("no label", _share(int((labels < 0).sum()), of.nodes)))
    kinds = {"bits": "attributes are 0 and 1", "normalised-rows": "rows of attributes are divided by their sums"}
    return _table("Graph", kinds.get(of.kind, "attributes are real values"), rows)


def by_budget(results: Mapping[int, Certificates], caption: str) -> str:
    """Shares of verdicts under each budget."""
    rows = []
    for budget, found in results.items():
        shares = (f"{word} {_share(int(getattr(found, word).sum()), len(found))}" for word in COLOURS)
        rows.append((f"{budget} flips" if budget != 1 else "1 flip", "; ".join(shares)))
    return _table("Certificates by global budget", caption, rows)


def words(text: str) -> str:
    """Text as it is."""
    return f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'
