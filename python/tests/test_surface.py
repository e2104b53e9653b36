"""What all parts of the package have in common: budgets, nodes, names, tables, figures, and what they look like."""

from __future__ import annotations

import inspect
import pickle
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import nodeproof
from nodeproof import Budget, Certificates, CertificatesByBudget, Graph, InputError, Radii, Split


@pytest.fixture(scope="module")
def certificates(papers) -> Certificates:
    return nodeproof.certify(*papers, global_budget=4, local_budget=2, engine="fast")


@pytest.fixture(scope="module")
def radii(papers) -> Radii:
    return nodeproof.radius(*papers, local_budget=2, max_budget=30)


class TestBudgets:
    def test_an_object_is_its_parts(self, papers) -> None:
        parts = {"local_budget": 2, "add_only": True, "protect_nodes": [3], "local_budget_at": {1: 5}}
        budget = Budget(4, **parts)
        by_parts = nodeproof.certify(*papers, global_budget=4, **parts)
        assert nodeproof.certify(*papers, budget) == nodeproof.certify(*papers, budget=budget) == by_parts
        assert nodeproof.radius(*papers, budget) == nodeproof.radius(*papers, max_budget=4, **parts)
        by_object = nodeproof.explain(*papers, 9, budget)
        assert by_object.text == nodeproof.explain(*papers, 9, global_budget=4, **parts).text
        options = {"train": "30%", "steps": 5}
        trained = nodeproof.train(papers[0], "rh", budget, **options)
        assert trained.model == nodeproof.train(papers[0], "rh", global_budget=4, **parts, **options).model
        assert trained.certificates.budget_in_words() == by_parts.budget_in_words()

    @pytest.mark.parametrize("name", ["local_budget", "add_only", "protect_nodes", "local_budget_at", "global_budget"])
    def test_both_at_once_are_refused_even_where_they_agree(self, name: str, papers) -> None:
        value = {"local_budget": "1%", "add_only": False, "protect_nodes": (), "local_budget_at": {}}.get(name, 4)
        with pytest.raises(InputError, match=f"a budget was given, and so was {name}, which is a part of one"):
            nodeproof.certify(*papers, Budget(4), **{name: value})

    def test_none_at_all_and_other_things_are_refused(self, papers) -> None:
        for certify in (nodeproof.certify, lambda *parts, **budget: nodeproof.explain(*parts, 9, **budget)):
            with pytest.raises(InputError, match="there is no budget; give global_budget, such as"):
                certify(*papers)
            with pytest.raises(
                InputError, match="must be a nodeproof.Budget, such as Budget\\(12\\), not an int; or give"
            ):
                certify(*papers, budget=5)
        with pytest.raises(InputError, match="method rh trains against a budget; give global_budget"):
            nodeproof.train(papers[0], "rh", train="30%")
        with pytest.raises(InputError, match="max_budget, which is a part of one"):
            nodeproof.radius(*papers, Budget(4), max_budget=3)
        with pytest.raises(InputError, match="there is no budget"):
            nodeproof.certify(*papers, local_budget=3)
        with pytest.raises(InputError, match="not a Budget; give budget="):
            nodeproof.RobustGCN("ce", train="30%", options={"steps": 2}).fit(papers[0]).certify(Budget(3))
        with pytest.raises(InputError, match="a budget comes after the method"):
            nodeproof.train(papers[0], Budget(4))

    def test_signatures_show_defaults_as_they_are(self) -> None:
        for function in (nodeproof.certify, nodeproof.radius, nodeproof.explain, nodeproof.train):
            text = str(inspect.signature(function))
            assert "local_budget: 'int | str' = '1%', add_only: 'bool' = False" in text
        assert "max_budget: 'Count' = 100" in str(inspect.signature(nodeproof.radius))

    def test_a_budget_says_what_is_not_usual(self) -> None:
        assert repr(Budget(12)) == "Budget(12)"
        assert repr(Budget(12, 3, protect_nodes="train")) == "Budget(12, local_budget=3, protect_nodes='train')"
        assert repr(Budget(1, protect_nodes=range(50))) == "Budget(1, protect_nodes=<50>)"
        assert pickle.loads(pickle.dumps(Budget(3, protect_nodes=["a", 2]))) == Budget(3, protect_nodes=["a", 2])

    def test_training_by_ce_needs_none(self, papers) -> None:
        alone = nodeproof.train(papers[0], "ce", train="30%", steps=20)
        with_one = nodeproof.train(papers[0], "ce", Budget(4), train="30%", steps=20)
        assert alone.model == with_one.model
        assert alone.certificates is None and alone.robust_share is None and alone.accuracy_labelled is not None
        assert "budget" not in alone.model.metadata and '"budget"' not in alone.model.metadata["options"]
        assert with_one.robust_share == with_one.certificates.robust_share == with_one.summary["robust_share"]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("x",), "global_budget='x' must be a whole number"),
            ((-3,), "global_budget=-3 must be a whole number"),
            ((2.0,), "global_budget=2.0 must be a whole number"),
            ((2, "x"), "`x` is not a local budget"),
            ((2, -1), "local_budget=-1 must be a whole number"),
            ((2, "1%", 1), "add_only=1 must be True or False"),
            ((2, "1%", True, True), "leave no flips"),
        ],
    )
    def test_what_is_no_budget_is_refused_at_once(self, arguments, words) -> None:
        with pytest.raises(InputError, match=words):
            Budget(*arguments)

    def test_numbers_of_numpy_are_numbers(self) -> None:
        assert repr(Budget(np.int64(5), np.int32(2))) == "Budget(5, local_budget=2)"

    def test_a_largest_budget_is_called_what_it_is(self, papers) -> None:
        with pytest.raises(InputError, match="max_budget=-1 must be a whole number"):
            nodeproof.radius(*papers, max_budget=-1)


