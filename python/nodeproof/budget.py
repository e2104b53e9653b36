"""Budgets: how many flips in total, how many at one node, and which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from . import _core
from ._checks import flag, instance, kind_of, listed, whole
from ._given import Default, given
from .errors import InputError
from .graph import Graph, edge_ids
from .nodes import chosen
from .split import Split

#: The largest number of flips that a budget can hold.
_MOST = 2**32 - 1

#: A number of flips; NumPy's integers, too.
Count = int | np.integer[Any]

#: Defaults of the parts of a budget, where functions take these as keywords.
GLOBAL: Any = Default(None)
MOST: Any = Default(100)
LOCAL: Any = Default("1%")
NO: Any = Default(False)
NONE: Any = Default(())
NOTHING: Any = Default(None)


@dataclass(frozen=True, repr=False)
class Budget:
    """What an attacker may change. Functions take it as `budget`, or its parts as keywords of the same names.

    Args:
        global_budget: most flips in total, Q.
        local_budget: most flips at one node, q: a count, or a share of the attributes such as "1%", rounded down, but at
            least 1.
        add_only, delete_only: only flips from 0 to 1, or only those from 1 to 0.
        protect_attributes: attributes that cannot be flipped, by id or name.
        protect_nodes: nodes whose attributes cannot be flipped: ids, names, a mask, or a part of a split, such as "train".
        local_budget_at: nodes with a local budget of their own.
        delete_edges: most edges that may be deleted; with a `global_budget` above 0, flips go beside the deletion of one edge.
            Without flips there is nothing for their limits to do, and these are refused.
        edges_per_node: most of them at one node; an edge counts at both of its ends.
        keep_one_edge: whether each node keeps one of its edges at least.
        protect_edges: edges that stay, pairs of ids or names. Edges of nodes in `protect_nodes` stay, too.

    >>> Budget(12, add_only=True)
    Budget(12, add_only=True)
    >>> Budget(0, delete_edges=5, edges_per_node=2).in_words(Graph.bundled())
    'at most 5 edges deleted (2 at one node)'
    >>> Budget(12).in_words(Graph.bundled())
    'at most 12 flips, 20 at one node (1% of 2048 attributes)'
    """

    global_budget: int
    local_budget: int | str = "1%"
    add_only: bool = False
    delete_only: bool = False
    protect_attributes: Iterable[int | str] = ()
    protect_nodes: str | Iterable[int | str] = ()
    local_budget_at: Mapping[int | str, int] = field(default_factory=dict, hash=False)
    delete_edges: int = 0
    edges_per_node: int | None = None
    keep_one_edge: bool = False
    protect_edges: Iterable[Any] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "global_budget", whole("global_budget", self.global_budget, most=_MOST))
        object.__setattr__(self, "local_budget", _local(self.local_budget))
        if flag("add_only", self.add_only) & flag("delete_only", self.delete_only):
            raise InputError("add_only and delete_only together leave no flips; choose one")
        # Whatever was given can be gone through more than once, and travel to workers.
        nodes: Any = self.protect_nodes
        if not isinstance(nodes, str):
            nodes = listed("protect_nodes", nodes, "ids")
            nodes = tuple(nodes.tolist() if hasattr(nodes, "tolist") else nodes)
        object.__setattr__(self, "protect_nodes", nodes)
        object.__setattr__(
            self, "protect_attributes", tuple(listed("protect_attributes", self.protect_attributes, "ids or names"))
        )
        if not isinstance(self.local_budget_at, Mapping):
            raise InputError(f"local_budget_at={self.local_budget_at!r} must be a mapping of nodes to numbers of flips")
        object.__setattr__(self, "local_budget_at", dict(self.local_budget_at))
        object.__setattr__(self, "delete_edges", whole("delete_edges", self.delete_edges, most=_MOST))
        if self.edges_per_node is not None:
            object.__setattr__(self, "edges_per_node", whole("edges_per_node", self.edges_per_node, most=_MOST))
        protected = tuple(tuple(edge) for edge in listed("protect_edges", self.protect_edges, "pairs of nodes"))
        object.__setattr__(self, "protect_edges", protected)
        only = (self.edges_per_node is not None, flag("keep_one_edge", self.keep_one_edge), bool(protected))
        if any(only) and not self.delete_edges:
            raise InputError(
                "no edges may be deleted, and there are limits for that; give delete_edges=5, or leave them out"
            )
        if self.delete_edges and not self.global_budget and (limit := self._limit_of_flips()):
            raise InputError(
                f"{limit} is about flips, and there are none beside these deletions; give a global_budget above 0, or leave "
                f"{limit} out"
            )

    def _limit_of_flips(self) -> str | None:
        """A part that limits nothing but flips, if one is given."""
        limits = {
            "local_budget": self.local_budget != "1%",
            "local_budget_at": bool(self.local_budget_at),
            "add_only": self.add_only,
            "delete_only": self.delete_only,
            "protect_attributes": bool(self.protect_attributes),
        }
        return next((limit for limit, is_given in limits.items() if is_given), None)

    def by_ids(self, graph: Graph, split: Split | None = None) -> Budget:
        """The same budget with ids in place of names and of parts of `split`."""
        instance("graph", graph, Graph, "Graph.read('graph.npz')")
        return replace(
            self,
            protect_nodes=chosen(graph, self.protect_nodes, split, "protect_nodes"),
            protect_attributes=[graph.attribute(attribute) for attribute in self.protect_attributes],
            local_budget_at={graph.node(node): count for node, count in self.local_budget_at.items()},
            protect_edges=edge_ids(graph, self.protect_edges, "protect_edges"),
        )

    def on(self, graph: Graph, capped: bool = False, split: Split | None = None) -> _core.Budget:
        """The budget, checked against `graph`.

        With `capped`, a global budget of more than there is to flip becomes that: for searches up to a largest budget.
        """
        by_ids = self.by_ids(graph, split)
        return _core.Budget(
            graph._core,
            self.global_budget,
            str(self.local_budget),
            "add-only" if self.add_only else "delete-only" if self.delete_only else "both",
            {
                int(node): whole(f"local_budget_at[{node!r}]", count, most=_MOST)
                for node, count in by_ids.local_budget_at.items()
            },
            [int(node) for node in by_ids.protect_nodes],
            [int(attribute) for attribute in by_ids.protect_attributes],
            by_ids._deletions(),
            capped,
        )

    def _deletions(self) -> tuple[int, int | None, bool, list[tuple[int, int]]] | None:
        """What may be deleted, if anything may, with ids in place of names."""
        protected = [(int(a), int(b)) for a, b in self.protect_edges]
        return (self.delete_edges, self.edges_per_node, self.keep_one_edge, protected) if self.delete_edges else None

    def in_words(self, graph: Graph, split: Split | None = None) -> str:
        """The budget as a person would say it; `split` is needed where it protects a part of one."""
        return self.on(graph, split=split).in_words(graph._core)

    def __repr__(self) -> str:
        parts = [repr(self.global_budget)]
        defaults: tuple[Any, ...] = ("1%", False, False, (), (), {}, 0, None, False, ())
        for part, default in zip(fields(self)[1:], defaults, strict=True):
            value = getattr(self, part.name)
            if value != default:
                many = isinstance(value, (tuple, dict)) and len(value) > 10
                parts.append(f"{part.name}={f'<{len(value)}>' if many else repr(value)}")
        return f"Budget({', '.join(parts)})"


def _local(given: Any) -> int | str:
    """A local budget: a number of flips, or text that is one, or a share."""
    if isinstance(given, str):
        _core.check_local_budget(given)
        return given
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise InputError(f"local_budget={given!r} must be a number of flips, or a share such as '1%'")
    return whole("local_budget", given, most=_MOST)


def budget_of(budget: Budget | None, parts: dict[str, Any], name: str = "global_budget") -> Budget:
    """The budget that is meant: `budget`, or the one whose `parts` were given. `name` is that of the global one."""
    said = given(parts)
    if budget is not None:
        if not isinstance(budget, Budget):
            hint = f"; or give {name}={budget}" if isinstance(budget, int) else ""
            raise InputError(f"budget must be a nodeproof.Budget, such as Budget(12), not {kind_of(budget)}{hint}")
        if said:
            raise InputError(
                f"a budget was given, and so was {next(iter(said))}, which is a part of one; give one or the other: "
                f"budget={budget!r} has all parts"
            )
        return budget
    if isinstance(parts[name], Default) and parts[name].value is None:
        raise InputError(f"there is no budget; give {name}, such as {name}=12, or budget=Budget(12)")
    values = {part: value.value if isinstance(value, Default) else value for part, value in parts.items()}
    values["local_budget_at"] = values["local_budget_at"] or {}
    return Budget(whole(name, values.pop(name), most=_MOST), **values)


def parts_of(
    global_budget: Any,
    local_budget: Any,
    add_only: Any,
    delete_only: Any,
    protect_attributes: Any,
    protect_nodes: Any,
    local_budget_at: Any,
    name: str = "global_budget",
) -> dict[str, Any]:
    """The parts of a budget by their names, as `budget_of` takes them."""
    return {
        name: global_budget,
        "local_budget": local_budget,
        "add_only": add_only,
        "delete_only": delete_only,
        "protect_attributes": protect_attributes,
        "protect_nodes": protect_nodes,
        "local_budget_at": local_budget_at,
    }
