"""How far work has come: a bar of tqdm where that is installed, or whatever the caller wants to do."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._optional import optional
from .errors import InputError

Observer = Callable[[int, int], object]
#: `None` for a bar after a second, where there is a terminal or a notebook; `True` for a bar at once, anywhere; `False` for
#: none; or a function that is called with steps done and steps in total.
Progress = bool | Observer | None


def _bar() -> Any:
    """A bar for notebooks where these can show one, for terminals elsewhere."""
    if importlib.util.find_spec("ipywidgets") is None:
        from tqdm import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm


@contextmanager
def observer(progress: Progress, what: str) -> Iterator[Observer | None]:
    """A function to be called with `done` and `total`."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise InputError(
            f"progress={progress!r} must be None, True or False, or a function that is called with what is done and the total"
        )
    if progress is False:
        yield None
        return
    if callable(progress):
        yield progress
        return
    if progress:
        optional("tqdm", "progress", "progress=True")
    try:
        tqdm = _bar()
    except ImportError:
        yield None
        return
    options = {} if progress else {"delay": 1, "disable": None}
    with tqdm(desc=what, unit="", leave=False, **options) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.n = done
            bar.refresh()

        yield show
