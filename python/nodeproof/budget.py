"""Budgets: how many flips in total, how many at one node, and which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from . import _core
from ._checks import flag, instance, listed, whole
from .errors import InputError
from .graph import Graph
from .split import node_ids

#: The largest number of flips that a budget can hold.
_MOST = 2**32 - 1


@dataclass(frozen=True)
class Budget:
    """What an attacker may change; the functions of nodeproof take its parts as keywords of the same names.

    Args:
        global_budget: most flips in total, Q.
        local_budget: most flips at one node, q: a count, or a share of the attributes such as "1%", rounded down, but at
            least 1.
        add_only, delete_only: only flips from 0 to 1, or only those from 1 to 0.
        protect_attributes: attributes that cannot be flipped, by id or name.
        protect_nodes: nodes whose attributes cannot be flipped: ids or a mask.
        local_budget_at: nodes with a local budget of their own.

    >>> Budget(12).in_words(Graph.bundled())
    'at most 12 flips, 20 at one node (1% of 2048 attributes)'
    """

    global_budget: int
    local_budget: int | str = "1%"
    add_only: bool = False
    delete_only: bool = False
    protect_attributes: Iterable[int | str] = ()
    protect_nodes: Iterable[int] = ()
    local_budget_at: Mapping[int, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        # Whatever was given can be gone through more than once, and travel to workers.
        nodes = listed("protect_nodes", self.protect_nodes, "ids")
        object.__setattr__(self, "protect_nodes", tuple(nodes.tolist() if hasattr(nodes, "tolist") else nodes))
        object.__setattr__(
            self, "protect_attributes", tuple(listed("protect_attributes", self.protect_attributes, "ids or names"))
        )
        if not isinstance(self.local_budget_at, Mapping):
            raise InputError(f"local_budget_at={self.local_budget_at!r} must be a mapping of nodes to numbers of flips")
        object.__setattr__(self, "local_budget_at", dict(self.local_budget_at))

    def on(self, graph: Graph, name: str = "global_budget", capped: bool = False) -> _core.Budget:
        """The budget, checked against `graph`.

        With `capped`, a global budget of more than there is to flip becomes that: for searches up to a largest budget.
        """
        instance("graph", graph, Graph, "Graph.read('graph.npz')")
        add_only, delete_only = flag("add_only", self.add_only), flag("delete_only", self.delete_only)
        if add_only and delete_only:
            raise InputError("add_only and delete_only together leave no flips; choose one")
        local = self.local_budget
        if isinstance(local, bool) or not (isinstance(local, str) or hasattr(local, "__index__")):
            raise InputError(f"local_budget={local!r} must be a number of flips, or a share such as '1%'")
        return _core.Budget(
            graph._core,
            whole(name, self.global_budget, most=_MOST),
            str(local),
            "add-only" if add_only else "delete-only" if delete_only else "both",
            {
                graph.node(node): whole(f"local_budget_at[{node!r}]", count, most=_MOST)
                for node, count in self.local_budget_at.items()
            },
            node_ids(self.protect_nodes, graph.nodes).tolist(),
            [graph.attribute(attribute) for attribute in self.protect_attributes],
            capped,
        )

    def in_words(self, graph: Graph) -> str:
        """The budget as a person would say it."""
        return self.on(graph).in_words(graph._core)