class TestSeveralBudgets:
    @pytest.mark.parametrize("options", [{"engine": "fast"}, {}, {"margin": 0.05}, {"proofs": True}])
    def test_one_pass_is_the_runs_alone(self, options, papers) -> None:
        together = nodeproof.certify(*papers, global_budget=[4, 0, 2, 4], local_budget=2, **options)
        assert isinstance(together, CertificatesByBudget) and list(together) == [4, 0, 2]
        for budget, found in together.items():
            assert found == nodeproof.certify(*papers, global_budget=budget, local_budget=2, **options)
            assert found.global_budget == budget and together.robust_share(budget) == found.robust_share
            assert together.summary[budget] == found.summary
        assert pickle.loads(pickle.dumps(together)) == dict(together)

    def test_progress_and_what_makes_no_sense(self, papers) -> None:
        told: list[tuple[int, int]] = []
        nodeproof.certify(*papers, global_budget=range(1, 4), progress=lambda *at: told.append(at))
        assert told[-1] == (72, 72)
        assert list(nodeproof.certify(*papers, global_budget=np.array([1, 2]), nodes=[])) == [1, 2]
        for budgets, words in (
            ([], "is empty"),
            ([1.5], "whole number"),
            ([-1], "whole number"),
            ([10**9], "more than"),
        ):
            with pytest.raises(InputError, match=words):
                nodeproof.certify(*papers, global_budget=budgets)
        several = nodeproof.certify(*papers, global_budget=[1, 2])
        with pytest.raises(InputError, match="global_budget=7 is not among 1, 2"):
            several.robust_share(7)
        with pytest.raises(KeyError, match="^global_budget=7 is not among 1, 2$") as missing:
            several[7]
        assert isinstance(missing.value, nodeproof.MissingBudgetError) and several.get(7) is None and 7 not in several
        with pytest.raises(IndexError, match="no row 99") as missing:
            several[1][99]
        assert isinstance(missing.value, nodeproof.MissingRowError)
        for report in (several, {"a": several}):
            with pytest.raises(InputError, match="one budget of a model; give the certificates of one"):
                nodeproof.report(report)

    def test_tables_have_the_budget_first(self, papers) -> None:
        pytest.importorskip("polars")
        together = nodeproof.certify(*papers, global_budget=[2, 1], local_budget=2)
        table = together.to_pandas()
        assert table.columns[0] == "global_budget" and table["global_budget"].tolist() == [2] * 24 + [1] * 24
        assert together.to_polars().columns == list(table.columns) == together.to_arrow().column_names
        assert "2 flips" in together._repr_html_() and "of 24" in repr(together)


