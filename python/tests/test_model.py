"""Models from arrays, state dicts and files; what they compute."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sparse
from conftest import sent, tiny

import nodeproof
from nodeproof import Graph, Layer, Model, Term


def by_hand(p, x, weights, biases):
    """The formula, dense."""
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = p @ (x if i == 0 else np.maximum(x, 0)) @ weight + bias
    return x


def symmetric(adjacency):
    looped = adjacency + np.eye(len(adjacency))
    root = 1 / np.sqrt(looped.sum(1))
    return root[:, None] * looped * root


@pytest.mark.parametrize("seed", range(5))
def test_logits_are_those_of_the_formula(seed: int) -> None:
    adjacency, x, weights, biases = tiny(seed, nodes=9, attributes=6)
    graph = Graph(adjacency, x)
    row = adjacency + np.eye(9)
    custom = np.random.default_rng(seed).random((9, 9)) * (adjacency > 0)
    for propagation, p in (
        ("symmetric-gcn", symmetric(adjacency)),
        ("row-normalised", row / row.sum(1, keepdims=True)),
        (custom, custom),
        (sparse.coo_matrix(custom), custom),
    ):
        model = Model(weights, biases, propagation)
        np.testing.assert_allclose(model.logits(graph), by_hand(p, x, weights, biases), atol=1e-12)
        np.testing.assert_allclose(model.propagation_on(graph).toarray(), p, atol=1e-15)
        assert np.array_equal(model.logits_under(graph, 3, []), model.logits(graph)[3])
        flipped = x.copy()
        flipped[3, 0] ^= 1
        np.testing.assert_allclose(
            model.logits_under(graph, 2, [(3, 0)]), by_hand(p, flipped, weights, biases)[2], atol=1e-12
        )


def test_no_bias_is_zeros_and_floats_become_doubles() -> None:
    graph = Graph(np.zeros((2, 2)), np.eye(2))
    weight = np.array([[0.1, 2], [3, 4]], dtype=np.float32)
    model = Model([weight])
    assert model.logits(graph).tolist() == weight.astype(float).tolist()
    assert model == Model([weight], [None]) == Model([np.asfortranarray(weight)], [np.zeros(2)])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([],), "no layers"),
        (([np.eye(3), np.eye(2)],), "W1 has shape 2 × 2"),
        (([np.eye(3)], [np.zeros(2)]), "b0"),
        (([np.eye(3)], []), "1 weights but 0 biases"),
        (([np.ones(3)],), "1 dimensions"),
        (([np.ones((3, 1))],), "two classes"),
        (([np.full((2, 2), np.nan)],), "W0 holds NaN"),
        (([np.eye(2)], [np.array([np.inf, 0])]), "b0 holds inf"),
        (([np.array([["a", "b"]])],), "real numbers"),
        (([np.eye(2)], None, "gat"), "`gat` is not a propagation"),
        (([np.eye(2)], None, np.ones((2, 3))), "nodes × nodes"),
        (([np.eye(2)], None, {"polynomial": [1, 2]}), "a polynomial of a propagation is"),
        (([np.eye(2)], None, {"polynomial": [np.inf], "of": "adjacency"}), "coefficient=inf"),
        (([np.eye(2)], None, np.full((2, 2), np.nan)), "the propagation is NaN"),
    ],
)
def test_what_is_wrong_is_named(arguments, words) -> None:
    with pytest.raises(nodeproof.InputError, match=words):
        Model(*arguments)


def test_models_that_do_not_fit_the_graph() -> None:
    graph = Graph(np.zeros((2, 2)), np.eye(2), [0, 2])
    for model, words in (
        (Model([np.ones((3, 3))]), "reads 3 attributes"),
        (Model([np.ones((2, 2))]), "has 2 classes"),
        (Model([np.ones((2, 3))], None, np.eye(3)), "its custom propagation is 3 × 3"),
    ):
        with pytest.raises(ValueError, match=words):
            model.logits(graph)
        with pytest.raises(ValueError, match=words):
            nodeproof.certify(graph, model, global_budget=1)


def test_layers_may_be_gone_through_once_only() -> None:
    _, _, weights, biases = tiny(0)
    assert Model(iter(weights), iter(biases)) == Model(weights, biases)


def test_files_and_pickles_keep_every_bit(tmp_path) -> None:
    _, _, weights, biases = tiny(0)
    for propagation in ("symmetric-gcn", "row-normalised", np.diag([0.1, 0.2, 0.3])):
        model = Model(weights, biases, propagation)
        model.metadata["story"] = "once"
        model.write(tmp_path / "m.safetensors")
        for copied in (Model.read(tmp_path / "m.safetensors"), pickle.loads(pickle.dumps(model))):
            assert copied == model and copied.metadata["story"] == "once"
            assert all(np.array_equal(*pair) for pair in zip(copied.weights, model.weights, strict=True))


@pytest.mark.parametrize("offset", [0, 1, 4])
def test_arrays_need_not_be_aligned(papers, offset) -> None:
    graph, model = papers
    assert sent(graph, offset) == graph
    custom = Model(model.weights, model.biases, np.diag([0.1] * graph.nodes))
    assert sent(model, offset) == model and sent(custom, offset) == custom
    packed = np.zeros(len(model.biases[0]), dtype=[("x", "f8"), ("flag", "i4")])
    packed["x"] = model.biases[0]
    assert Model(model.weights, [packed["x"], *model.biases[1:]], model.propagation) == model


class TestLayers:
    """Networks of layers of terms."""

    def terms(self):
        chance = np.random.default_rng(0)
        first = [Term("attributes", 0, chance.normal(size=(4, 3))), Term("attributes", 1, chance.normal(size=(4, 3)))]
        second = [Term(0, 2, -0.5), Term("ones", 3, chance.normal(size=(1, 3)))]
        third = [Term(1, 0, chance.normal(size=(3, 2))), Term("attributes", 3, chance.normal(size=(4, 2)))]
        layers = [
            Layer(first, chance.normal(size=3), "relu"),
            Layer(second, chance.normal(size=3), ("leaky-relu", 0.2)),
            Layer(third, chance.normal(size=2), "none"),
        ]
        custom = sparse.csr_matrix(chance.normal(size=(5, 5)))
        return 4, ["row-mean", "identity", {"polynomial": [0.5, -1.0], "of": "adjacency"}, custom], layers

    def test_logits_are_those_of_the_formula(self) -> None:
        adjacency, x, _, _ = tiny(1)
        attributes, propagations, layers = self.terms()
        model = Model.of_layers(attributes, propagations, layers)
        mean = adjacency / np.maximum(adjacency.sum(1, keepdims=True), 1)
        matrices = [mean, np.eye(5), 0.5 * np.eye(5) - adjacency, propagations[3].toarray()]
        (a, b), (_, c), (d, e) = (layer.terms for layer in layers)
        z = mean @ x @ a.weight + x @ b.weight + layers[0].bias
        z = -0.5 * matrices[2] @ np.maximum(z, 0) + matrices[3] @ np.ones((5, 1)) @ c.weight + layers[1].bias
        z = mean @ np.where(z > 0, z, 0.2 * z) @ d.weight + matrices[3] @ x @ e.weight + layers[2].bias
        graph = Graph(adjacency, x)
        np.testing.assert_allclose(model.logits(graph), z, atol=1e-12)
        for place, matrix in enumerate(matrices):
            np.testing.assert_allclose(model.propagation_on(graph, place).toarray(), matrix, atol=1e-15)

    def test_files_pickles_and_parts_keep_every_bit(self, tmp_path) -> None:
        model = Model.of_layers(*self.terms())
        model.write(tmp_path / "m.safetensors")
        again = Model.of_layers(model.attributes, model.propagations, model.layers)
        for copied in (Model.read(tmp_path / "m.safetensors"), pickle.loads(pickle.dumps(model)), again):
            assert copied == model and copied.layers[1].activation == ("leaky-relu", 0.2)
            assert copied.layers[1].terms[0] == Term(0, 2, -0.5)

    def test_a_person_can_read_it(self) -> None:
        model = Model.of_layers(*self.terms())
        assert repr(model).splitlines() == [
            "Model: 4 attributes, 2 classes",
            "layer  units  activation      sum of",
            "0      3      relu            row-mean · attributes · W, attributes · W",
            "1      3      leaky-relu 0.2  -0.5 · (0.5 identity + -1 adjacency) · layer 0, custom · 1 · W",
            "2      2      none            row-mean · layer 1 · W, custom · attributes · W",
        ]
        assert model.propagation == "several" and not model.is_gcn
        for what in ("weights", "biases"):
            with pytest.raises(nodeproof.InputError, match=f"no list of {what}.*model.layers"):
                getattr(model, what)

    def test_what_is_wrong_is_named(self) -> None:
        attributes, propagations, layers = self.terms()
        for change, words in (
            (lambda: Model.of_layers(attributes, propagations, []), "no layers"),
            (lambda: Model.of_layers(5, propagations, layers), "there are 5 attributes"),
            (lambda: Model.of_layers(attributes, propagations[:3], layers), "names propagation 3"),
            (lambda: Model.of_layers(attributes, propagations, layers[:2]), "it is the last"),
            (lambda: Model.of_layers(attributes, propagations, layers[::-1]), "reads layer 1"),
            (lambda: Model.of_layers(attributes, propagations, [layers[0].terms]), "layer 0 must be Layer"),
            (
                lambda: Model.of_layers(attributes, propagations, [layers[0]._replace(activation="elu")]),
                "`elu` is not an activation",
            ),
            (lambda: Model.of_layers(attributes, ["gat"], layers), "`gat` is not a propagation"),
            (
                lambda: Model.of_layers(attributes, propagations, [Layer([Term("x", 0, 1.0)], np.zeros(2), "none")]),
                "term 0 of layer 0 reads 'x'",
            ),
            (
                lambda: Model.of_layers(attributes, propagations, [layers[0]._replace(activation=None)]),
                "the activation of layer 0 is None",
            ),
            (
                lambda: Model.of_layers(attributes, propagations, [layers[0]._replace(activation=("leaky-relu", "x"))]),
                "the activation of layer 0 is .*leaky-relu",
            ),
            (
                lambda: Model.of_layers(attributes, propagations, layers).propagation_on(
                    Graph(np.eye(5), np.eye(5, 4)), 4
                ),
                "place=4",
            ),
        ):
            with pytest.raises(nodeproof.InputError, match=words):
                change()


def test_flips_that_make_no_sense(papers) -> None:
    graph, model = papers
    for flips in ([(0, 99)], [(99, 0)], [(0, 1), (0, 1)]):
        with pytest.raises(ValueError, match="exist|twice"):
            model.logits_under(graph, 0, flips)


class TestStateDict:
    def state(self, **changes):
        random = np.random.default_rng(0)
        state = {
            "conv1.bias": random.normal(size=3),
            "conv1.lin.weight": random.normal(size=(3, 4)),
            "conv2.bias": random.normal(size=2),
            "conv2.lin.weight": random.normal(size=(2, 3)),
        }
        return {key: value for key, value in (state | changes).items() if value is not None}

    def test_gcn_layers(self) -> None:
        state = self.state()
        model = Model.from_state_dict(state, "symmetric-gcn")
        expected = [state["conv1.lin.weight"].T, state["conv2.lin.weight"].T]
        assert model == Model(expected, [state["conv1.bias"], state["conv2.bias"]])

    def test_linear_layers_are_recognised_by_their_bias(self) -> None:
        weight, bias = np.ones((3, 4)), np.zeros(3)
        assert Model.from_state_dict({"weight": weight, "bias": bias}, "identity").weights[0].shape == (4, 3)
        assert Model.from_state_dict({"weight": weight.T, "bias": bias}, "identity").weights[0].shape == (4, 3)
        for bad in ({"weight": np.eye(3), "bias": bias}, {"weight": weight}):
            with pytest.raises(ValueError, match="does not show whether"):
                Model.from_state_dict(bad, "identity")

    def test_linear_layers_are_not_taken_for_convolutions(self) -> None:
        linear = {"lin1.weight": np.ones((3, 4)), "lin1.bias": np.zeros(3)}
        for propagation in ("symmetric-gcn", "row-mean", np.eye(4)):
            with pytest.raises(ValueError, match="'lin1' are called weight and bias, as those of a torch.nn.Linear"):
                Model.from_state_dict(linear, propagation)
        with pytest.raises(ValueError, match="'lin1'"):
            Model.from_state_dict(
                self.state() | {"lin1.weight": np.ones((3, 2)), "lin1.bias": np.zeros(3)}, "symmetric-gcn"
            )
        with pytest.raises(ValueError, match="'conv1' are those of a GCNConv or SAGEConv"):
            Model.from_state_dict(self.state(), "identity")

    def test_no_propagation_goes_without_saying(self) -> None:
        with pytest.raises(TypeError, match="propagation"):
            Model.from_state_dict(self.state())

    def test_the_order_of_numbered_layers_is_that_of_the_network(self) -> None:
        names = [f"convs.{place}.lin.weight" for place in range(11)]
        state = {name: np.full((2, 2), place) for place, name in enumerate(names)}
        model = Model.from_state_dict(state, "symmetric-gcn")
        assert [weight[0, 0] for weight in model.weights] == list(range(11))
        for order in (sorted(names), reversed(names)):
            with pytest.raises(ValueError, match="in the order of the network"):
                Model.from_state_dict({name: state[name] for name in order}, "symmetric-gcn")

    @pytest.mark.parametrize(
        "state", [None, [1], {1: np.ones((2, 2))}, {"a.lin.weight": "x"}, {"a.lin.weight": 1j * np.eye(2)}]
    )
    def test_what_is_no_state_dict_is_named(self, state) -> None:
        with pytest.raises(nodeproof.InputError):
            Model.from_state_dict(state, "symmetric-gcn")

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"conv1.att_src": np.ones(3)}, "conv1.att_src"),
            ({"conv1.lin_r.weight": np.ones((3, 4))}, "conv1.lin_r.weight"),
            ({"bn.running_mean": np.ones(3)}, "bn.running_mean"),
            ({"bn.weight": np.ones(3)}, "'bn' are called weight and bias"),
            ({"conv2.lin.weight": None}, "bias but no weight"),
            ({"conv1.weight": np.ones((3, 4))}, "both the weight"),
        ],
    )
    def test_others_are_named(self, changes, words) -> None:
        with pytest.raises(ValueError, match=words):
            Model.from_state_dict(self.state(**changes), "symmetric-gcn")
