"""Whether what was given is of the right kind, so that what is not is refused in the caller's words."""

from __future__ import annotations

import math
from typing import Any

from .errors import InputError


def instance(name: str, value: Any, kind: type, example: str) -> None:
    """Refuses what is not an instance of `kind`."""
    if not isinstance(value, kind):
        given = type(value).__name__
        hint = {
            "Training": f"; give its .{'graph' if name == 'graph' else 'model'}",
            "Data": "; see from_pyg(module, data)",
            "Budget": "; give budget=",
        }.get(given, "")
        hint = "; see from_pyg(module, data)" if hasattr(value, "state_dict") else hint
        raise InputError(f"{name} must be a nodeproof.{kind.__name__}, such as {example}, not {kind_of(value)}{hint}")


def kind_of(value: Any) -> str:
    """What a value is, with its article."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def whole(name: str, value: Any, least: int = 0, most: int = 2**63 - 1) -> int:
    """A whole number from `least` to `most`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= int(value) <= most:
        limit = f"a whole number of at least {least}" if most == 2**63 - 1 else f"a whole number from {least} to {most}"
        raise InputError(f"{name}={value!r} must be {limit}")
    return int(value)


def several(name: str, values: Any) -> list[int]:
    """Whole numbers that fit 32 bits, each once, in the order given; at least one."""
    found = list(dict.fromkeys(whole(name, value, most=2**32 - 1) for value in listed(name, values, "whole numbers")))
    if not found:
        raise InputError(f"{name} is empty; give a number, or several")
    return found


def flag(name: str, value: Any) -> bool:
    """`True` or `False`, and not just something that counts as such."""
    if not (isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")):
        raise InputError(f"{name}={value!r} must be True or False")
    return bool(value)


def text(name: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise InputError(f"{name}={value!r} must be a string")
    return value


def number(name: str, value: Any) -> float:
    """A number; whether it makes sense is for the compiled half to say."""
    try:
        if not isinstance(value, (bool, str)):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise InputError(f"{name}={value!r} must be a number")


def finite(name: str, value: Any) -> float:
    """A number that is neither infinite nor NaN."""
    found = number(name, value)
    if not math.isfinite(found):
        raise InputError(f"{name}={value!r} must be a finite number")
    return found


def listed(name: str, value: Any, of: str) -> Any:
    """Something to go through more than once: an array as it is, anything else as a list."""
    if hasattr(value, "dtype"):
        return value
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise InputError(f"{name}={value!r} must be a list of {of}")
    return list(value)