class TestTables:
    def test_rows_are_filtered(self, certificates, papers) -> None:
        graph, _ = papers
        undecided = certificates.filter(verdict="undecided")
        assert undecided.nodes.tolist() == certificates.nodes[certificates.undecided].tolist()
        assert (
            undecided == certificates.filter(certificates.undecided) == certificates.filter(undecided_because="engine")
        )
        assert [*undecided] == [*certificates[certificates.undecided]]
        assert len(certificates.filter(verdict=["robust", "nonrobust"])) == 24 - len(undecided)
        name = graph.class_names[0]
        assert (
            certificates.filter(label=name)
            == certificates.filter(label=0)
            == certificates.filter(labels == 0 for labels in certificates.labels)
        )
        assert certificates.filter(nodes=[9, 3]).nodes.tolist() == [3, 9], "in the order of the rows"
        assert certificates.filter(name="A perceptron revisited", nodes=[9, 3]).nodes.tolist() == [9]
        split = Split.stratified(graph, train="30%")
        assert set(certificates.filter(nodes="train", split=split).nodes) == set(split.train)
        assert len(certificates.filter(verdict="robust", flips=3)) == 0
        assert certificates.filter(flips=None) == certificates.filter(verdict=["robust", "undecided"])
        assert certificates.filter() == certificates
        assert (
            certificates.filter(flips=range(5))
            == certificates.filter(flips=np.arange(5))
            == certificates.filter(flips={4})
        )

    def test_what_is_filtered_can_be_written_and_read(self, certificates, radii, papers, tmp_path) -> None:
        for kind, results in ((Certificates, certificates), (Radii, radii)):
            some = results.filter(nodes=range(7))
            some.write(tmp_path / "some.jsonl")
            assert kind.read(tmp_path / "some.jsonl", papers[0]) == some
        assert radii.filter(radii.robust_up_to < 3).robust_up_to.max() < 3
        assert len(radii.filter(exact=True)) == radii.summary["exact"]

    @pytest.mark.parametrize(
        ("conditions", "words"),
        [
            ({"verdict": "nonrobst"}, "verdict is never 'nonrobst'; it is robust, nonrobust, undecided; did you mean"),
            ({"engine": "complet"}, "did you mean complete"),
            ({"verdct": "robust"}, "no column 'verdct'.*did you mean verdict"),
            ({"label": "neural network"}, "no class called .neural network.; did you mean neural networks"),
            ({"mask": [True]}, "a truth value for each of the 24 rows"),
            ({"mask": list(range(24))}, "a truth value"),
            ({"nodes": "train"}, "give split="),
            ({"node": "A perceptron revisted"}, "did you mean A perceptron revisited"),
            ({"node": 24}, "node 24 does not exist"),
            ({"name": "A perceptron revisted"}, "no node called.*did you mean A perceptron revisited"),
            ({"name": 3}, "name=3 must be a string"),
            ({"label": 9}, "label=9: there is no such class; there are 3, numbered from 0"),
            ({"predicted": 77}, "predicted=77: there is no such class"),
            ({"class_": "77"}, "no class called"),
            ({"verdict": None}, "verdict=None would keep no rows, as each has a verdict"),
            ({"engine": None}, "engine=None would keep no rows"),
            ({"margin": "large"}, "margin='large' must be a number"),
            ({"branches": "many"}, "branches='many' must be a whole number"),
        ],
    )
    def test_what_is_no_condition_is_named(self, conditions, words, certificates) -> None:
        with pytest.raises(InputError, match=words):
            certificates.filter(**conditions)

    def test_names_and_numbers_of_all_kinds_are_conditions(self, certificates, radii) -> None:
        for condition in (
            {"node": "A perceptron revisited"},
            {"node": np.int32(9)},
            {"name": "A perceptron revisited"},
        ):
            assert certificates.filter(**condition).nodes.tolist() == [9] == radii.filter(**condition).nodes.tolist()
        assert certificates.filter(flips=4.0) == certificates.filter(flips=4)
        assert certificates.filter(flips=-1) == certificates.filter(flips=None)
        assert len(certificates.filter(witness_margin=None)) == 24 - certificates.nonrobust.sum()
        with pytest.raises(InputError, match="exact='yes' must be True or False"):
            radii.filter(exact="yes")

    def test_results_are_put_together(self, certificates, radii, papers, tmp_path) -> None:
        for kind, results in ((Certificates, certificates), (Radii, radii)):
            parts = [results.filter(nodes=range(7)), results.filter(nodes=range(7, 24))]
            assert kind.concat(parts) == results and kind.concat(iter(parts[::-1])).nodes.tolist()[:2] == [7, 8]
            assert kind.concat(parts).of(9).name == results.of(9).name
            kind.concat(parts).write(tmp_path / "all.jsonl")
            assert kind.read(tmp_path / "all.jsonl", papers[0]) == results
            with pytest.raises(InputError, match="node 0 is in two of the results"):
                kind.concat([results, parts[0]])
            with pytest.raises(InputError, match="nothing to put together"):
                kind.concat([])
            with pytest.raises(InputError, match=f"must be a nodeproof.{kind.__name__}"):
                kind.concat([results, 3])
        other = nodeproof.certify(*papers, global_budget=3, local_budget=2, engine="fast", nodes=[])
        with pytest.raises(InputError, match="results 2 are of another graph, model or budget than the first"):
            Certificates.concat([certificates, other])

    def test_polars_has_the_table_of_arrow(self, certificates, radii, papers) -> None:
        pytest.importorskip("polars")
        unnamed = nodeproof.certify(Graph(papers[0].adjacency, papers[0].attributes), papers[1], global_budget=1)
        for results in (certificates, radii, unnamed, certificates.filter(nodes=[]), radii.filter(nodes=[])):
            assert results.to_polars().to_dicts() == results.to_arrow().to_pylist()
            assert results.to_polars().columns == list(results.to_pandas().columns)
        training = nodeproof.train(papers[0], "rh", Budget(4), train="30%", steps=3)
        assert training.to_polars().to_dicts() == training.to_arrow().to_pylist()
        assert training.to_polars().columns == list(training.to_pandas().columns)

    def test_summaries_and_shares(self, certificates, radii, papers, program, tmp_path) -> None:
        import json

        assert certificates.robust_share == certificates.summary["robust_share"] == certificates.robust.mean()
        assert radii.mean == radii.summary["mean"] == radii.robust_up_to.clip(0).mean()
        assert radii.summary["median"] == np.median(radii.robust_up_to.clip(0))
        assert radii.robust_share(4) >= certificates.robust_share
        radii.write(tmp_path / "radii.jsonl")
        from conftest import PAPERS

        said = json.loads(
            program(
                "radius", "--graph", PAPERS / "graph.npz", "--model", PAPERS / "model.safetensors", "--local-budget", 2,
                "--max-budget", 30, "--out", tmp_path / "theirs.jsonl", "--json",
            )
        )  # fmt: skip
        theirs = said["all"] if "all" in said else said
        assert {name: theirs[name] for name in radii.summary} == radii.summary
        nothing = radii.filter(nodes=[])
        assert nothing.summary == {"nodes": 0, "exact": 0, "mean": None, "median": None, "largest": None}
        assert np.isnan(nothing.mean) and np.isnan(certificates.filter(nodes=[]).robust_share)
        scan = nodeproof.radius(*papers, engine="fast", scan=True)
        assert scan.summary["exact"] is None and repr(scan)


