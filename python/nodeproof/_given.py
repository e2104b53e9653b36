"""Defaults that can be told from the same values given by the caller."""

from __future__ import annotations

from typing import Any


class Default:
    """A default; signatures show it as its value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Those that the caller gave."""
    return {name: value for name, value in values.items() if not isinstance(value, Default)}
