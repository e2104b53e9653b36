"""How an imported model was held against the module that it comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Verification:
    """How an imported model was held against its module."""

    #: Largest difference of centred logits on the graph as it is, in the module's own precision.
    largest_difference: float
    #: The same over all attribute matrices that were tried, including some that no attacker can reach.
    largest_difference_tampered: float
    #: The largest that was allowed.
    tolerance: float
    #: The same difference in double precision; `None` if the module cannot do that.
    largest_difference_double: float | None
    #: Attribute matrices that were tried, the graph's own first.
    inputs: int
    #: Nodes whose class on the graph as it is differs: the module's rounding, or a tie, decides them.
    disagreements: tuple[int, ...]
    #: Nodes whose class differs because values other than 0 and 1 were counted as 1 (`binarise`).
    binarised: tuple[int, ...] = ()

    def __repr__(self) -> str:
        facts = [f"largest_difference={self.largest_difference:.1e}", f"tolerance={self.tolerance:.1e}"]
        facts += [f"inputs={self.inputs}", f"disagreements={_shown(self.disagreements)}"]
        facts += [f"binarised={_shown(self.binarised)}"] if self.binarised else []
        return f"Verification({', '.join(facts)})"


def _shown(nodes: tuple[int, ...]) -> str:
    return repr(nodes) if len(nodes) <= 10 else f"<{len(nodes)} nodes>"