class TestSplits:
    def test_parts_are_nodes_wherever_nodes_are_asked_for(self, papers) -> None:
        graph, model = papers
        split = Split.stratified(graph, train="30%")
        expected = nodeproof.certify(graph, model, global_budget=4, protect_nodes=split.train, nodes=split.test)
        found = nodeproof.certify(graph, model, global_budget=4, protect_nodes="train", nodes="test", split=split)
        assert (
            found
            == expected
            == nodeproof.certify(graph, model, Budget(4, protect_nodes="train"), nodes="test", split=split)
        )
        assert not {flip.node for one in found if one.witness for flip in one.witness} & set(split.train)
        radii = nodeproof.radius(graph, model, protect_nodes="train", max_budget=5, split=split)
        assert radii == nodeproof.radius(graph, model, protect_nodes=split.train, max_budget=5)
        explanation = nodeproof.explain(graph, model, 9, Budget(4, protect_nodes="train"), split=split)
        assert "nodes protected" in explanation.budget or "protected" in explanation.budget
        assert model.accuracy(graph, "test", split=split) == model.accuracy(graph, split.test)
        trained = nodeproof.train(graph, "rh", Budget(4, protect_nodes="train"), train="30%", steps=3)
        same = nodeproof.train(graph, "rh", Budget(4, protect_nodes=trained.split.train), train="30%", steps=3)
        assert trained.model == same.model and trained.certificates == same.certificates
        assert Budget(4, protect_nodes="train").in_words(graph, split) == Budget(4, protect_nodes=split.train).in_words(
            graph
        )
        for ask in (
            lambda: nodeproof.certify(graph, model, global_budget=4, protect_nodes="train"),
            lambda: Budget(4, protect_nodes="train").in_words(graph),
        ):
            with pytest.raises(InputError, match="protect_nodes='train' is a part of a split; give split="):
                ask()

    def test_names_are_nodes_too(self, papers) -> None:
        graph, model = papers
        by_name = nodeproof.certify(graph, model, global_budget=4, protect_nodes=["A perceptron revisited", 3])
        assert by_name == nodeproof.certify(graph, model, global_budget=4, protect_nodes=[9, 3])
        by_name = nodeproof.certify(graph, model, global_budget=4, local_budget_at={"A perceptron revisited": 3})
        assert by_name == nodeproof.certify(graph, model, global_budget=4, local_budget_at={9: 3})


