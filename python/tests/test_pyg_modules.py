"""PyTorch Geometric: modules as people write them, imported and certified, or refused in their words; and the table of them."""

from __future__ import annotations

import copy
import itertools
import os

import numpy as np
import pytest
from conftest import ROOT

import nodeproof
from nodeproof import from_pyg

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from networks import copies, data  # noqa: E402
from zoo import ACCEPTED, REFUSED, Case  # noqa: E402

PAGE = ROOT / "docs" / "python.md"
BEGIN, END = "<!-- modules: begin -->\n", "<!-- modules: end -->\n"
NODES = 5


def made(case: Case):
    """The module, with statistics in its norms as if it had been trained."""
    torch.manual_seed(sum(case.text.encode()))
    module = case.make()
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm1d) and part.running_mean is not None:
            torch.nn.init.normal_(part.running_mean, std=0.3)
            torch.nn.init.uniform_(part.running_var, 0.5, 2.0)
            torch.nn.init.normal_(part.weight)
            torch.nn.init.normal_(part.bias)
    return module


def run(case: Case, module, of, x):
    """The module as its user would call it."""
    given = copy.copy(of)
    given.x = x
    for part in module.modules():
        if getattr(part, "_cached_x", None) is not None:
            part._cached_x = None
    with torch.no_grad():
        if case.forward is not None:
            return case.forward(module, given).numpy()
        return (module(x) if isinstance(module, torch.nn.Sequential) else module(x, of.edge_index)).numpy()


def runs(case: Case, module, of, xs):
    """The module on each of these attributes: on as many copies of the graph at once, where that is the same."""
    one_by_one = [run(case, module, of, x) for x in xs[:2]]
    try:
        at_once = run_on_copies(case, module, of, xs)
    except RuntimeError:  # of modules that keep something for each node or edge
        at_once = None
    if at_once is None or not np.allclose(at_once[:2], one_by_one, rtol=0, atol=1e-12):
        return np.stack(one_by_one + [run(case, module, of, x) for x in xs[2:]])
    return at_once


def run_on_copies(case: Case, module, of, xs):
    many, module = copies(of, xs), copy.deepcopy(module)
    for part in module.modules():
        for name in ("_cached_edge_index", "_cached_adj_t"):
            if hasattr(part, name):
                setattr(part, name, None)
    return run(case, module, many, many.x).reshape(len(xs), NODES, -1)


def smallest_margins(case: Case, module, of, classes) -> dict[int, np.ndarray]:
    """Over all sets of at most one flip, and of at most two, at most one a node, run through the module itself."""
    flips = list(itertools.product(range(NODES), range(6)))
    pairs = [(one, other) for one, other in itertools.combinations(flips, 2) if one[0] != other[0]]
    xs = []
    for chosen in itertools.chain([()], ((flip,) for flip in flips), pairs):
        x = of.x.clone()
        for node, attribute in chosen:
            x[node, attribute] = 1 - x[node, attribute]
        xs.append(x)
    logits = runs(case, module, of, xs)
    own = logits[:, np.arange(NODES), classes]
    logits[:, np.arange(NODES), classes] = -np.inf
    margins = own - logits.max(axis=2)
    return {1: margins[: 1 + len(flips)].min(axis=0), 2: margins.min(axis=0)}


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.text)
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_no_set_of_flips_fools_a_certified_module(case: Case) -> None:
    module, of = made(case).double().eval(), data(nodes=NODES, seed=3)
    of.x = of.x.double()
    graph, model = from_pyg(module, of, forward=case.forward)
    assert model.verification.largest_difference_double < 1e-12 * max(1.0, np.abs(model.logits(graph)).max()) * 1e3
    classes = run(case, module, of, of.x).argmax(axis=1)
    decided = False
    margins = smallest_margins(case, module, of, classes)
    for (budget, smallest), engine in itertools.product(margins.items(), ("fast", "complete")):
        found = nodeproof.certify(graph, model, global_budget=budget, local_budget=1, engine=engine)
        assert (found.predicted == classes).all()
        decided = decided or found.robust.any() or found.nonrobust.any()
        assert (smallest[found.robust] > -1e-12).all(), "certified, but the module falls"
        assert (smallest[found.nonrobust] < 1e-12).all(), "a witness, but the module holds"
        for certificate in found:
            if certificate.witness:
                x = of.x.clone()
                for flip in certificate.witness:
                    x[flip.node, flip.attribute] = flip.to
                logits = run(case, module, of, x)[certificate.node]
                assert logits[certificate.witness.class_] >= logits[certificate.class_] - 1e-12
    assert decided, "nothing was put to the test"


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.text)
def test_others_are_refused_in_the_words_of_their_authors(case: Case) -> None:
    message = refusal(case)
    assert "aten" not in message and "Followed" not in message
    with pytest.raises(nodeproof.InputError, match="(?s)" + case.refused):
        from_pyg(made(case), data(), forward=case.forward)


def refusal(case: Case) -> str:
    with pytest.raises(nodeproof.InputError) as caught:
        from_pyg(made(case), data(), forward=case.forward)
    return str(caught.value)


def table() -> str:
    """The table of docs/python.md."""
    lines = ["| module | becomes |", "|---|---|"]
    for case in ACCEPTED:
        _, model = from_pyg(made(case), data(), forward=case.forward)
        hidden = sum(layer.activation != "none" for layer in model.layers)
        names = dict.fromkeys(name(propagation) for propagation in model.propagations)
        layers = f"{len(model.layers)} layer{'s' if len(model.layers) > 1 else ''}"
        lines.append(f"| {case.text} | {layers}, {hidden} with an activation; {', '.join(names)} |")
    lines += ["", "| module | refused, since |", "|---|---|"]
    lines += [f"| {case.text} | {refusal(case)} |" for case in REFUSED]
    return "\n".join(lines) + "\n"


def name(propagation) -> str:
    """The name of a propagation, and of a polynomial what it is of."""
    if isinstance(propagation, dict):
        return f"polynomial of {name(propagation['of'])}"
    return propagation if isinstance(propagation, str) else "custom"


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_the_table_of_modules_is_what_the_import_says() -> None:
    """`NODEPROOF_UPDATE=1` writes the table anew."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    shown, after = rest.split(END)
    expected = table()
    if os.environ.get("NODEPROOF_UPDATE"):
        PAGE.write_text(before + BEGIN + expected + END + after, encoding="utf-8")
    else:
        assert shown == expected, "docs/python.md has another table; run this test with NODEPROOF_UPDATE=1"
    assert len(ACCEPTED) + len(REFUSED) >= 40
