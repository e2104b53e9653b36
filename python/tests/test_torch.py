"""Worst-case losses with gradients for modules of PyTorch."""

from __future__ import annotations

import copy
import re
import threading

import numpy as np
import pytest

import nodeproof

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
from conftest import ROOT  # noqa: E402
from networks import data, gcn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import BatchNorm, GCNConv, GINConv, GraphConv, Linear, SAGEConv  # noqa: E402
from zoo import ACCEPTED, Case, Net  # noqa: E402

from nodeproof.pyg.run import _forward  # noqa: E402
from nodeproof.torch import Robust, robust_cross_entropy, robust_hinge, worst_case_margins  # noqa: E402

#: Accepted modules with a parameter that cannot be followed: the slope of an activation.
SLOPES = ("PReLU, one slope",)


def of_kind(kind: str) -> Data:
    """A small graph whose attributes are of one kind."""
    made = data()
    if kind == "normalised-rows":
        made.x = made.x / made.x.sum(1, keepdim=True).clamp(min=1)
    if kind == "real-values":
        made.x = torch.tensor(np.random.default_rng(3).normal(size=made.x.shape)).float()
    return made


class Shared(torch.nn.Module):
    """One weight in two places, in one of them transposed, a BatchNorm between, and one parameter that scales."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.lin, self.conv = torch.nn.Linear(6, 6, bias=False), GraphConv(6, 3)
        self.norm, self.scale = BatchNorm(6), torch.nn.Parameter(torch.tensor(0.8))
        with torch.no_grad():
            self.norm.module.running_mean.uniform_(-0.2, 0.2)
            self.norm.module.running_var.uniform_(0.5, 1.5)

    def forward(self, x, edge_index):
        h = self.norm(self.scale * self.lin(x) + x @ self.lin.weight).relu()
        return self.conv(h, edge_index)


def wrapped(make):
    """A module whose weights are made of others."""
    module = make()
    torch.nn.utils.parametrizations.weight_norm(module.conv1.lin)
    return module


MODULES = {
    "gcn": lambda: gcn(),
    "sage": lambda: Net(
        lambda m, x, e: m.conv2(m.conv1(x, e).relu(), e), conv1=SAGEConv(6, 4), conv2=SAGEConv(4, 3)
    ),
    "deep": lambda: Net(
        lambda m, x, e: m.c(F.leaky_relu(m.b(m.a(x, e).relu(), e), 0.1), e),
        a=GCNConv(6, 4), b=GCNConv(4, 4), c=GCNConv(4, 3),
    ),
    "gin": lambda: Net(
        lambda m, x, e: m.out(m.conv(x, e).relu()),
        conv=GINConv(torch.nn.Sequential(Linear(6, 5), torch.nn.ReLU(), Linear(5, 4)), eps=0.2, train_eps=True),
        out=Linear(4, 3),
    ),
    "shared": Shared,
    "weight norm": lambda: wrapped(gcn),
    "no activation": lambda: Net(
        lambda m, x, e: m.conv2(m.conv1(x, e), e), conv1=GCNConv(6, 4), conv2=GCNConv(4, 3)
    ),
}  # fmt: skip


def in_double(name: str):
    torch.manual_seed(1)
    module = MODULES[name]().double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return module


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, "bits") for name in MODULES]
    + [(name, kind) for name in ("sage", "shared") for kind in ("normalised-rows", "real-values")],
)
def test_gradients_are_those_of_differences(name: str, kind: str) -> None:
    module, of = in_double(name), of_kind(kind)
    robust = Robust(module, of, global_budget=2, local_budget=1, real_values=kind == "real-values")
    nodes, classes = [0, 3, 5, 3], torch.tensor([0, 1, 2, 0])
    parameters = tuple(module.parameters())
    weights = torch.rand(4, 3, dtype=torch.float64)
    losses = {
        "hinge": lambda *_: robust.hinge(nodes, margin=3.0, saturation=0.7),
        "hinge of classes": lambda *_: robust.hinge(nodes, classes),
        "cross entropy": lambda *_: robust.cross_entropy(nodes, classes),
        "margins": lambda *_: (weights * robust.worst_case_margins(nodes, classes)).sum(),
    }
    for loss in losses.values():
        assert torch.autograd.gradcheck(loss, parameters, eps=1e-6, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("case", ACCEPTED, ids=[case.text for case in ACCEPTED])
def test_logits_and_their_gradients_are_those_of_the_module(case: Case) -> None:
    if case.text in SLOPES or "softmax" in case.text:
        return
    torch.manual_seed(0)
    module, of = case.make().double().eval(), data()
    of.x = of.x.double()
    robust = Robust(module, of, global_budget=2, forward=case.forward)
    # Not in order, and one node twice.
    nodes, classes = torch.tensor([7, 0, 3, 7]), torch.tensor([0, 1, 2, 1])
    # What was known of the module before no longer holds.
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.rand_like(parameter))
    theirs, parameters = (case.forward or _forward)(module, of)[nodes], list(module.parameters())
    ours = robust.logits(nodes)
    assert ours.shape == theirs.shape and torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    expected = torch.autograd.grad(F.cross_entropy(theirs, classes), parameters, allow_unused=True)
    # Other nodes, and others' parameters, in between change nothing.
    robust.logits([1])
    found = torch.autograd.grad(F.cross_entropy(ours, classes), parameters, allow_unused=True)
    for (name, _), one, other in zip(module.named_parameters(), found, expected, strict=True):
        assert (one is None) == (other is None), name
        assert one is None or torch.allclose(one, other, rtol=1e-8, atol=1e-10), name


@pytest.mark.parametrize("kind", ["normalised-rows", "real-values"])
def test_logits_are_those_of_the_module_for_all_attributes(kind: str) -> None:
    module, of = in_double("sage").eval(), of_kind(kind)
    of.x = of.x.double()
    robust = Robust(module, of, global_budget=1, local_budget=1, real_values=kind == "real-values")
    theirs, ours = module(of.x, of.edge_index), robust.logits()
    # Rows are divided in single precision.
    assert torch.allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    for one, other in zip(
        *(torch.autograd.grad(z.pow(3).sum(), list(module.parameters())) for z in (ours, theirs)), strict=True
    ):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-5)


def test_logits_know_the_parameters_that_they_were_computed_with() -> None:
    module, of = in_double("gcn").eval(), data()
    of.x = of.x.double()
    robust = Robust(module, of, global_budget=1)
    weight = module.conv2.lin.weight
    (expected,) = torch.autograd.grad(robust.logits([2, 5]).pow(2).sum(), [weight])
    logits = robust.logits([2, 5])
    with torch.no_grad():
        module.conv2.bias.add_(1.0)
    other = robust.logits([2, 5])
    (found,) = torch.autograd.grad(logits.pow(2).sum(), [weight])
    assert torch.equal(found, expected) and not torch.equal(logits, other)
    assert robust.logits([]).shape == (0, 3)
    with pytest.raises(nodeproof.InputError, match="12 nodes"):
        robust.logits([12])
    with torch.no_grad():
        module.conv2.bias.fill_(float("inf"))
    with pytest.raises(nodeproof.InputError, match="'conv2.bias' has a value that is not finite"):
        robust.logits([0])


@pytest.mark.parametrize("case", ACCEPTED, ids=[case.text for case in ACCEPTED])
def test_every_module_that_is_imported_can_be_followed(case: Case) -> None:
    torch.manual_seed(0)
    module, of = case.make(), data()
    options = {"global_budget": 2, "forward": case.forward}
    if case.text in SLOPES:
        with pytest.raises(nodeproof.VerificationError, match="'act.weight'.*slopes"):
            Robust(module, of, **options)
        return
    robust = Robust(module, of, **options)
    robust.hinge(range(12), margin=50.0).backward()
    # Nothing that is known of the module before holds after a step, but for how it is followed.
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.sub_(0.1 * torch.sign(parameter) * torch.rand_like(parameter))
    robust.check()
    # All parameters that the logits depend on have gradients.
    logits = (case.forward or _forward)(module.eval(), of)
    expected = torch.autograd.grad(logits.pow(3).sum(), list(module.parameters()), allow_unused=True)
    for (name, parameter), gradient in zip(module.named_parameters(), expected, strict=True):
        assert (parameter.grad is None) == (gradient is None), name


def test_the_loss_is_that_of_training(bundled) -> None:
    for method in ("rh-u", "rce", "rh"):
        split = nodeproof.Split.stratified(bundled, train="10%")
        still = {
            "learning_rate": 1e-300, "steps": 1, "dropout": 0.0, "batch": None, "split": split, "warm_up": 0,
            "weight_decay": 0.0, "evaluate": False, "progress": False, "schedule": "constant",
            "attribute_dropout": 0.0,
        } | ({"labelled_steps": 0} if method == "rh-u" else {})  # fmt: skip
        training = nodeproof.train(bundled, method, global_budget=5, **still)
        module, of = training.model.to_pyg(dtype=torch.float64), bundled.to_pyg(split)
        of.x = of.x.double()
        robust = Robust(module, of, global_budget=5)
        train = torch.tensor(split.train.astype(np.int64))
        labels = of.y[train]
        if method == "rce":
            loss = robust.cross_entropy(train, labels)
        elif method == "rh":
            loss = robust.hinge(train, labels)
        else:
            others = torch.tensor(split.unlabelled.astype(np.int64))
            parts = robust.hinge(train, labels), robust.hinge(others)
            loss = (len(train) * parts[0] + len(others) * parts[1]) / bundled.nodes
        assert loss.item() == pytest.approx(training.log[0]["robust_loss"], rel=1e-9), method


def test_margins_are_those_of_certificates(bundled, standard) -> None:
    module, of = standard.to_pyg(dtype=torch.float64), bundled.to_pyg()
    of.x = of.x.double()
    robust = Robust(module, of, global_budget=5)
    nodes = torch.arange(0, 200)
    margins = robust.worst_case_margins(nodes).detach()
    certificates = robust.certify(nodes, engine="fast")
    rows = torch.arange(200)
    predicted = torch.tensor(certificates.predicted.astype(np.int64))
    assert (margins[rows, predicted] == 0).all()
    margins[rows, predicted] = float("inf")
    assert np.allclose(margins.min(dim=1).values.numpy(), certificates.margin, rtol=1e-7, atol=1e-9)
    assert robust.certify(nodes=torch.tensor([3, 4]), engine="complete").robust.tolist() == (
        nodeproof.certify(bundled, standard, global_budget=5, nodes=[3, 4]).robust.tolist()
    )


def test_a_network_learns_to_withstand() -> None:
    torch.manual_seed(0)
    module, of = MODULES["sage"](), data(nodes=40, seed=2)
    of.y = of.x[:, :2].sum(dim=1).long()
    robust = Robust(module, of, global_budget=3)
    optimiser, losses = torch.optim.Adam(module.parameters(), lr=0.05), []
    for _ in range(60):
        optimiser.zero_grad()
        loss = robust.hinge(torch.arange(40), of.y)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]
    assert module.training, "the module stays in the mode that it was in"


def test_what_is_frozen_has_no_gradient_and_must_stay() -> None:
    module, of = MODULES["gin"](), data()
    module.out.requires_grad_(False)
    robust = Robust(module, of, global_budget=2)
    robust.hinge([0, 1, 2], margin=9.0).backward()
    assert module.out.weight.grad is None and module.conv.nn[0].weight.grad is not None
    with torch.no_grad():
        module.out.weight.mul_(2)
    with pytest.raises(nodeproof.InputError, match="out.weight.*make a new Robust"):
        robust.hinge([0])
    with pytest.raises(nodeproof.InputError, match="out.weight"):
        robust.check()


def test_what_is_thawed_later_is_refused() -> None:
    module, of = gcn(), data()
    module.conv2.bias.requires_grad_(False)
    robust = Robust(module, of, global_budget=2)
    module.conv2.bias.requires_grad_(True)
    with pytest.raises(nodeproof.InputError, match="conv2.bias"):
        robust.hinge([0])


def test_statistics_are_followed() -> None:
    module, of = Shared(), data()
    robust = Robust(module, of, global_budget=2)
    before = robust.worst_case_margins(range(12)).detach()
    module.train()(torch.rand(12, 6), of.edge_index)
    after = robust.worst_case_margins(range(12)).detach()
    assert not torch.allclose(before, after)
    assert torch.allclose(after, Robust(module, of, global_budget=2).worst_case_margins(range(12)), atol=1e-5)


def test_weights_of_edges_are_refused() -> None:
    of = data()
    weights = torch.nn.Parameter(torch.rand(of.edge_index.shape[1]) + 0.5)
    module = Net(lambda m, x, e: m.conv(x, e, m.weights), conv=GCNConv(6, 3), weights=weights)
    with pytest.raises(nodeproof.VerificationError, match="'weights'.*weigh edges"):
        Robust(module, of, global_budget=2)
    weights.requires_grad_(False)
    Robust(module, of, global_budget=2).hinge([0]).backward()


def test_nodes_and_classes_are_checked() -> None:
    robust = Robust(gcn(), data(), nodeproof.Budget(2))
    assert repr(robust) == "Robust(Network, Budget(2), worst_case='dual')"
    mask = torch.zeros(12, dtype=torch.bool)
    mask[[2, 5]] = True
    assert robust.worst_case_margins(mask).shape == (2, 3)
    assert torch.equal(robust.worst_case_margins([5, 2, 5])[[1, 0]], robust.worst_case_margins(mask))
    assert robust.worst_case_margins([]).shape == (0, 3)
    with pytest.raises(nodeproof.InputError, match="at least 1 node"):
        robust.hinge([])
    with pytest.raises(nodeproof.InputError, match="12 nodes"):
        robust.hinge([12])
    with pytest.raises(nodeproof.InputError, match="a class for each of the 2 nodes"):
        robust.hinge([0, 1], [0])
    with pytest.raises(nodeproof.InputError, match="without a label"):
        robust.hinge([0], [-1])
    with pytest.raises(nodeproof.InputError, match="a class is 3, of node 0"):
        robust.hinge([0], [3])
    with pytest.raises(nodeproof.InputError, match="global_budget"):
        Robust(gcn(), data())


def test_functions_remember_modules_and_notice_other_data() -> None:
    module, of = gcn(), data()
    options = {"global_budget": 2}
    first = robust_hinge(module, of, [0, 1], margin=5.0, **options)
    assert torch.equal(first, Robust(module, of, **options).hinge([0, 1], margin=5.0))
    assert torch.equal(
        robust_cross_entropy(module, of, [0], [1], **options), Robust(module, of, **options).cross_entropy([0], [1])
    )
    of.x = 1 - of.x
    changed = worst_case_margins(module, of, range(12), **options)
    assert torch.equal(changed, Robust(module, of, **options).worst_case_margins(range(12)))
    of.x[0] = 1 - of.x[0]
    assert not torch.equal(changed, worst_case_margins(module, of, range(12), **options))


def test_a_saturation_is_above_0() -> None:
    for saturation in (0, -1.0):
        with pytest.raises(nodeproof.InputError, match="saturation=.* must be above 0; float\\('inf'\\) is none"):
            Robust(gcn(), data(), global_budget=1).hinge([0], saturation=saturation)


def test_margins_are_asked_for_by_hinge_losses_alone() -> None:
    for function in (robust_cross_entropy, worst_case_margins):
        for option in ("margin", "saturation"):
            with pytest.raises(nodeproof.InputError, match=f"{option} is an option of hinge losses"):
                function(gcn(), data(), [0], global_budget=1, **{option: 3})


def test_a_diverged_module_says_so() -> None:
    module = gcn()
    robust = Robust(module, data(), global_budget=2)
    with torch.no_grad():
        module.conv1.bias.fill_(float("nan"))
    with pytest.raises(nodeproof.InputError, match="'conv1.bias' has a value that is not finite"):
        robust.hinge([0])


class Scaled(torch.nn.Module):
    """Hidden units times what `make` makes of a parameter."""

    def __init__(self, make) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.a, self.b, self.make = torch.nn.Linear(6, 4), torch.nn.Linear(4, 3), make
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.b(self.a(x).relu() * self.make(self.scale))


def written(scale, change):
    copied = scale.clone()
    change(copied)
    return copied


@pytest.mark.parametrize(
    "make",
    [
        lambda s: written(s, lambda c: c.clamp_(min=0)),
        lambda s: written(s, lambda c: c[:2].relu_()),
        lambda s: written(s, lambda c: c.__setitem__(c < 0, 0.0)),
        lambda s: s if s.sum() > 0 else -s,
        lambda s: s * float(s[0].sign()),
        lambda s: torch.where(torch.tensor(s.detach().numpy() > 0), s, 2 * s),
    ],
)
def test_what_depends_on_values_of_parameters_is_refused(make) -> None:
    with pytest.raises(nodeproof.VerificationError, match="'scale'|looks at values"):
        Robust(Scaled(make), data(), global_budget=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: s.clamp(min=0),
        lambda s: torch.where(s > 0, s, 2 * s),
        lambda s: torch.einsum("i,ij->j", s, torch.eye(4)),
        lambda s: (s[None, None] @ torch.eye(4)[None])[0, 0],
        lambda s: torch.stack([s, s]).sum(0).exp().log(),
        lambda s: sum(0.01 * s for _ in range(300)),
    ],
)
def test_what_is_a_function_of_parameters_is_followed_anywhere(make) -> None:
    module, of = Scaled(make), data()
    robust = Robust(module, of, global_budget=0)
    with torch.no_grad():
        module.scale.copy_(torch.tensor([-1.0, 0.5, -0.3, 2.0]))
    logits = module(of.x)
    margins = robust.worst_case_margins(range(12))
    led = logits.gather(1, logits.argmax(1, keepdim=True)) - logits
    assert torch.allclose(margins, led, atol=1e-5)
    robust.check()


def test_changes_are_noticed() -> None:
    def pruned(m, x, e):
        return m.conv(x, e) @ (m.weight * m.mask)

    def made():
        torch.manual_seed(3)
        module = Net(pruned, conv=GCNConv(6, 4), weight=torch.nn.Parameter(torch.rand(4, 3)))
        module.register_buffer("mask", torch.ones(4, 3, dtype=torch.bool))
        of = data()
        return module, of, Robust(module, of, global_budget=2)

    module, _, robust = made()
    module.mask[0] = False
    with pytest.raises(nodeproof.InputError, match="'mask'.*make a new Robust"):
        robust.hinge([0])
    module, of, robust = made()
    of.x = of.x.flip(0)
    with pytest.raises(nodeproof.InputError, match="the data have changed: 'x' is new, gone, or was written to"):
        robust.hinge([0])
    module, of, robust = made()
    of.y = torch.zeros(12, dtype=torch.long)
    with pytest.raises(nodeproof.InputError, match="the data have changed: 'y'"):
        robust.hinge([0])
    module, _, robust = made()
    module.extra = torch.nn.Linear(2, 2)
    with pytest.raises(nodeproof.InputError, match="extra.*is new"):
        robust.hinge([0])
    module, _, robust = made()
    module.weight = torch.nn.Parameter(torch.rand(5, 3))
    with pytest.raises(nodeproof.InputError, match="'weight'.*another shape"):
        robust.hinge([0])
    module, _, robust = made()
    module.run = lambda m, x, e: 2 * pruned(m, x, e)
    with pytest.raises(nodeproof.VerificationError, match="something else than what is followed"):
        robust.check()
    with pytest.raises(TypeError, match="not copied or pickled") as error:
        copy.deepcopy(robust)
    assert isinstance(error.value, nodeproof.NotCopyableError)


@pytest.mark.parametrize("worst_case", ["dual", "first-order"])
def test_there_are_no_second_derivatives(worst_case) -> None:
    module = gcn()
    robust = Robust(module, data(), global_budget=2, worst_case=worst_case)
    weight = module.conv1.lin.weight
    for value in (
        lambda: robust.hinge(range(6), margin=9.0),
        lambda: robust.cross_entropy(range(6)),
        lambda: robust.worst_case_margins(range(6)).sum(),
        lambda: robust.logits(range(6)).sum(),
    ):
        with pytest.raises(nodeproof.InputError, match="no second derivatives.*leave out create_graph=True"):
            torch.autograd.grad(value(), [weight], create_graph=True)
        with pytest.raises(nodeproof.InputError, match="no second derivatives"):
            value().backward(create_graph=True)
        (first,) = torch.autograd.grad(value(), [weight])
        assert first.any() and not first.requires_grad
    # A penalty on the gradient of another term is nothing to refuse.
    logits = module(robust._data.x, robust._data.edge_index)
    (plain,) = torch.autograd.grad(logits.logsumexp(1).sum(), [weight], create_graph=True)
    (robust.hinge(range(6), margin=9.0) + (plain**2).sum()).backward()
    assert weight.grad is not None


def test_another_budget_and_split_may_be_given_to_certify(bundled) -> None:
    robust = Robust(gcn(), data(), global_budget=2, local_budget=1)
    split = nodeproof.Split(12, train=[3, 5])
    assert robust.certify("train", split=split).nodes.tolist() == [3, 5]
    assert robust.certify(budget=nodeproof.Budget(1, local_budget=1)).global_budget == 1
    with pytest.raises(nodeproof.InputError, match="a budget was given, and so was global_budget"):
        robust.certify(global_budget=1)


def test_the_functions_import_anew_what_has_changed(caplog) -> None:
    module, of = gcn(), data()
    module.conv2.bias.requires_grad_(False)
    robust_hinge(module, of, [0], global_budget=2)
    module.conv2.bias.requires_grad_(True)
    robust_hinge(module, of, [0], margin=50.0, global_budget=2).backward()
    assert module.conv2.bias.grad is not None
    for _ in range(3):
        robust_hinge(module, of, [0], global_budget=2, forward=lambda m, d: m(d.x, d.edge_index))
    assert not caplog.records
    for _ in range(5):
        robust_hinge(module, of.clone(), [0], global_budget=2)
    assert "imported anew at every call" in caplog.text


def test_parts_of_a_split_and_compiled_modules(bundled) -> None:
    split = nodeproof.Split.stratified(bundled, train="5%")
    of = bundled.to_pyg(split)
    module = torch.compile(Net(lambda m, x, e: m.conv(x, e), conv=GCNConv(bundled.attribute_count, 6)))
    robust = Robust(module, of, global_budget=3, protect_nodes="train", split=split)
    ids = torch.tensor(split.train.astype(np.int64))
    assert torch.equal(robust.hinge("train", of.y[ids]), robust.hinge(ids, of.y[ids, None]))
    assert robust.certify("train", engine="fast").nodes.tolist() == split.train.tolist()


def test_several_threads_may_import() -> None:
    made, failed = [], []

    def make() -> None:
        try:
            made.append(float(Robust(first, data(), global_budget=1).hinge([0, 1], margin=9.0).detach()))
        except BaseException as error:
            failed.append(error)

    first = gcn()
    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(set(made)) == 1


def test_following_a_module_leaves_it_and_chance_alone() -> None:
    module, of = gcn(), data()
    before, state = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    Robust(module, of, global_budget=2).hinge([0])
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


def test_the_loop_of_the_documentation_runs() -> None:
    text = (ROOT / "docs" / "python.md").read_text().partition("## Robust training in your own loop")[2]
    (loop,) = re.findall(r"```python\n(.*?)```", text.partition("\n## ")[0], re.DOTALL)
    assert "range(100)" in loop and "[:256]" in loop
    module, of = MODULES["sage"](), data(nodes=40)
    of.y = of.x[:, :2].sum(dim=1).long()
    before = copy.deepcopy(module.state_dict())
    names = {"module": module, "data": of, "labelled": torch.arange(0, 40, 4)}
    names["optimiser"] = torch.optim.Adam(module.parameters())
    exec(loop.replace("range(100)", "range(3)"), {"nodeproof": nodeproof, "torch": torch, "F": F, **names})
    assert not any(torch.equal(value, before[name]) for name, value in module.state_dict().items())