class TestWithoutTheGraph:
    def test_results_fall_back_to_ids(self, certificates, radii, papers, tmp_path) -> None:
        for results in (certificates, radii):
            results.write(tmp_path / "results.jsonl")
            alone = type(results).read(tmp_path / "results.jsonl")
            assert alone == results and (alone.nodes == results.nodes).all() and repr(alone) == repr(results)
            assert alone.of(9).name == "node 9" and alone.place(9) == results.place(9)
            assert 9 in alone and 99 not in alone and "A perceptron revisited" not in alone
            assert alone.witness(9) == results.witness(9)
            assert "name" not in alone.to_pandas() and "name" not in alone.to_arrow().column_names
            assert pickle.loads(pickle.dumps(alone)) == results
            assert alone.plot().svg == results.plot().svg and alone._repr_html_() == results._repr_html_()
            assert alone.summary == results.summary
            kind = type(results).__name__
            for ask in (
                lambda alone=alone: alone.graph,
                lambda alone=alone: alone.of("A perceptron revisited"),
                lambda alone=alone: alone.check(papers[1]),
                lambda alone=alone: alone.filter(nodes=[3]),
                lambda alone=alone: nodeproof.report(alone),
            ):
                with pytest.raises(InputError, match=f"read without their graph; give it, too: {kind}.read"):
                    ask()
            with pytest.raises(InputError, match="must be a nodeproof.Graph"):
                type(results).read(tmp_path / "results.jsonl", "graph.npz")


