"""All predictions together."""

import hashlib
import json
import pickle
import re
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="module")
def results(trained: tuple[nodeproof.Graph, nodeproof.Model]) -> tuple[nodeproof.Radii, nodeproof.Certificates]:
    graph, model = trained
    radii = nodeproof.radius(graph, model, nodes=range(200), max_budget=5)
    return radii, nodeproof.certify(graph, model, global_budget=5, nodes=range(200))


def data(page: nodeproof.Report) -> Any:
    """The data in a report."""
    return json.loads(page.html.split('id="data">')[1].split("</script>")[0])


def test_reports_show_answers_beside_the_others(trained: tuple[nodeproof.Graph, nodeproof.Model], results: Any) -> None:
    radii, certificates = results
    answers = nodeproof.collective(*trained, radii, [5, 1])
    # In any order, and from another process.
    given = [certificates, *reversed(pickle.loads(pickle.dumps(answers))), radii]
    report = data(nodeproof.report(given))
    (shown,) = report["models"]
    assert shown["certificates"] and shown["radii"]
    assert shown["collectives"]["budget"]["global"] == 5
    ids = report["nodes"]["id"]
    assert len(shown["collectives"]["answers"]) == len(answers)
    for answer, found in zip(shown["collectives"]["answers"], answers, strict=True):
        assert (answer["global"], answer["predictions"]) == (found.global_budget, 200)
        assert (answer["at_most"], answer["at_least"]) == (found.at_most, found.at_least)
        assert (answer["by_radii"], answer["alone"]) == (found.by_radii, found.alone)
        assert [ids[place] for place in answer["changed"]] == found.changed.tolist()
        made = [(flip.node, flip.attribute, flip.to) for flip in found.flips]
        assert [(ids[place], attribute, to) for place, attribute, to in answer["flips"]] == made
    alone = data(nodeproof.report({"five": answers[1]}))
    assert alone["nodes"]["subjects"] == 0
    assert [answer["global"] for answer in alone["models"][0]["collectives"]["answers"]] == [5]


def test_answers_that_do_not_belong_together_are_refused(
    trained: tuple[nodeproof.Graph, nodeproof.Model], results: Any
) -> None:
    graph, model = trained
    radii, certificates = results
    five = nodeproof.collective(graph, model, radii, 5)
    adds = nodeproof.radius(graph, model, nodes=range(20), budget=nodeproof.Budget(2, add_only=True))
    two = nodeproof.collective(graph, model, adds, 2)
    with pytest.raises(InputError, match="two collective certificates of a budget of 5"):
        nodeproof.report([five, five])
    with pytest.raises(InputError, match="different graphs, models, limits or nodes"):
        nodeproof.report([five, two])
    others = nodeproof.radius(graph, model, nodes=range(1, 201), max_budget=2)
    with pytest.raises(InputError, match="different graphs, models, limits or nodes"):
        nodeproof.report([five, nodeproof.collective(graph, model, others, 2)])
    with pytest.raises(
        InputError, match="certificates and the collective certificates of “model” are about different budgets"
    ):
        nodeproof.report([certificates, two])
    with pytest.raises(InputError, match="neither certificates, nor radii, nor a collective certificate"):
        nodeproof.report([five, five.flips[0]])  # type: ignore[list-item]
    nodeproof.report({"flips": (certificates, five), "additions": two})


def test_answers_are_drawn(trained: tuple[nodeproof.Graph, nodeproof.Model], results: Any, tmp_path: Path) -> None:
    answers = nodeproof.collective(*trained, results[0], [1, 2, 5])
    assert isinstance(answers, nodeproof.Collectives)
    figure = answers.plot(title="Together")
    for words in ("Together", "at most: proven", "changed by an attack", "single certificates added up"):
        assert f">{words}</text>" in figure.svg
    figure.save(tmp_path / "together.png", dpi=100)
    assert (tmp_path / "together.png").read_bytes()[1:4] == b"PNG"


def test_answers_are_written_and_read_back(
    trained: tuple[nodeproof.Graph, nodeproof.Model], results: Any, tmp_path: Path
) -> None:
    graph, model = trained
    answers = nodeproof.collective(graph, model, results[0], [1, 2, 5])
    for name in ("together.jsonl", "together.jsonl.gz"):
        answers.write(tmp_path / name)
        assert nodeproof.Collectives.read(tmp_path / name, graph) == answers
    assert [answer.global_budget for answer in answers[1:]] == [2, 5]
    again = pickle.loads(pickle.dumps(answers[2]))
    assert repr(again) == repr(answers[-1]) and again.flips == answers[2].flips
    with pytest.raises(InputError, match="another graph"):
        nodeproof.Collectives.read(tmp_path / "together.jsonl", graph.with_flips(answers[0].flips))
    results[0].write(tmp_path / "radii.jsonl")
    with pytest.raises(nodeproof.NodeproofError, match="radii"):
        nodeproof.Collectives.read(tmp_path / "radii.jsonl", graph)
    with pytest.raises(nodeproof.NodeproofError, match="does not exist"):
        nodeproof.Collectives.read(tmp_path / "no.jsonl", graph)


def test_answers_are_checked(trained: tuple[nodeproof.Graph, nodeproof.Model], tmp_path: Path) -> None:
    graph, model = trained
    radii = nodeproof.radius(graph, model, nodes=range(200), max_budget=5, proofs=True)
    answers = nodeproof.collective(graph, model, radii, [1, 2, 5])
    seen: list[tuple[int, int]] = []
    assert answers.check(model, radii, threads=1, progress=lambda *told: seen.append(told)) == {}
    assert seen[-1] == (600, 600)
    with pytest.raises(InputError, match="another model"):
        answers.check(nodeproof.Model([[[1.0, 0.0]] * graph.attributes.shape[1]]), radii)
    with pytest.raises(InputError, match="another budget"):
        answers.check(model, nodeproof.radius(graph, model, nodes=range(5), max_budget=1, local_budget=1))
    with pytest.raises(InputError, match="Radii"):
        answers.check(model, 5)  # type: ignore[arg-type]

    # Somebody who hides the attack may not claim that nothing changes.
    header, line = answers[0]._core.lines().decode().splitlines()
    record = json.loads(line)
    del record["hash"]
    record |= {"at_most": record["at_least"] - 1, "at_least": 0, "flips": [], "changed": []}
    text = json.dumps(record, separators=(",", ":"))
    before = hashlib.sha256(bytes(8) + header.encode()).digest()[:8]
    digest = hashlib.sha256(before + text.encode()).digest()[:8].hex()
    (tmp_path / "less.jsonl").write_text(f'{header}\n{text[:-1]},"hash":"{digest}"}}\n')
    less = nodeproof.Collectives.read(tmp_path / "less.jsonl", graph)
    assert list(less.check(model, radii)) == [1]
