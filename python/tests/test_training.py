"""Training, splits and the estimator."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import PAPERS, ROOT

import nodeproof
from nodeproof import RobustGCN, Split


@pytest.mark.parametrize("method", ["ce", "rh-u"])
def test_the_file_is_that_of_the_command_line(method: str, papers, program, tmp_path) -> None:
    theirs, ours = tmp_path / "theirs.safetensors", tmp_path / "ours.safetensors"
    program(
        "train", "--graph", PAPERS / "graph.npz", "--method", method, "--global-budget", 4, "--local-budget", 2, "--train",
        "30%", "--steps", 30, "--out", theirs, "--seed", 3,
    )  # fmt: skip
    training = nodeproof.train(papers[0], method, global_budget=4, local_budget=2, train="30%", steps=30, seed=3)
    training.model.write(ours)
    assert ours.read_bytes() == theirs.read_bytes()
    assert nodeproof.Model.read(theirs) == training.model


@pytest.mark.parametrize("architecture", ["gcn", "sage", "gin", "sgc", "appnp", "gcnii", "mlp"])
def test_every_architecture_is_that_of_the_command_line(architecture: str, papers, program, tmp_path) -> None:
    theirs, ours = tmp_path / "theirs.safetensors", tmp_path / "ours.safetensors"
    program(
        "train", "--graph", PAPERS / "graph.npz", "--method", "rh", "--architecture", architecture, "--global-budget", 4,
        "--train", "30%", "--steps", 5, "--out", theirs,
    )  # fmt: skip
    training = nodeproof.train(papers[0], "rh", global_budget=4, train="30%", steps=5, architecture=architecture)
    training.model.write(ours)
    assert ours.read_bytes() == theirs.read_bytes()
    assert training.model.metadata["architecture"] == architecture


def test_the_log_has_a_row_a_step(papers) -> None:
    training = nodeproof.train(papers[0], "rh", global_budget=4, train=0.3, steps=7, hidden=[8, 4], batch=None)
    table = training.to_pandas()
    assert table["step"].tolist() == list(range(1, 8)) and "times" not in table and np.isfinite(table["loss"]).all()
    assert [len(bias) for bias in training.model.biases] == [8, 4, 3]
    assert training.certificates is not None and training.robust_share == training.certificates.robust.mean()
    assert "Trained by rh" in training._repr_html_()
    assert nodeproof.train(papers[0], "ce", global_budget=4, train=0.3, steps=3, evaluate=False).robust_share is None


def test_a_run_goes_on_from_its_checkpoint(bundled, tmp_path) -> None:
    options = {"global_budget": 5, "steps": 40, "evaluate": False, "threads": 1}
    path = tmp_path / "checkpoint"

    class Enough(Exception):
        pass

    def observe(done: int, total: int) -> None:
        if done > 3:
            raise Enough

    with pytest.raises(Enough):
        nodeproof.train(bundled, "rh", checkpoint=path, checkpoint_every=1, progress=observe, **options)
    resumed = nodeproof.train(bundled, "rh", checkpoint=path, resume=True, **options)
    assert 0 < len(resumed.log) < 40 and resumed.steps == 40, "it did not begin anew"
    assert resumed.model == nodeproof.train(bundled, "rh", **options).model
    with pytest.raises(ValueError, match="run"):
        nodeproof.train(bundled, "rh", checkpoint=path, resume=True, **(options | {"seed": 9}))


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        (
            "ce",
            {"robust_weight": 1.0},
            "^robust_weight: method ce has no use for it; leave it out, or choose rce, rh or rh-u$",
        ),
        ("rh", {"saturation": 1.0}, "choose rh-u"),
        ("magic", {}, "method is magic; choose ce, rce, rh or rh-u"),
        ("ce", {"architecture": "gat"}, "architecture is gat; choose gcn, sage, gin, sgc, appnp, gcnii or mlp"),
        (
            "ce",
            {"architecture": "mlp", "propagation": "row-normalised"},
            "^propagation: architecture mlp has none to choose",
        ),
        ("ce", {"architecture": "sgc", "hidden": 32}, "hidden is 32; sgc has no hidden layer"),
        ("ce", {"steps": 0}, "steps is 0"),
        ("ce", {"dropout": 1.5}, "dropout is 1.5"),
        ("ce", {"schedule": "steps"}, "schedule is steps; choose constant or cosine"),
        ("rh", {"worst_case": "exact"}, "worst_case is exact; choose dual or first-order"),
        ("ce", {"train": "110%"}, "no share"),
        ("ce", {"train": "half"}, "no share"),
        ("ce", {"train": True}, "train=True is no share"),
        ("ce", {"train_per_class": 100}, "labelled nodes"),
        ("ce", {"hidden": [0]}, "hidden layer"),
        ("ce", {"hidden": "32"}, "hidden=.32. must be a list of sizes"),
        ("ce", {"hidden": [1.5]}, "hidden=1.5 must be a whole number"),
        ("ce", {"steps": -1}, "steps=-1 must be a whole number"),
        ("ce", {"seed": -1}, "seed=-1 must be a whole number"),
        ("ce", {"learning_rate": "fast"}, "learning_rate='fast' must be a number"),
        ("ce", {"learning_rate": None}, "learning_rate=None must be a number"),
        ("ce", {"learning_rate": float("nan")}, "learning_rate is NaN"),
        ("ce", {"split": "train"}, "split must be a nodeproof.Split"),
        ("ce", {"train_per_class": -1}, "train_per_class=-1 must be a whole number"),
        ("ce", {"train": None}, "no share"),
        ("ce", {"checkpoint_every": 0}, "checkpoint_every=0 must be a whole number of at least 1"),
        (None, {}, "method is None; "),
        ("ce", {"hidden": [2**40]}, "GB of memory"),
        ("ce", {"resume": True}, "needs a checkpoint"),
        ("ce", {"evaluate": "no"}, "evaluate='no' must be True or False"),
        ("ce", {"split": Split(24, [0])}, "no node in the train part"),
        (
            "ce",
            {"split": Split(24, [0, 5]), "train": "10%"},
            "a split was given, and so was train, which is for drawing",
        ),
        ("ce", {"split": Split(24, [0, 5]), "split_seed": 1}, "a split was given, and so was split_seed"),
        ("ce", {"split": Split(23, [0, 5])}, "the split is one of 23 nodes, but the graph has 24"),
        (
            "ce",
            {"train": "20%", "train_per_class": 3},
            "train is a share, and train_per_class a number.*give one of them",
        ),
        ("CE", {}, "method is CE; .*did you mean ce"),
        ("ce", {"architecture": "GCN"}, "architecture is GCN; .*did you mean gcn"),
    ],
)
def test_what_is_wrong_is_named(method, options, words, papers) -> None:
    drawn = {} if "split" in options or "train_per_class" in options else {"train": "30%"}
    with pytest.raises(nodeproof.InputError, match=words):
        nodeproof.train(papers[0], method, **({"global_budget": 4} | drawn | options))


def test_labels_may_leave_out_a_class(papers) -> None:
    """Labels from 1 to K: class 0 has no node, and nothing is wrong with that."""
    graph = nodeproof.Graph(papers[0].adjacency, papers[0].attributes, papers[0].labels + 1)
    training = nodeproof.train(graph, "ce", global_budget=4, train="30%", steps=200)
    assert training.model.classes == 4 and training.accuracy_labelled == 1
    assert not (training.model.predict(graph) == 0).any()


def test_no_labels_are_an_error(papers) -> None:
    with pytest.raises(nodeproof.InputError, match="no labels"):
        nodeproof.train(nodeproof.Graph(papers[0].adjacency, papers[0].attributes), "ce", global_budget=4)


class TestSplit:
    def test_files_pickles_and_the_command_line(self, papers, program, tmp_path) -> None:
        split = Split.stratified(papers[0], train="25%", validation="25%", seed=4)
        split.write(tmp_path / "ours.json")
        program(
            "data", "split", "--graph", PAPERS / "graph.npz", "--train", "25%", "--validation", "25%", "--seed", 4, "--out",
            tmp_path / "theirs.json",
        )  # fmt: skip
        assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "theirs.json").read_bytes()
        assert Split.read(tmp_path / "theirs.json", papers[0]) == split == pickle.loads(pickle.dumps(split))

    def test_every_node_is_in_one_part(self, papers) -> None:
        split = Split.stratified(papers[0], train_per_class=2, validation_per_class=1)
        parts = np.concatenate([split.train, split.validation, split.test])
        assert sorted(parts) == list(range(24)) and len(split.train) == 6 and len(split.validation) == 3
        assert Split(24, np.arange(24) < 6).train.tolist() == list(range(6))
        with pytest.raises(ValueError, match="given twice"):
            Split(24, [1], [1])
        with pytest.raises(ValueError, match="not a part"):
            split.part("all")


class TestRobustGCN:
    def test_fit_predict_certify(self, papers) -> None:
        graph, _ = papers
        network = RobustGCN("rh-u", global_budget=4, local_budget=2, train="30%", options={"steps": 50})
        assert network.fit(graph) is network
        alone = nodeproof.train(graph, "rh-u", global_budget=4, local_budget=2, train="30%", steps=50)
        assert network.model_ == alone.model
        assert (network.predict() == alone.model.predict(graph)).all()
        assert np.array_equal(network.decision_function(graph), alone.model.logits(graph))
        assert network.score() == alone.accuracy_unlabelled
        assert network.certify() == nodeproof.certify(graph, alone.model, global_budget=4, local_budget=2)
        assert network.certify(global_budget=2, nodes=[3]).nodes.tolist() == [3]
        assert network.radius(max_budget=5).max_budget == 5
        assert network.explain(3).certificate.node == 3

    def test_labels_may_be_given(self, papers) -> None:
        graph, _ = papers
        y = np.where(np.arange(24) % 2, graph.labels, -1)
        network = RobustGCN("ce", global_budget=4, options={"steps": 20}).fit(graph, y)
        assert network.split_.train.tolist() == list(range(1, 24, 2))
        assert 0 <= network.score(graph) <= 1 and network.score(y=graph.labels) >= 0
        with pytest.raises(ValueError, match="give one of them"):
            network.fit(graph, y, split=network.split_)

    def test_parameters(self, papers) -> None:
        network = RobustGCN(global_budget=3)
        again = RobustGCN(**network.get_params())
        assert again.get_params() == network.get_params() and repr(again) == "RobustGCN(global_budget=3)"
        assert network.set_params(seed=7).seed == 7
        with pytest.raises(ValueError, match="no parameter"):
            network.set_params(depth=3)
        with pytest.raises(nodeproof.NodeproofError, match="fit first"):
            network.predict()

    def test_scikit_learn_can_clone_it(self) -> None:
        base = pytest.importorskip("sklearn.base")
        cloned = base.clone(RobustGCN("ce", global_budget=3, hidden=(8,)))
        assert cloned.get_params()["hidden"] == (8,)

    def test_the_search_of_the_documentation_runs(self) -> None:
        pytest.importorskip("sklearn.model_selection")
        text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").partition("`GridSearchCV`")[2]
        names = {"nodeproof": nodeproof}
        exec(text.partition("```python")[2].partition("```")[0], names)
        assert len(names["found"]) == 4
        assert all(0 < accuracy <= 1 and 0 < share <= 1 for accuracy, share in names["found"].values())

    def test_its_budget_may_be_an_object(self, papers) -> None:
        graph, _ = papers
        options = {"train": "30%", "options": {"steps": 20}}
        budget = nodeproof.Budget(4, local_budget=2, protect_nodes="train")
        network = RobustGCN("rh", budget=budget, **options).fit(graph)
        assert (
            network.model_
            == RobustGCN("rh", global_budget=4, local_budget=2, protect_nodes="train", **options).fit(graph).model_
        )
        whole = nodeproof.certify(graph, network.model_, budget, split=network.split_)
        assert network.certify() == whole and network.certify(graph) == whole
        assert network.certify(budget=nodeproof.Budget(2)) == nodeproof.certify(graph, network.model_, global_budget=2)
        smaller = nodeproof.certify(
            graph, network.model_, global_budget=2, local_budget=2, protect_nodes=network.split_.train
        )
        assert network.certify(global_budget=2) == smaller
        assert network.certify(global_budget=[1, 2])[2] == smaller
        assert network.radius(max_budget=3).max_budget == 3
        with pytest.raises(ValueError, match="RobustGCN has a budget, and global_budget, which is a part of one"):
            RobustGCN("rh", budget=budget, global_budget=3).fit(graph)
        with pytest.raises(ValueError, match="RobustGCN has a budget, and protect_nodes"):
            RobustGCN("rh", budget=budget, protect_nodes=np.zeros(24, bool)).fit(graph)
        with pytest.raises(ValueError, match="budget must be a nodeproof.Budget"):
            RobustGCN("rh", budget=3).fit(graph)

    def test_nodes_are_parts_of_its_own_split(self, papers) -> None:
        graph, _ = papers
        network = RobustGCN("ce", global_budget=2, train="30%", options={"steps": 20}).fit(graph)
        split = network.split_
        assert network.certify(nodes="test").nodes.tolist() == split.test.tolist()
        assert network.radius(nodes="train", max_budget=2).nodes.tolist() == split.train.tolist()
        assert network.score() == network.score(nodes="unlabelled") == network.model_.accuracy(graph, split.unlabelled)
        assert network.score(nodes="train") == network.model_.accuracy(graph, split.train)
        other = graph.with_flips([(0, 0)])
        with pytest.raises(ValueError, match="give split="):
            network.certify(other, nodes="test")
        assert len(network.certify(other, nodes="test", split=split)) == len(split.test)
        shares = network.predict_proba()
        assert (shares.argmax(axis=1) == network.predict()).all() and np.allclose(shares.sum(axis=1), 1)

    def test_pickles(self, papers) -> None:
        graph, _ = papers
        network = RobustGCN("ce", global_budget=2, train="30%", options={"steps": 20}).fit(graph)
        again = pickle.loads(pickle.dumps(network))
        assert again.get_params() == network.get_params() and repr(again) == repr(network)
        assert (again.predict() == network.predict()).all() and again.certify() == network.certify()
        assert pickle.loads(pickle.dumps(RobustGCN(seed=3))).seed == 3


class TestScikitLearn:
    """Its own checks, as far as they do not ask for an estimator of rows of a matrix, which a network on a graph is not."""

    CHECKS = (
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_no_attributes_set_in_init",
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_estimators_unfitted",
    )

    @pytest.mark.parametrize("name", CHECKS)
    def test_its_check_passes(self, name: str) -> None:
        checks = pytest.importorskip("sklearn.utils.estimator_checks")
        if not hasattr(checks, name):
            pytest.skip("this version of scikit-learn has no such check")
        getattr(checks, name)("RobustGCN", RobustGCN())

    def test_it_is_a_classifier_that_is_fitted_or_not(self, papers) -> None:
        base, validation = pytest.importorskip("sklearn.base"), pytest.importorskip("sklearn.utils.validation")
        exceptions = pytest.importorskip("sklearn.exceptions")
        network = RobustGCN("ce", global_budget=2, train="30%", options={"steps": 5})
        assert base.is_classifier(network)
        with pytest.raises(exceptions.NotFittedError):
            validation.check_is_fitted(network)
        with pytest.raises(exceptions.NotFittedError) as error:
            network.predict()
        assert isinstance(error.value, nodeproof.NotFittedError)
        before = {name: repr(value) for name, value in network.get_params().items()}
        validation.check_is_fitted(network.fit(papers[0]))
        assert {name: repr(value) for name, value in network.get_params().items()} == before
        assert not hasattr(base.clone(network), "model_")
        assert network.n_features_in_ == papers[0].attribute_count

    def test_without_it_the_error_is_our_own(self) -> None:
        program = """
import nodeproof
try:
    nodeproof.RobustGCN().predict()
except nodeproof.NotFittedError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert "not trained yet; call fit first" in done.stdout