class TestFigures:
    def test_figures_are_those_of_the_command_line(self, radii, papers, program, tmp_path) -> None:
        from conftest import PAPERS

        radii.write(tmp_path / "radii.jsonl")
        other = nodeproof.radius(*papers, local_budget=1, max_budget=30)
        other.write(tmp_path / "other.jsonl")
        path = tmp_path / "theirs.svg"
        graph = ("--graph", PAPERS / "graph.npz")
        program("plot", "certificates", tmp_path / "radii.jsonl", "--out", path)
        assert radii.plot().svg == path.read_text()
        program(
            "plot", "certificates", f"a={tmp_path / 'radii.jsonl'}", "--against", f"b={tmp_path / 'other.jsonl'}", "--title",
            "Papers", "--width", 100, "--out", path,
        )  # fmt: skip
        assert radii.plot(against=other, names=("a", "b"), title="Papers", width=100).svg == path.read_text()
        for what in ("degree", "purity"):
            program("plot", what, tmp_path / "radii.jsonl", *graph, "--out", path)
            assert radii.plot(what).svg == path.read_text()
        program(
            "train", *graph, "--method", "rh", "--global-budget", 4, "--train", "30%", "--steps", 9, "--out",
            tmp_path / "rh.safetensors", "--log", tmp_path / "log.jsonl", "--log-margins", 3,
        )  # fmt: skip
        program("plot", "dynamics", f"rh={tmp_path / 'log.jsonl'}", "--out", path)
        training = nodeproof.train(papers[0], "rh", global_budget=4, train="30%", steps=9, log_margins=3)
        assert training.plot().svg == path.read_text()

    def test_they_can_be_kept(self, certificates, tmp_path) -> None:
        figure = certificates.plot(title="Papers & more")
        assert figure._repr_svg_() == figure.svg and "kB of SVG" in repr(figure)
        figure.save(tmp_path / "figure.svg")
        assert ElementTree.parse(tmp_path / "figure.svg").getroot().tag.endswith("svg")
        figure.save(tmp_path / "figure.png", dpi=100)
        assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"
        for name, words in (("figure.pdf", "neither in .svg nor in .png"), ("figure", "neither")):
            with pytest.raises(InputError, match=words):
                figure.save(tmp_path / name)

    def test_certificates_show_what_follows_from_them(self, papers, radii) -> None:
        together = nodeproof.certify(*papers, global_budget=range(31), local_budget=2)
        assert together.plot().svg == radii.plot().svg, "all budgets are what radii say"
        assert "undecided" in together[5].plot().svg

    def test_what_cannot_be_drawn_is_named(self, certificates, radii, papers) -> None:
        ce = nodeproof.train(papers[0], "ce", train="30%", steps=3)
        for draw, words in (
            (lambda: ce.plot(), "no margins; train with a budget and log_margins=40"),
            (lambda: radii.plot("degre"), "did you mean degree"),
            (lambda: radii.plot("degree", against=radii), "for certificates"),
            (lambda: radii.plot(names=("a", "b")), "give against="),
            (lambda: radii.plot(against=certificates), "against must be a nodeproof.Radii"),
            (lambda: radii.plot(against=radii.filter(nodes=range(5))), "radii of other nodes than these"),
            (lambda: radii.plot(title=3), "title=3 must be a string"),
            (lambda: certificates.plot(title=3), "title=3 must be a string"),
            (lambda: certificates.plot(width="wide"), "width='wide' must be a number"),
            (
                lambda: nodeproof.certify(*papers, global_budget=[1, 2]).plot(height=None),
                "height=None must be a number",
            ),
            (lambda: ce.plot(title=3), "title=3 must be a string"),
            (lambda: radii.plot(width=1), "width and height must be from 30 to 1000 mm"),
            (lambda: radii.filter(nodes=[]).plot(), "no nodes to show"),
            (lambda: certificates.filter(nodes=[]).plot(), "no nodes to show"),
            (lambda: radii.filter(nodes=[3]).plot("purity"), "find the radii of all nodes"),
            (lambda: nodeproof.radius(*papers, engine="fast", scan=True).plot("purity"), "without scan=True"),
            (lambda: nodeproof.radius(*papers, target_class="label").plot("purity"), "target_class"),
            (lambda: nodeproof.train(papers[0], "ce", train="30%", steps=3, log_margins=2), "margins under a budget"),
        ):
            with pytest.raises(InputError, match=words):
                draw()
        logged = nodeproof.train(papers[0], "ce", Budget(4), train="30%", steps=3, log_margins=5)
        assert logged.plot().svg.startswith("<svg") and all(step["labelled_margin"] is not None for step in logged.log)


class TestNames:
    @pytest.mark.parametrize(
        ("ask", "meant"),
        [
            (lambda graph, model: nodeproof.certify(graph, model, global_budget=1, engine="complte"), "complete"),
            (lambda graph, model: nodeproof.certify(graph, model, global_budget=1, target_class="labels"), "label"),
            (lambda graph, model: nodeproof.certify(graph, model, global_budget=1, arithmetic="fp32"), "f32"),
            (lambda graph, model: nodeproof.certify(graph, model, global_budget=1, nodes="unlabeled"), "unlabelled"),
            (
                lambda graph, model: nodeproof.certify(graph, model, global_budget=1, nodes=["A perceptron revisted"]),
                "A perceptron revisited",
            ),
            (
                lambda graph, model: nodeproof.certify(graph, model, global_budget=1, protect_attributes=["bayesan"]),
                "bayesian",
            ),
            (lambda graph, model: nodeproof.train(graph, "RHU", global_budget=1), "rh-u"),
            (lambda graph, model: nodeproof.train(graph, "ce", architecture="gcnn"), "gcn"),
            (lambda graph, model: nodeproof.train(graph, "ce", propagation="row_means"), "row-mean"),
            (lambda graph, model: nodeproof.Model([np.eye(2)], None, "symetric-gcn"), "symmetric-gcn"),
            (lambda graph, model: graph.class_("neural network"), "neural networks"),
            (lambda graph, model: Split.stratified(graph).part("validaton"), "validation"),
            (lambda graph, model: nodeproof.RobustGCN().set_params(global_bugdet=3), "global_budget"),
            (lambda graph, model: nodeproof.RobustGCN(options={"learning_rat": 3}).fit(graph), "learning_rate"),
        ],
    )
    def test_what_was_probably_meant(self, ask, meant, papers) -> None:
        with pytest.raises(InputError, match=f"; did you mean {meant}\\?$"):
            ask(*papers)

    def test_names_that_are_far_off_are_not_guessed(self, papers) -> None:
        with pytest.raises(InputError) as error:
            papers[0].node("something else altogether")
        assert "did you mean" not in str(error.value)
        with pytest.raises(InputError, match="the graph has no names of classes"):
            Graph(np.eye(2), np.eye(2), keep_self_loops=True).class_("a")


