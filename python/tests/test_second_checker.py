"""The checker in Python accepts what the program writes, and nothing that is not so."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import json
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from conftest import ROOT, tiny

import nodeproof

SCRIPT = ROOT / "examples" / "second_checker.py"
SPECIFICATION = importlib.util.spec_from_file_location("second_checker", SCRIPT)
checker = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(checker)


class Case:
    """A graph, a model and certificates of them, in files of one folder."""

    def __init__(self, folder, graph: nodeproof.Graph, model: nodeproof.Model) -> None:
        self.paths = [folder / name for name in ("certificates.jsonl", "graph.npz", "model.safetensors")]
        graph.write(self.paths[1])
        model.write(self.paths[2])

    def certify(self, program, *options: object) -> list[dict]:
        files = ("--graph", self.paths[1], "--model", self.paths[2], "--out", self.paths[0])
        program("certify", *files, "--proof", "--quiet", *options)
        return [json.loads(line) for line in self.paths[0].read_text().splitlines()]

    def write(self, lines: list[dict]) -> None:
        self.paths[0].write_text("".join(json.dumps(line) + "\n" for line in lines))

    def check(self, capsys, lines: list[dict]) -> tuple[int, list[str]]:
        """The exit code, and what is said, line by line."""
        self.write(lines)
        code = checker.main(*map(str, self.paths))
        return code, capsys.readouterr().out.splitlines()


@pytest.fixture(scope="module")
def case(tmp_path_factory, bundled, standard) -> Case:
    return Case(tmp_path_factory.mktemp("case"), bundled, standard)


@pytest.fixture(scope="module")
def lines(case, program) -> list[dict]:
    return case.certify(program, "--global-budget", 5, "--nodes", ",".join(map(str, range(7, 3304, 80))))


def test_what_the_program_writes_is_accepted(case, lines) -> None:
    case.write(lines)
    done = subprocess.run([sys.executable, SCRIPT, *case.paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = Counter(
        line.partition(": ")[2].partition(",")[0] for line in done.stdout.splitlines() if line.startswith("line")
    )
    assert said["accepted robust"] >= 5 and said["accepted nonrobust"] >= 5, said
    assert said["beyond this script"] == sum("proofs" in line for line in lines[1:]) and said.total() == len(lines) - 1


@pytest.mark.parametrize(
    "options",
    [
        ("--add-only", "--protect-attributes", "0-99"),
        ("--delete-only", "--class", "label"),
        ("--local-budget", 1, "--protect-nodes", "2-3000"),
    ],
)
def test_budgets_and_labels(options, case, program, capsys) -> None:
    lines = case.certify(program, "--global-budget", 4, "--nodes", "5,900,1700,2500,3300", *options)
    code, said = case.check(capsys, lines)
    assert code == 0 and not any("rejected" in line for line in said), said


def test_two_hidden_layers(tmp_path, bundled, program, capsys) -> None:
    options = {"global_budget": 5, "hidden": [16, 16], "steps": 60, "evaluate": False, "progress": False}
    deep = Case(tmp_path, bundled, nodeproof.train(bundled, "ce", **options).model)
    lines = deep.certify(program, "--global-budget", 3, "--nodes", ",".join(map(str, range(3, 3304, 470))))
    code, said = deep.check(capsys, lines)
    assert code == 0 and "accepted robust" in said[-2] + said[-1], said


def with_verdict_robust(record: dict) -> None:
    record.update(verdict="robust", margins=["positive"] * len(record["margins"]))


def with_margin_raised(record: dict) -> None:
    k = 0 if record["class"] else 1
    record["margins"][k] = 1.5 * record["margins"][k] + 1


def with_first_flip_turned(record: dict) -> None:
    record["witness"][0]["to"] = 1 - record["witness"][0]["to"]


def with_more_flips(record: dict) -> None:
    known = {flip["attribute"] for flip in record["witness"]}
    flips = [{"node": record["node"], "attribute": d, "to": 1} for d in range(2048) if d not in known]
    record["witness"] += flips[:5]


CHANGES = [
    ("nonrobust", with_verdict_robust),
    ("nonrobust", lambda record: record.update(verdict="robust")),
    ("robust", with_margin_raised),
    ("robust", lambda record: record["margins"].pop()),
    ("robust", lambda record: record.update(predicted=(record["predicted"] + 1) % 6)),
    ("robust", lambda record: record.update({"class": (record["class"] + 1) % 6})),
    ("robust", lambda record: record.update(label=(record["label"] + 1) % 6)),
    ("robust", lambda record: record.update(verdict="nonrobust")),
    ("nonrobust", lambda record: record.update(witness=[])),
    ("nonrobust", with_first_flip_turned),
    ("nonrobust", with_more_flips),
    ("nonrobust", lambda record: record["witness"].append(record["witness"][0])),
    ("nonrobust", lambda record: record.update(witness_class=record["class"])),
    ("nonrobust", lambda record: record.update(witness_margin=record["witness_margin"] - 1e-6)),
    ("nonrobust", lambda record: record.update(node=3304)),
    ("nonrobust", lambda record: record.update(node=-1)),
]


def test_certificates_that_were_changed_are_rejected(case, lines, capsys) -> None:
    plain = [line for line in lines[1:] if line["predicted"] == line["label"] and "proofs" not in line]
    first = {verdict: next(line for line in plain if line["verdict"] == verdict) for verdict in ("robust", "nonrobust")}
    assert case.check(capsys, [lines[0], *first.values()])[0] == 0
    changed = [copy.deepcopy(first[verdict]) for verdict, _ in CHANGES]
    for record, (_, change) in zip(changed, CHANGES, strict=True):
        change(record)
    code, said = case.check(capsys, [lines[0], *changed])
    assert code == 1 and all(": rejected," in line for line in said[:-1]), said
    assert said[-1] == f"{len(CHANGES)} rejected"


@pytest.mark.parametrize(
    ("part", "field", "value", "code"),
    [
        ("graph", "fingerprint", "00" * 32, 1),
        ("model", "fingerprint", "00" * 32, 1),
        ("graph", "attributes", 4096, 1),
        ("budget", "local_count", 1, 1),
        ("budget", "global", 0, 1),
        ("budget", "global", 2000, 1),
        ("graph", "kind", "real-values", 0),
        ("budget", "values", "all", 0),
    ],
)
def test_headers_that_were_changed_are_not_accepted(part, field, value, code, case, lines, capsys) -> None:
    header, *records = copy.deepcopy(lines)
    header[part][field] = value
    some = [next(line for line in records if line["verdict"] == verdict) for verdict in ("robust", "nonrobust")]
    found, said = case.check(capsys, [header, *some])
    assert found == code and (code or "beyond this script" in said[0]), said


def test_other_files_are_not_used(case, lines, tmp_path, capsys) -> None:
    case.write(lines[:2])
    for place in range(3):
        paths = list(map(str, case.paths))
        paths[place] = str(tmp_path / "none")
        assert checker.main(*paths) == 2
    assert case.check(capsys, [{**lines[0], "version": 3}])[0] == 2


def smallest_margins(graph, model, y: list[int], flips_at_once: int) -> list[list[Fraction]]:
    """For each node the smallest margins over all sets of flips, in exact numbers, with one flip at a node at most."""
    exact = np.vectorize(Fraction, otypes=[object])
    p, x = exact(model.propagation_on(graph).toarray()), graph.attributes.toarray().astype(int)
    layers = [(exact(weight), exact(bias)) for weight, bias in zip(model.weights, model.biases, strict=True)]
    smallest = np.full((graph.nodes, graph.classes or len(layers[-1][1])), Fraction(10**9), object)
    for count in range(flips_at_once + 1):
        for nodes in itertools.combinations(range(graph.nodes), count):
            for attributes in itertools.product(range(x.shape[1]), repeat=count):
                h = x.astype(object)
                h[list(nodes), list(attributes)] = 1 - h[list(nodes), list(attributes)]
                for weight, bias in layers:
                    z = p @ h @ weight + bias
                    h = np.maximum(z, 0)
                smallest = np.minimum(smallest, z[range(graph.nodes), y][:, None] - z)
    return smallest.tolist()


def test_nothing_is_accepted_that_brute_force_refutes(tmp_path, program, capsys) -> None:
    """Every node of tiny graphs is called robust, and then with margins that are more than it has."""
    accepted = refuted = 0
    for seed in range(18):
        adjacency, x, weights, biases = tiny(seed, nodes=4, attributes=3)
        if seed % 2:
            weights.insert(1, np.round(np.random.default_rng(seed).normal(size=(3, 3)), 1))
            biases.insert(1, biases[0][::-1])
        graph, model = nodeproof.Graph(adjacency, x), nodeproof.Model(weights, biases)
        case = Case(tmp_path, graph, model)
        lines = case.certify(program, "--global-budget", 2, "--local-budget", 1)
        code, said = case.check(capsys, lines)
        assert code == 0, said
        smallest = smallest_margins(graph, model, [line["class"] for line in lines[1:]], 2)
        for record, margins in zip(lines[1:], smallest, strict=True):
            others = [k for k in range(3) if k != record["class"]]
            is_robust = all(margins[k] > 0 for k in others)
            assert is_robust == (record["verdict"] == "robust")
            forged = {**record, "verdict": "robust", "margins": ["positive"] * 3, "proofs": []}
            code, said = case.check(capsys, [lines[0], forged])
            assert code == 1 or is_robust, said
            accepted, refuted = accepted + (code == 0), refuted + (not is_robust)
            for k in others if code == 0 else []:
                forged["margins"] = ["positive"] * 3
                forged["margins"][k] = float(margins[k]) * (1 + 2**-50)
                assert case.check(capsys, [lines[0], forged])[0] == 1, "a margin that is larger than the smallest one"
    assert accepted > 20 and refuted > 20, (accepted, refuted)
