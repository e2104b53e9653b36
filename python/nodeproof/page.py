"""The interactive report: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from . import _core
from ._checks import instance
from ._files import StrPath, check_ending, path_text, replace
from .by_budget import CertificatesByBudget
from .collectives import Collective, Collectives
from .errors import InputError
from .results import Certificates, Radii, _Results
from .split import Split

Results = _Results | Collective | Collectives


class Report:
    """A page to look at and to hand on; notebooks show it, `write` keeps it."""

    def __init__(self, html: str) -> None:
        #: The page.
        self.html = html

    def write(self, path: StrPath) -> None:
        """Writes the page."""
        path = path_text(path)
        check_ending(path, "reports", "html")
        replace(path, self.html.encode())

    def __repr__(self) -> str:
        return f"Report({len(self.html) / 1e6:.1f} MB of HTML; write it with .write('report.html'))"

    def _repr_html_(self) -> str:
        page = escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:800px;border:1px solid #ccc"></iframe>'


def report(
    results: Results | Iterable[Results] | Mapping[str, Results | Iterable[Results]],
    *,
    out: StrPath | None = None,
    title: str | None = None,
    graph_name: str = "the graph",
    split: Split | None = None,
) -> Report:
    """Puts certificates, radii and collective certificates into one HTML page that needs no network: `nodeproof report`.

    Args:
        results: certificates, radii and collective certificates of one model, or some of these; or for each name what there is
            of that model, to show several side by side. Collective certificates may be about several global budgets.
        out: writes the page there.
        title: its title.
        graph_name: what the graph is called.
        split: says which nodes were labelled in training.

    >>> import nodeproof
    >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
    >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
    >>> page = nodeproof.report(nodeproof.certify(graph, model, global_budget=1), title="Two nodes")
    >>> page.html.startswith("<!doctype html>")
    True
    """
    named = results if isinstance(results, Mapping) else {"model": results}
    if any(isinstance(given, CertificatesByBudget) for given in (results, *named.values())):
        raise InputError("a report shows one budget of a model; give the certificates of one, such as certificates[12]")
    if split is not None:
        instance("split", split, Split, "Split.stratified(graph)")
    models: list[tuple[str, _core.Certificates | None, _core.Radii | None, _core.Collectives | None]] = []
    graphs = []
    for name, given in named.items():
        if isinstance(given, (Certificates, Radii, Collective, Collectives)):
            given = [given]
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(
                f"of {name!r} a {type(given).__name__} was given; give certificates, radii, collective certificates, or several"
            )
        found = list(given)
        certificates = [one for one in found if isinstance(one, Certificates)]
        radii = [one for one in found if isinstance(one, Radii)]
        together = [one for one in found if isinstance(one, (Collective, Collectives))]
        if len(certificates) + len(radii) + len(together) != len(found):
            raise InputError(f"of {name!r} something is neither certificates, nor radii, nor a collective certificate")
        if len(certificates) > 1 or len(radii) > 1:
            raise InputError(f"{name!r} has certificates or radii twice; give one of each, or different names")
        of_nodes = certificates[0]._core if certificates else None, radii[0]._core if radii else None
        of_all = _core.Collectives.joined([one._core for one in together]) if together else None
        models.append((str(name), *of_nodes, of_all))
        graphs += [one._graph if isinstance(one, (Collective, Collectives)) else one.graph for one in found]
    if not graphs:
        raise InputError("there is nothing to report; give certificates, radii or collective certificates")
    page = Report(_core.report(graphs[0]._core, graph_name, title, None if split is None else split._core, models))
    if out is not None:
        page.write(out)
    return page