class TestIds:
    @pytest.mark.parametrize(
        ("ask", "words"),
        [
            (lambda graph: graph.node_name("horn"), r"'horn' is a name, not an id; graph.node\('horn'\)"),
            (lambda graph: graph.node_name(1.0), "1.0 is not a node; give an id"),
            (lambda graph: graph.node_name(24), "node 24 does not exist: the graph has 24 nodes"),
            (lambda graph: graph.node_name(-1), "node -1 does not exist"),
            (lambda graph: graph.attribute_name(99999), "attribute 99999 does not exist"),
            (lambda graph: graph.attribute_name("bayesian"), "'bayesian' is a name"),
            (lambda graph: graph.class_name("x"), r"'x' is a name, not an id; graph.class_\('x'\)"),
            (lambda graph: graph.class_name(77), "class 77 does not exist: there are 3"),
            (lambda graph: graph.class_(-1), "class -1 does not exist"),
            (lambda graph: nodeproof.Flip(0, 0, 1).in_words(3), "graph must be a nodeproof.Graph"),
            (lambda graph: nodeproof.Flip(0, 0, 1).in_words(graph, 24), "node 24 does not exist"),
            (lambda graph: nodeproof.RobustGCN(options=3).fit(graph), "options=3 must be a mapping"),
        ],
    )
    def test_what_is_none_is_named(self, ask, words, papers) -> None:
        with pytest.raises(InputError, match=words):
            ask(papers[0])

    def test_a_witness_knows_its_graph(self, certificates, papers) -> None:
        witness = certificates.of(9).witness
        with pytest.raises(InputError, match="target must be a node, not a Graph"):
            witness.in_words(papers[0])
        assert witness.in_words(9) == witness.in_words("A perceptron revisited") != []

    def test_models_may_have_more_classes_than_labels_name(self) -> None:
        assert Graph(np.zeros((2, 2)), np.eye(2), [0, 1]).class_name(5) == "class 5"


def test_names_of_files_say_what_is_in_them(papers, certificates, tmp_path) -> None:
    graph, model = papers
    split = Split.stratified(graph, train="30%")
    page = nodeproof.report(certificates)
    for result, name, words in (
        (model, "m.npz", r"m.npz ends in .npz, but models are written as .safetensors; give it such a name$"),
        (certificates, "c.csv", r"written as .jsonl; give it such a name; to_pandas\(\).to_csv"),
        (certificates, "c.jsonl.xz", "ends in .xz"),
        (certificates, "c.csv.gz", "c.csv ends in .csv"),
        (graph, "g.csv", "graphs are written as .npz"),
        (split, "s.npz", "splits are written as .json"),
        (page, "r.pdf", "reports are written as .html"),
    ):
        with pytest.raises(InputError, match=words):
            result.write(tmp_path / name)
        with pytest.raises(nodeproof.FileError, match="there is no directory .*missing; make it first"):
            result.write(tmp_path / "missing" / "file")
        result.write(tmp_path / "v1.2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v1.2"]


def test_progress_is_one_of_a_few_things(papers) -> None:
    for progress in ("yes", 1, 0):
        with pytest.raises(InputError, match=f"progress={progress!r} must be None, True or False, or a function"):
            nodeproof.certify(*papers, global_budget=1, progress=progress)


