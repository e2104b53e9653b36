"""Notebook, script and README do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

import nodeproof


def python_blocks() -> list[str]:
    """The README's Python."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_notebook_runs(tmp_path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("matplotlib")
    notebook = nbformat.read(ROOT / "examples" / "quickstart.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    kinds = {kind for output in shown for kind in output.get("data", ())}
    assert {"text/html", "image/png"} <= kinds
    said = "".join(output.get("text", "") for output in shown)
    assert "nonrobust" in said and "robust: no admissible set of flips changes the class" in said
    assert (tmp_path / "report.html").stat().st_size > 100_000 and (tmp_path / "certificates.jsonl").exists()


def run(name: str, folder) -> str:
    """What a notebook prints."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "examples" / f"{name}.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    if any("torch" in cell.source for cell in notebook.cells if cell.cell_type == "code"):
        pytest.importorskip("torch_geometric")
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()))


@pytest.mark.parametrize("name", ["attack_stories", "certify_pyg", "ci_gate"])
def test_the_notebooks_of_the_gallery_run(name: str, tmp_path) -> None:
    assert run(name, tmp_path)


def test_the_notebook_on_robust_training_shows_what_it_is_good_for(tmp_path) -> None:
    said = run("robust_training", tmp_path)
    found = re.findall(r"accuracy ([\d.]+)%  no 5 flips change ([\d.]+)%", said)
    (accuracy, share), (robust_accuracy, robust_share) = ((float(a), float(b)) for a, b in found)
    assert robust_share > share + 30 and robust_accuracy > accuracy - 2


def test_the_readme_runs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    _, everything = python_blocks()
    exec(everything, {"nodeproof": nodeproof})
    assert "horn" in capsys.readouterr().out
    assert (tmp_path / "report.html").exists()
    assert len(nodeproof.Certificates.read("certificates.jsonl", nodeproof.Graph.bundled())) == 2973


def test_the_readmes_three_lines_run(capsys) -> None:
    torch = pytest.importorskip("torch")
    pyg = pytest.importorskip("torch_geometric.nn.models")
    lines, _ = python_blocks()
    assert len(lines.splitlines()) == 3
    torch.manual_seed(0)
    graph = nodeproof.Graph.bundled()
    module = pyg.GCN(graph.attribute_count, 16, num_layers=2, out_channels=graph.classes)
    exec(lines, {"module": module, "data": graph.to_pyg()})
    printed = capsys.readouterr().out
    assert "verdict" in printed and "[3304 rows" in printed


def test_the_script_runs() -> None:
    pytest.importorskip("torch_geometric")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "pyg_gcn.py", "--epochs", "60"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Certificates(nodes=3304" in done.stdout and "witness" in done.stdout


@pytest.mark.parametrize("propagation", ["symmetric-gcn", "row-normalised"])
def test_mixed_integer_programs_agree(propagation: str, tmp_path, bundled, standard) -> None:
    """Certificates on the bundled graph, held against exact programs that share no code with nodeproof."""
    if not os.environ.get("NODEPROOF_THOROUGH"):
        pytest.skip("NODEPROOF_THOROUGH is not set")
    model = nodeproof.Model(standard.weights, standard.biases, propagation)
    model.write(tmp_path / "model.safetensors")
    bundled.write(tmp_path / "graph.npz")
    found = nodeproof.certify(bundled, model, global_budget=4, local_budget=3, timings=True, nodes=range(0, 3304, 9))
    assert found.robust.any() and found.nonrobust.any() and np.isfinite(found.margin).all()
    found.write(tmp_path / "certificates.jsonl")
    done = subprocess.run(
        [
            sys.executable, ROOT / "tests" / "milp" / "check.py", "--graph", tmp_path / "graph.npz", "--model",
            tmp_path / "model.safetensors", "--certificates", tmp_path / "certificates.jsonl", "--nodes", "20",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^agree: [1-9]", done.stdout, re.MULTILINE) and "disagree: 0" in done.stdout, done.stdout
