"""Attributes that a module stores when it is run, and that no run reads before it has stored them itself.

`self.emb = h` for whoever looks at embeddings afterwards changes a module, and still it computes the same every time. Whether
that is so is seen by its reads: parts that store are watched, and a read of what an earlier run left is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .._optional import pytorch
from ..errors import VerificationError

#: What stands in for an attribute that is not there.
ABSENT: Any = object()


def is_watchable(module: Any, name: str) -> bool:
    """Whether this is an attribute of a part whose reads can be watched: no parameter, buffer or part of it, and
    nothing that PyTorch keeps of every module."""
    torch = pytorch()
    path, _, attribute = name.rpartition(".")
    part = dict(module.named_modules()).get(path)
    if part is None or isinstance(part, torch.jit.ScriptModule):
        return False
    return attribute in vars(part) and not attribute.startswith("__") and attribute not in vars(torch.nn.Module())


@contextmanager
def watched(module: Any, names: Iterable[str]) -> Iterator[None]:
    """A context in which attributes of these names must be stored before they are read."""
    parts = dict(module.named_modules())
    unread: dict[int, dict[str, str]] = {}
    for name in names:
        path, _, attribute = name.rpartition(".")
        if path in parts:
            unread.setdefault(id(parts[path]), {})[attribute] = name
    refused: list[VerificationError] = []
    classes = [(part, type(part)) for part in parts.values() if id(part) in unread]
    for part, kind in classes:
        part.__class__ = _watching(kind, unread[id(part)], refused)
    try:
        yield
    except Exception:
        # The module may have made another error of it.
        if refused:
            raise refused[0] from None
        raise
    finally:
        for part, kind in classes:
            part.__class__ = kind
    if refused:
        raise refused[0]


def _watching(kind: Any, unread: dict[str, str], refused: list[VerificationError]) -> Any:
    """A class like `kind` whose one instance refuses to read what is in `unread`, from which it strikes what it stores."""

    def read(self: Any, attribute: str) -> Any:
        if attribute in unread:
            refused.append(
                VerificationError(
                    f"the module changes its own {unread[attribute]!r} when it is run, and reads what was there before, so "
                    "that the next run may compute something else; certificates need a module that does the same every time: "
                    "compute it anew in each run"
                )
            )
            raise refused[-1]
        return super(own, self).__getattribute__(attribute)

    def store(self: Any, attribute: str, value: Any) -> None:
        super(own, self).__setattr__(attribute, value)
        unread.pop(attribute, None)

    space = {
        "__getattribute__": read,
        "__setattr__": store,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
    }
    own: Any = type(kind)(kind.__name__, (kind,), space)
    return own


def values_of(module: Any, names: Iterable[str]) -> list[tuple[Any, str, Any]]:
    """Parts, attributes, and their values as they are."""
    parts, found = dict(module.named_modules()), []
    for name in names:
        path, _, attribute = name.rpartition(".")
        if path in parts:
            found.append((parts[path], attribute, vars(parts[path]).get(attribute, ABSENT)))
    return found


def put_back(values: list[tuple[Any, str, Any]]) -> None:
    """Makes attributes what they were."""
    for part, attribute, value in values:
        if value is ABSENT:
            vars(part).pop(attribute, None)
        else:
            vars(part)[attribute] = value
