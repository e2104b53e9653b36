"""How the numbers of a model come about from the parameters of a module, so that they can be computed anew, with gradients.

While a module is followed within a `Tape`, constants that are computed from its parameters are `Learned`: arrays that
remember a `Recipe`. What PyTorch did with parameters before the attributes met them, and what the import does with the
numbers afterwards, are steps of it. Steps that are not known leave an array without a recipe. Nobody needs to find these one
by one: the recipe of a model is held against a second import, of other parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from .._optional import optional
from .record import flat, mapped


@dataclass(frozen=True, eq=False)
class Recipe:
    """One step: a function of PyTorch, and what it is called with, recipes of earlier steps included."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """Stands for what the step at this place gives."""

    place: int


class _Plan:
    """Steps of recipes, each after those that it needs: put in order once, and done again and again."""

    def __init__(self, begins: Iterable[Recipe], wanted: Sequence[Recipe]) -> None:
        places: dict[int, int] = {id(recipe): place for place, recipe in enumerate(begins)}
        #: What each step calls, with its arguments and keywords, and whether none of these is within another.
        self._steps: list[tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any], bool]] = []
        for recipe in wanted:
            todo = [recipe]
            while todo:
                step = todo[-1]
                given = (step.arguments, step.keywords)
                needed = [value for value in flat(given) if isinstance(value, Recipe) and id(value) not in places]
                todo += needed
                if not needed:
                    todo.pop()
                    if id(step) not in places:
                        self._add(step, places)
                        places[id(step)] = len(places)
        self._wanted = [places[id(recipe)] for recipe in wanted]

    def _add(self, step: Recipe, places: Mapping[int, int]) -> None:
        def placed(value: Any) -> Any:
            return _Place(places[id(value)]) if isinstance(value, Recipe) else value

        arguments, keywords = mapped(placed, (step.arguments, step.keywords))
        within = sum(isinstance(value, _Place) for value in flat((arguments, keywords)))
        is_plain = within == sum(type(value) is _Place for value in arguments)
        self._steps.append((step.function, tuple(arguments), keywords, is_plain))

    def done(self, begins: Iterable[Any]) -> Iterator[Any]:
        """What the recipes that are wanted give, of these values for those that all begin with."""
        known = list(begins)
        for function, arguments, keywords, is_plain in self._steps:
            if is_plain:
                known.append(function(*(known[a.place] if type(a) is _Place else a for a in arguments), **keywords))
            else:
                given, named = mapped(lambda v: known[v.place] if type(v) is _Place else v, (arguments, keywords))
                known.append(function(*given, **named))
        return iter([known[place] for place in self._wanted])


class Tape:
    """What is learned of a module that is followed in its context: recipes of tensors, and at last of the model's."""

    def __init__(self, leaves: Sequence[str]) -> None:
        #: Names of the parameters and buffers that recipes begin with.
        self._leaves = leaves
        self._begins: dict[str, Recipe] = {}
        #: The types of their numbers where the module was followed.
        self._types: dict[str, Any] = {}
        #: Recipes by the `id` of their tensor, which is kept so that no other gets it.
        self._recipes: dict[int, tuple[Any, Recipe]] = {}
        #: Whether the module looked at a value that comes from parameters, so that it may do something else with others.
        self.has_looked = False
        #: The layers of the model that was made last.
        self.layers: list[Any] = []
        #: The plan of their numbers, and the layers that it is of.
        self._plan: tuple[Any, _Plan] | None = None

    def begin(self, module: Any) -> None:
        """Starts anew with the parameters and buffers of this copy of the module."""
        self._recipes.clear()
        own = tensors_of(module)
        for name in self._leaves:
            self._begins[name], self._types[name] = Recipe(_unknown_parameter, (name,)), own[name].dtype
            self._recipes[id(own[name])] = own[name], self._begins[name]

    def end(self) -> None:
        """Forgets the tensors of the copy: what the model needs of them is in its layers."""
        self._recipes.clear()

    def of(self, tensor: Any) -> Recipe | None:
        """The recipe of a tensor, if it is computed from parameters."""
        found = self._recipes.get(id(tensor))
        return found[1] if found is not None and found[0] is tensor else None

    def note(self, function: Any, arguments: Any, keywords: Any, output: Any) -> None:
        """Takes note of an operation on constants. What it writes to has no recipe any more, nor has what shares its memory."""
        torch = optional("torch", "pyg", "nodeproof.torch")
        recipes: list[Recipe] = []

        def recipe(value: Any) -> Any:
            found = self.of(value) if isinstance(value, torch.Tensor) else None
            recipes.extend([found] if found is not None else [])
            return value if found is None else found

        given, named = mapped(recipe, (arguments, keywords))
        written = [
            arguments[place] if place < len(arguments) else keywords.get(argument.name)
            for place, argument in enumerate(function._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        if written:
            self._forget([value for value in written if isinstance(value, torch.Tensor)])
        elif recipes:
            step, made = Recipe(function, tuple(given), named), list(enumerate(flat(output)))
            self.has_looked |= not any(isinstance(part, torch.Tensor) for _, part in made)
            for place, part in made:
                if isinstance(part, torch.Tensor):
                    self._recipes[id(part)] = part, step if part is output else Recipe(_part, (step, place))

    def _forget(self, written: list[Any]) -> None:
        """Forgets the recipes of tensors that share memory with these."""
        storages = {_storage(value) for value in written}
        for place, (tensor, _) in list(self._recipes.items()):
            if _storage(tensor) in storages:
                del self._recipes[place]

    def tensors(self, parameters: Mapping[str, Any]) -> list[Any]:
        """The model's weights and biases of these parameters and buffers."""
        torch = optional("torch", "pyg", "nodeproof.torch")
        if self._plan is None or self._plan[0] is not self.layers:
            learned = [values.recipe for values in self.numbers() if is_learned(values)]
            self._plan = self.layers, _Plan(self._begins.values(), learned)
        begins = (parameters[name].to("cpu", self._types[name]) for name in self._begins)
        made = self._plan[1].done(begins)
        return [next(made) if is_learned(v) else torch.tensor(np.asarray(v)) for v in self.numbers()]

    @property
    def rounding(self) -> float:
        """The relative size of what the types of parameters may round off."""
        torch = optional("torch", "pyg", "nodeproof.torch")
        return max((32 * float(torch.finfo(kind).eps) for kind in self._types.values()), default=0.0)

    def numbers(self) -> Iterator[Any]:
        """The model's weights and biases as they were imported: layer by layer those of its terms, but for multiples of the
        identity, and then its bias."""
        for layer in self.layers:
            yield from (term.weight for term in layer.terms if np.ndim(term.weight) == 2)
            yield layer.bias


def tensors_of(module: Any) -> dict[str, Any]:
    """The parameters and buffers of a module by their names."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


_TAPE: ContextVar[Tape | None] = ContextVar("tape", default=None)


def current_tape() -> Tape | None:
    """The tape in whose context this runs."""
    return _TAPE.get()


@contextmanager
def taping(tape: Tape) -> Iterator[None]:
    """A context in which what is learned goes to `tape`."""
    token = _TAPE.set(tape)
    try:
        yield
    finally:
        _TAPE.reset(token)
        tape.end()


class Learned(np.ndarray[Any, Any]):
    """An array of doubles that may know how it is computed from parameters."""

    recipe: Recipe | None

    def __array_finalize__(self, _: Any) -> None:
        self.recipe = None

    @classmethod
    def of(cls, values: Any, recipe: Recipe | None) -> Learned:
        """These values, which that recipe gives."""
        made = np.asarray(values, dtype=np.float64).view(cls)
        made.recipe = recipe
        return made

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [_plain(value) for value in inputs]
        result = getattr(ufunc, method)(*plain, **{name: mapped(_plain, value) for name, value in keywords.items()})
        if method != "__call__" or keywords or ufunc.__name__ not in _STEPS:
            return result
        if ufunc is np.multiply:
            # Times 1 is no step.
            factors = [
                value for value in inputs if not (np.ndim(value) == 0 and not is_learned(value) and value == 1.0)
            ]
            if len(factors) == 1 and is_learned(factors[0]):
                return Learned.of(result, factors[0].recipe)
        return _learned(result, _torch_function(_STEPS[ufunc.__name__]), *inputs)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        if function is np.broadcast_to and len(arguments) == 2 and not keywords:
            shape = np.broadcast_shapes(arguments[1])
            return _learned(np.broadcast_to(_plain(self), shape), _torch_function("broadcast_to"), self, shape)
        given, named = mapped(_plain, (arguments, keywords))
        return function(*given, **named)

    def reshape(self, *shape: Any, **keywords: Any) -> Any:
        made = _plain(self).reshape(*shape, **keywords)
        return made if keywords else _learned(made, _torch_function("reshape"), self, made.shape)

    def transpose(self, *axes: Any) -> Any:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = tuple(range(self.ndim))[::-1] if not axes or order is None else tuple(int(axis) for axis in order)
        return _learned(_plain(self).transpose(order), _torch_function("permute"), self, order)

    @property
    def T(self) -> Any:
        return self.transpose()

    def ravel(self, order: Any = "C") -> Any:
        return self.reshape(-1) if order == "C" else _plain(self).ravel(order)

    def __getitem__(self, index: Any) -> Any:
        return _learned(_plain(self)[index], _entries, self, index)


#: Functions of NumPy by their names, and what PyTorch calls them.
_STEPS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "negative": "neg",
    "sqrt": "sqrt",
    "matmul": "matmul",
}


def learned(values: npt.NDArray[Any], tensor: Any) -> npt.NDArray[Any]:
    """The values of a tensor in double precision; `Learned` if they come from parameters."""
    tape = current_tape()
    recipe = None if tape is None else tape.of(tensor)
    return values if recipe is None else Learned.of(values, Recipe(_in_double, (recipe,)))


def is_learned(value: Any) -> bool:
    """Whether an array is computed from parameters."""
    return isinstance(value, Learned) and value.recipe is not None


def product(one: Any, two: Any) -> Any:
    """`one @ two`, sparse or dense."""
    if not (is_learned(one) or is_learned(two)):
        result = one @ two
        return result if scipy.sparse.issparse(result) else np.asarray(result)
    if scipy.sparse.issparse(one):
        return two if _is_identity(one) else Learned.of(one @ _plain(two), Recipe(_sparse_first, (one, two.recipe)))
    if scipy.sparse.issparse(two):
        return one if _is_identity(two) else Learned.of(_plain(one) @ two, Recipe(_sparse_second, (one.recipe, two)))
    return one @ two


def same_recipe(one: Any, two: Any) -> bool:
    """Whether two arrays, at least one of which is learned, are the same whatever the parameters are."""
    return is_learned(one) and is_learned(two) and one.recipe is two.recipe


def _learned(result: Any, function: Callable[..., Any], *inputs: Any) -> Any:
    """A result with its recipe, if all of the inputs that can be learned have theirs."""
    given = []
    for value in inputs:
        if isinstance(value, Learned):
            if value.recipe is None:
                return result
            value = value.recipe
        elif isinstance(value, np.ndarray) and value.dtype == np.float64:
            value = optional("torch", "pyg", "nodeproof.torch").tensor(value)
        given.append(value)
    return Learned.of(result, Recipe(function, tuple(given)))


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Learned) else value


def _is_identity(matrix: Any) -> bool:
    entries = matrix.tocsr()
    return bool(
        entries.shape[0] == entries.shape[1] == entries.nnz
        and (entries.indices == np.arange(entries.nnz)).all()
        and (entries.data == 1.0).all()
    )


def _torch_function(name: str) -> Callable[..., Any]:
    """A function of PyTorch that takes numbers as well."""
    torch = optional("torch", "pyg", "nodeproof.torch")
    function: Callable[..., Any] = getattr(torch, name)
    if name not in _STEPS.values():
        return function
    return lambda *given: function(*(torch.as_tensor(value, dtype=torch.float64) for value in given))


def _in_double(value: Any) -> Any:
    return value.double()


def _entries(values: Any, index: Any) -> Any:
    """The entries that NumPy's `values[index]` has."""
    torch = optional("torch", "pyg", "nodeproof.torch")
    parts = index if isinstance(index, tuple) else (index,)
    return values[tuple(torch.as_tensor(np.asarray(part)) if isinstance(part, np.ndarray) else part for part in parts)]


def _sparse_first(one: Any, two: Any) -> Any:
    return _coordinates(one) @ two


def _sparse_second(one: Any, two: Any) -> Any:
    return (_coordinates(two.T) @ one.T).T


def _coordinates(matrix: Any) -> Any:
    torch = optional("torch", "pyg", "nodeproof.torch")
    entries = matrix.tocoo()
    places = torch.tensor(np.stack([entries.row, entries.col]).astype(np.int64))
    return torch.sparse_coo_tensor(places, torch.tensor(entries.data), entries.shape, check_invariants=False)


def _part(whole: Any, place: int) -> Any:
    return list(flat(whole))[place]


def _storage(value: Any) -> int:
    """Where the memory of a tensor begins, whichever part of it the tensor is."""
    torch = optional("torch", "pyg", "nodeproof.torch")
    return int(value.untyped_storage().data_ptr()) if value.layout is torch.strided else 0


def _unknown_parameter(name: str) -> Any:
    raise KeyError(name)
