"""What notebooks show of results: small tables in HTML, without scripts, readable in light and dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .explanation import Explanation
    from .results import Certificates, Radii
    from .training import Training

#: One colour a verdict, told apart by people who do not see red and green, too.
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


def certificates(results: Certificates) -> str:
    """Counts of verdicts, with a bar."""
    counts = results.summary
    total = len(results)
    parts = [(word, int(counts[word] or 0)) for word in COLOURS]
    bar = "".join(
        f'<span title="{word}: {count}" style="display:inline-block;height:10px;width:{360 * count / total:.2f}px;'
        f'background:{COLOURS[word]}"></span>'
        for word, count in parts
        if total
    )
    rows = [(word, _share(count, total) + _swatch(COLOURS[word])) for word, count in parts]
    if counts["mean_margin"] is not None:
        rows.append(("mean lower bound of margins", f"{counts['mean_margin']:.3f}"))
    if counts["accuracy"] is not None:
        rows.append(("accuracy on these nodes", f"{100 * counts['accuracy']:.1f} %"))
    caption = f"{results.budget_in_words()}; engine {results.engine}"
    return _table(f"Certificates of {total:,} nodes", caption, rows) + f'<div style="line-height:0">{bar}</div>'


def radii(results: Radii) -> str:
    """Quartiles of radii."""
    total = len(results)
    rows = [("exact", _share(int(results.exact.sum()), total))]
    if total:
        largest = results.robust_up_to.clip(0)
        rows += [
            (name, f"{value:g}")
            for name, value in zip(
                ("mean", "lower quartile", "median", "upper quartile"),
                (round(float(largest.mean()), 2), *np.percentile(largest, (25, 50, 75))),
                strict=True,
            )
        ]
    caption = f"flips that predictions withstand, tried up to {results.max_budget}; engine {results.engine}"
    return _table(f"Radii of {total:,} nodes", caption, rows)


def training(result: Training) -> str:
    """What a trained network is worth."""
    rows = [("steps", f"{result.steps:,}")]
    for name, value in (
        ("accuracy, labelled", result.accuracy_labelled),
        ("accuracy, unlabelled", result.accuracy_unlabelled),
        ("robust", result.robust_share),
    ):
        if value is not None:
            rows.append((name, f"{100 * value:.1f} %"))
    return _table(f"Trained by {result.method}", repr(result.split), rows)


def explanation(story: Explanation) -> str:
    """The story of one node."""
    return f'<pre style="white-space:pre-wrap">{escape(str(story))}</pre>'
