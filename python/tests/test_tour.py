"""The tour says what comes out."""

from __future__ import annotations

import doctest
import re
import shutil

import pytest
from conftest import PAPERS, ROOT

#: What the part begins with that needs PyTorch Geometric.
PYG = "## From PyTorch Geometric"


def test_the_tour_is_what_happens(tmp_path, monkeypatch) -> None:
    pytest.importorskip("polars")
    # A fence would count as output.
    text = re.sub(r"^```.*$", "", (ROOT / "docs" / "tour.md").read_text(), flags=re.MULTILINE)
    assert PYG in text
    try:
        import torch_geometric  # noqa: F401
    except ImportError:
        text = text.partition(PYG)[0]
    shutil.copytree(PAPERS, tmp_path / "examples" / "papers")
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(text, {}, "tour", "docs/tour.md", 0)
    assert len(test.examples) > 60
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert not said, "".join(said)
    for name in ("degree.svg", "budgets.png", "training.svg", "comparison.svg", "certificates.jsonl", "report.html"):
        assert (tmp_path / name).stat().st_size > 1000
