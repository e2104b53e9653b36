"""What a module consists of: modules that are copied with it, and hashes of its state, to see whether a run changes it."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import random
import re
import sysconfig
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Set
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .._optional import pytorch
from ..errors import VerificationError
from .trace import constant_behind

#: Methods by which an object says what a copy of it is.
_WAYS_TO_COPY = (
    "__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__new__", "__getnewargs__",
    "__getnewargs_ex__",
)  # fmt: skip
#: The same of modules and of containers, whose copies are filled.
_OF_MODULES = ("cpu", "to", "_apply", "double", "float", "eval", "train")
_OF_CONTAINERS = ("__setitem__", "append", "extend", "add", "update", "__setattr__")
#: Attributes of a module whose contents are attributes themselves.
_OF_PARTS = ("_parameters", "_buffers", "_modules")
#: Values that consist of nothing else.
_PLAIN = (bool, int, float, complex, str, bytes, range, type(None), type(Ellipsis), np.generic)


def state_of(module: Any, forward: Any = None) -> dict[str, str]:
    """Hashes of what a module and its parts have as attributes, by their paths, and of what calls it."""
    torch = pytorch()
    parts = dict(module.named_modules())
    known = {id(part): path for path, part in parts.items()}
    values: dict[str, Any] = {"forward": forward}
    for path, part in parts.items():
        beginning = f"{path}." if path else ""
        values |= {f"{beginning}__class__": type(part), f"{beginning}_modules": list(part._modules.keys())}
        for held in (vars(part), part._parameters, part._buffers):
            values |= {f"{beginning}{name}": value for name, value in held.items() if name not in _OF_PARTS}
    # Scripted modules keep their methods when these are first called.
    return {name: hash_of(v, known) for name, v in values.items() if not isinstance(v, torch.ScriptMethod)}


def state_of_chance() -> str:
    """A hash of what random numbers come next."""
    torch = pytorch()
    return hash_of([torch.get_rng_state(), repr(random.getstate()), list(np.random.get_state())])


def held_modules(module: Any) -> list[Any]:
    """A module and those in it, in lists and other objects, too, as far as they are copied with it."""
    torch = pytorch()
    return [value for value in _walk([module], into_code=False) if isinstance(value, torch.nn.Module)]


def computed_tensors(module: Any) -> list[Any]:
    """Tensors of a module that were computed from what has gradients, such as embeddings that it keeps; no views."""
    torch = pytorch()
    tensors = [value for value in _walk([module], into_code=False) if isinstance(value, torch.Tensor)]
    return [value for value in tensors if _is_computed(value) and (value._base is None or _is_computed(value._base))]


def _is_computed(tensor: Any) -> bool:
    return bool(tensor.requires_grad and not tensor.is_leaf)


def check_copies(module: Any) -> None:
    """Refuses modules with objects that decide for themselves what a copy of them is."""
    torch = pytorch()
    for value in _walk([module], into_code=False):
        for name in _ways_to_copy(value, torch):
            if not _is_installed(getattr(getattr(value, name, None), "__code__", None)):
                raise VerificationError(
                    f"the module has a {type(value).__name__} with a {name} of its own; nodeproof runs copies of the module, "
                    "and cannot know whether these are the same then"
                )


def _ways_to_copy(value: Any, torch: Any) -> tuple[str, ...]:
    """Methods of an object that a copy of it depends on."""
    if isinstance(value, (type, *_PLAIN)) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return ()
    if isinstance(value, torch.nn.Module):
        return _WAYS_TO_COPY + _OF_MODULES
    is_filled = isinstance(value, (Mapping, Set, list, deque)) or not hasattr(value, "__dict__")
    return _WAYS_TO_COPY + _OF_CONTAINERS if is_filled else _WAYS_TO_COPY


@functools.cache
def _is_installed(code: Any) -> bool:
    """Whether code is Python's, PyTorch's, or otherwise installed; so is what is not written in Python."""
    places = [sysconfig.get_path("stdlib")]
    for name in ("torch", "torch_geometric"):
        places.append(os.path.dirname(os.path.dirname(pytorch(name).__file__)))
    if not isinstance(code, CodeType) or re.search("^<frozen|(site|dist)-packages", code.co_filename):
        return True
    return any(code.co_filename.startswith(place + os.sep) for place in places)


def hash_of(value: Any, known: Mapping[int, str] = {}) -> str:
    """A hash of a value and all that it holds; modules that are known by a path count as that."""
    if isinstance(value, _PLAIN) or (type(value) in (dict, list, tuple, set, OrderedDict) and not value):
        return f"{id(type(value))} {value!r}"
    torch = pytorch()
    digest = hashlib.blake2b()
    for part in _walk([value], known):
        part, is_followed = constant_behind(part)
        digest.update(f"{id(type(part))} {known.get(id(part))} {is_followed} ".encode())
        if is_followed:
            continue
        if isinstance(part, _PLAIN):
            digest.update(repr(part).encode())
        elif isinstance(part, (type, ModuleType, CodeType, BuiltinFunctionType, logging.Logger)):
            digest.update(str(id(part)).encode())
        elif isinstance(part, torch.Tensor):
            digest.update(f"{part.dtype} {tuple(part.shape)} {part.requires_grad} {part.layout}".encode())
            for strided in _strided(part):
                digest.update(str(strided.stride()).encode())
                digest.update(_bytes(strided))
        elif isinstance(part, np.ndarray):
            digest.update(f"{part.dtype} {part.shape} {part.strides}".encode())
            digest.update(b"" if part.dtype.hasobject else np.ascontiguousarray(part).tobytes())
        elif isinstance(part, (Mapping, Set, list, tuple, deque)):
            digest.update(str(len(part)).encode())
    return digest.hexdigest()


def _walk(values: list[Any], known: Mapping[int, str] = {}, into_code: bool = True) -> Iterator[Any]:
    """These values and all that they hold, each object once; what is known is not looked into.

    What functions hold is not copied with them, and may be what hooks have seen: of that, modules only.
    """
    torch = pytorch()
    todo = [(value, False) for value in values[::-1]]
    seen: dict[tuple[int, bool], Any] = {}
    while todo:
        value, is_outside = todo.pop()
        is_outside &= not isinstance(value, torch.nn.Module)
        if not is_outside:
            yield value
        if isinstance(value, _PLAIN) or id(value) in known or (id(value), is_outside) in seen:
            continue
        # Kept, so that no other object gets its `id`.
        seen[id(value), is_outside] = value
        if into_code or not isinstance(value, (FunctionType, MethodType)):
            todo += [(part, is_outside) for part in _inside(value, torch)[::-1]]
            todo += [(part, True) for part in _outside(value)[::-1]]


def _inside(value: Any, torch: Any) -> list[Any]:
    """What an object would be made of anew, as far as it tells."""
    own = [value.__dict__] if getattr(value, "__dict__", None) else []
    if isinstance(value, (type, ModuleType, CodeType, weakref.ref, logging.Logger)) or hasattr(
        type(value), "_nodeproof_trace"
    ):
        return []
    if isinstance(value, torch.Tensor):
        return [*own, value.grad if value.is_leaf else None]
    if isinstance(value, np.ndarray):
        return value.reshape(-1).tolist() if value.dtype.hasobject else []
    if isinstance(value, FunctionType):
        return [value.__code__]
    if isinstance(value, MethodType):
        return [value.__func__]
    if isinstance(value, BuiltinFunctionType):
        return [value.__self__]
    if isinstance(value, functools._lru_cache_wrapper):
        return [value.__wrapped__, tuple(value.cache_info())]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords, *own]
    if isinstance(value, Mapping):
        return [*(part for pair in value.items() for part in pair), *own]
    if isinstance(value, Set):
        return [*sorted(hash_of(part) for part in value), *own]
    if isinstance(value, (list, tuple, deque)):
        return [*value, *own]
    return _parts(value) if isinstance(value, torch.nn.Module) else _parts(value) + own


def _outside(value: Any) -> list[Any]:
    """What a function refers to."""
    if isinstance(value, MethodType):
        return [value.__self__]
    return [value.__defaults__, value.__kwdefaults__, *_cells(value)] if isinstance(value, FunctionType) else []


def _cells(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # of a name that has no value yet
            yield None


def _parts(value: Any) -> list[Any]:
    """What an object is made of, if it is neither code nor a container."""
    try:
        made = value.__reduce_ex__(2)
        return (
            [] if isinstance(made, str) else [list(part) if isinstance(part, Iterator) else part for part in made[1:]]
        )
    except Exception:  # of threads, files, parametrised modules and the like
        return [getattr(value, "__dict__", None) or repr(value)]


def _bytes(value: Any) -> Any:
    """The values of a tensor, bit by bit."""
    torch = pytorch()
    return value.resolve_conj().resolve_neg().reshape(-1).contiguous().view(torch.uint8).numpy()


def _strided(value: Any) -> list[Any]:
    """A tensor, or the parts of a sparse one; nothing of one that is made of others."""
    torch = pytorch()
    value = value.detach().cpu()
    if type(value) is not torch.Tensor:
        return []
    if value.layout is torch.strided:
        return [value]
    entries = value.to_sparse_coo().coalesce()
    return [entries.indices(), entries.values()]
