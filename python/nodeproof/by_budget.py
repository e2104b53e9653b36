"""Certificates under several global budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from . import _core, notebook
from ._optional import optional
from .errors import InputError, MissingBudgetError
from .figure import Figure, look
from .results import Certificates, Summary


class CertificatesByBudget(Mapping[int, Certificates]):
    """Certificates of the same nodes under several global budgets, by budget: what `certify` gives for `global_budget=[…]`.

    >>> import nodeproof
    >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
    >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
    >>> certificates = nodeproof.certify(graph, model, global_budget=[1, 2, 4], local_budget=2)
    >>> certificates
    CertificatesByBudget({1: 2 robust of 2, 2: 0 robust of 2, 4: 0 robust of 2})
    >>> certificates[2].verdicts, certificates.robust_share(1)
    (array(['nonrobust', 'nonrobust'], dtype='<U9'), 1.0)
    """

    def __init__(self, certificates: Iterable[Certificates]) -> None:
        self._results = {one.global_budget: one for one in certificates}

    def __getitem__(self, global_budget: int) -> Certificates:
        if global_budget not in self._results:
            raise MissingBudgetError(f"global_budget={global_budget!r} is not among {', '.join(map(str, self))}")
        return self._results[global_budget]

    def __iter__(self) -> Iterator[int]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def robust_share(self, global_budget: int) -> float:
        """The share of nodes that are proven robust under a global budget."""
        if global_budget not in self._results:
            raise InputError(f"global_budget={global_budget!r} is not among {', '.join(map(str, self))}")
        return self._results[global_budget].robust_share

    @property
    def summary(self) -> dict[int, Summary]:
        """The summary under each budget."""
        return {budget: results.summary for budget, results in self.items()}

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with the rows of `Certificates.to_pandas`, and `global_budget` as first column."""
        pandas = optional("pandas", "pandas", "to_pandas()")

        def one(budget: int, results: Certificates) -> Any:
            table = results.to_pandas()
            table.insert(0, "global_budget", budget)
            return table

        return pandas.concat(self._tables(one), ignore_index=True)

    def to_polars(self) -> Any:
        """A `polars.DataFrame` with the columns of `to_pandas`."""
        polars = optional("polars", "polars", "to_polars()")

        def one(budget: int, results: Certificates) -> Any:
            table = results.to_polars()
            return table.select(polars.lit(budget, dtype=polars.Int64).alias("global_budget"), polars.all())

        return polars.concat(self._tables(one))

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with the columns of `to_pandas`."""
        pyarrow = optional("pyarrow", "arrow", "to_arrow()")

        def one(budget: int, results: Certificates) -> Any:
            return results.to_arrow().add_column(
                0, "global_budget", pyarrow.array([budget] * len(results), pyarrow.int64())
            )

        return pyarrow.concat_tables(self._tables(one))

    def _tables(self, one: Callable[[int, Certificates], Any]) -> list[Any]:
        return [one(budget, results) for budget, results in self.items()]

    def plot(self, *, title: str | None = None, width: float = 84, height: float = 58) -> Figure:
        """Which share of the nodes is robust (from below) and nonrobust (from above) against the global budget.

        A node that is robust under a budget is so under smaller ones, and one with a witness of k flips is nonrobust from k
        on; what does not follow from the budgets that were asked about is left white, as undecided. `Radii.plot` leaves
        nothing out. Width and height are in millimetres.
        """
        return Figure(_core.plot_certificates([one._core for one in self.values()], look(title, width, height)))

    def __repr__(self) -> str:
        shares = (f"{budget}: {int(found.robust.sum())} robust of {len(found)}" for budget, found in self.items())
        return f"CertificatesByBudget({{{', '.join(shares)}}})"

    def _repr_html_(self) -> str:
        largest = self._results[max(self._results)]
        return notebook.by_budget(self, f"{largest.budget_in_words()}, and fewer; engine {largest.engine}")