def test_progress_ends_where_the_work_does(papers, bundled) -> None:
    for work in (
        lambda observe: nodeproof.certify(*papers, global_budget=2, progress=observe),
        lambda observe: nodeproof.radius(*papers, max_budget=20, progress=observe),
        lambda observe: nodeproof.radius(*papers, max_budget=20, engine="fast", scan=True, progress=observe),
        lambda observe: nodeproof.train(bundled, "ce", steps=300, patience=2, evaluate=False, progress=observe),
        lambda observe: nodeproof.certify(*papers, global_budget=2).check(papers[1], progress=observe),
    ):
        told: list[tuple[int, int]] = []
        work(lambda done, total, told=told: told.append((done, total)))
        assert told and told[-1][0] == told[-1][1] > 0
        assert len(told) == 1 or told[-1] != told[-2]


def test_everything_public_looks_like_something(papers, certificates, radii) -> None:
    graph, model = papers
    shown = {
        "Certificate(A perceptron revisited (node 9): nonrobust under 4 flips, margin=": certificates.of(9),
        "Radius(A perceptron revisited (node 9): robust up to ": radii.of(9),
        "Explanation(Certificate(": nodeproof.explain(graph, model, 9, Budget(4)),
        "Layer(terms=[Term(source='attributes', propagation=0, weight=<": model.layers[0],
        "Graph(nodes=24": graph,
    }
    for text, value in shown.items():
        assert repr(value).startswith(text) and len(repr(value)) < 400
    assert "Radius(node 0: not robust, nonrobust from 0, exact=True)" == repr(
        nodeproof.Radius(0, "node 0", None, None, 0, True, None)
    )
    verification = nodeproof.Verification(1.23e-7, 2e-7, 1e-4, None, 10, tuple(range(50)))
    text = "Verification(largest_difference=1.2e-07, tolerance=1.0e-04, inputs=10, disagreements=<50 nodes>)"
    assert repr(verification) == text
    html = graph._repr_html_()
    assert "24" in html and graph.class_names[0] in html and "<script" not in html
    assert "no label" in Graph(np.zeros((3, 3)), np.eye(3), [0, 1, -1])._repr_html_()
    assert "real values" in Graph(np.zeros((3, 3)), np.eye(3) / 3, real_values=True)._repr_html_()


def test_what_has_one_way_edges_says_so(papers) -> None:
    graph = Graph([[0, 1], [0, 0]], np.eye(2), directed=True)
    assert graph.directed and repr(graph) == "Graph(nodes=2, edges=1, attributes=2, directed=True)"
    assert not papers[0].directed and "directed" not in repr(papers[0])


def test_notebooks_show_models_and_certificates(papers, certificates) -> None:
    assert "symmetric-gcn" in papers[1]._repr_html_()
    assert "A perceptron revisited" in certificates.of(9)._repr_html_()


def test_attributes_have_docstrings() -> None:
    for owner, name in ((Graph, "cleaning"), (nodeproof.Model, "metadata"), (nodeproof.Model, "verification")):
        assert inspect.getdoc(getattr(owner, name)).startswith(("What", "How"))
    assert not any(line.startswith(" ") for line in nodeproof.__doc__.splitlines())


def test_errors_are_all_in_one_place() -> None:
    for name in nodeproof.errors.__all__:
        kind = getattr(nodeproof.errors, name)
        assert issubclass(kind, nodeproof.NodeproofError) and getattr(nodeproof, name) is kind


def test_only_what_is_public_is_listed() -> None:
    assert dir(nodeproof) == sorted(nodeproof.__all__)
    for module in (nodeproof.distributed, nodeproof.planetoid, nodeproof.errors):
        assert dir(module) == sorted(module.__all__)
    for name in nodeproof.__all__:
        assert getattr(nodeproof, name) is not None


def test_probabilities_are_those_of_the_logits(papers) -> None:
    graph, model = papers
    shares = model.predict_proba(graph)
    logits = model.logits(graph)
    assert np.allclose(shares.sum(axis=1), 1) and (shares.argmax(axis=1) == model.predict(graph)).all()
    assert np.allclose(np.log(shares[:, :1] / shares), logits[:, :1] - logits)
    huge = nodeproof.Model([1e5 * model.weights[0], model.weights[1]], model.biases)
    assert np.isfinite(huge.predict_proba(graph)).all()
