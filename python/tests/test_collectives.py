"""All predictions together."""

import re
from pathlib import Path

import numpy as np
import pytest

import nodeproof
from nodeproof import InputError


@pytest.fixture(scope="module")
def trained() -> tuple[nodeproof.Graph, nodeproof.Model]:
    graph = nodeproof.Graph.bundled()
    return graph, nodeproof.train(graph, "ce", global_budget=5, steps=40, hidden=(8,)).model


def test_answers_are_between_the_attack_and_what_radii_tell(trained: tuple[nodeproof.Graph, nodeproof.Model]) -> None:
    graph, model = trained
    radii = nodeproof.radius(graph, model, nodes=range(200), max_budget=5)
    one, five = nodeproof.collective(graph, model, radii, [5, 1])
    assert (one.global_budget, five.global_budget) == (1, 5)
    for answer in (one, five):
        assert answer.at_least <= answer.at_most <= answer.by_radii <= answer.alone <= answer.predictions == 200
        assert len(answer.flips) <= answer.global_budget
    assert one.exact
    assert nodeproof.collective(graph, model, radii, np.int64(1)).at_most == one.at_most


def test_the_page_shows_what_runs(trained: tuple[nodeproof.Graph, nodeproof.Model]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    (shown,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "collective" in block]
    names = {"nodeproof": nodeproof, "graph": trained[0], "model": trained[1]}
    exec(shown, names)
    assert isinstance(names["five"], nodeproof.Collective)


def test_the_attack_changes_what_it_says(trained: tuple[nodeproof.Graph, nodeproof.Model]) -> None:
    graph, model = trained
    radii = nodeproof.radius(graph, model, nodes=range(200), max_budget=5)
    seen: list[tuple[int, int]] = []
    answer = nodeproof.collective(graph, model, radii, 5, threads=1, progress=lambda *told: seen.append(told))
    before, after = model.predict(graph), model.predict(answer.apply(graph))
    assert answer.changed.tolist() == [node for node in range(200) if before[node] != after[node]]
    assert answer.changed.size > 0 and not answer.changed.flags.writeable
    assert len(answer.in_words()) == len(answer.flips) > 0
    assert seen[-1][0] == seen[-1][1]
    assert f"at most {answer.at_most} of 200" in repr(answer)


def test_radii_of_something_else_are_refused(trained: tuple[nodeproof.Graph, nodeproof.Model]) -> None:
    graph, model = trained
    radii = nodeproof.radius(graph, model, nodes=range(5), max_budget=2)
    other = nodeproof.Model([[[1.0, 0.0]] * graph.attributes.shape[1]])
    with pytest.raises(InputError, match="another model"):
        nodeproof.collective(graph, other, radii, 1)
    scan = nodeproof.radius(graph, model, nodes=range(5), max_budget=2, engine="fast", scan=True)
    with pytest.raises(InputError, match="scan"):
        nodeproof.collective(graph, model, scan, 1)
    edges = nodeproof.radius(graph, model, nodes=range(5), budget=nodeproof.Budget(0, delete_edges=1))
    with pytest.raises(InputError, match="collective"):
        nodeproof.collective(graph, model, edges, 1)
    for budget in (-1, 1.5, [], "1"):
        with pytest.raises(InputError):
            nodeproof.collective(graph, model, radii, budget)  # type: ignore[call-overload]
    with pytest.raises(InputError, match="Radii"):
        nodeproof.collective(graph, model, [1, 2], 1)  # type: ignore[arg-type]
