"""PyTorch Geometric: whatever is not a network of layers of terms is refused, however well it hides."""

from __future__ import annotations

import copy
import ctypes
import functools
import itertools
import pickle
import random
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import nodeproof
from nodeproof import VerificationError, from_pyg
from nodeproof.pyg.evaluate import Evaluator
from nodeproof.pyg.verify import _comparison

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
F = torch.nn.functional

from networks import Network, Odd, data, gcn, hooked  # noqa: E402
from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import GCNConv, SGConv, TAGConv  # noqa: E402


def is_the_module(module, model: nodeproof.Model, graph: nodeproof.Graph, of) -> bool:
    """Whether a model computes what its module does, on attributes by chance."""
    module = copy.deepcopy(module).eval().double()
    chance = np.random.default_rng(7)
    for _ in range(4):
        x = chance.random((graph.nodes, graph.attribute_count)) < chance.random()
        with torch.no_grad():
            theirs = module(torch.tensor(x).double(), of.edge_index).numpy()
        ours = model.logits(nodeproof.Graph(graph.adjacency, x, directed=True, keep_self_loops=True))
        if not np.allclose(theirs - theirs[:, :1], ours - ours[:, :1], atol=1e-6 * max(1.0, np.abs(theirs).max())):
            return False
    return True


def test_a_module_that_looks_right_on_the_graph_alone_is_refused() -> None:
    """Nothing differs as long as the first attribute of node 3 is as it is."""
    of = data()

    class Sleeper(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = gcn()

        def forward(self, x, edge_index):
            logits = self.inner(x, edge_index)
            return logits if x[3, 0] == of.x[3, 0] else -logits

    with pytest.raises(VerificationError, match="the forward of Sleeper: looks at values .* and decides by them"):
        from_pyg(Sleeper(), of)


#: Modules that agree with a ReLU network wherever one looks: only what they do gives them away.
HIDDEN = {
    "relu6": (F.relu6, "cuts values off or bends them"),
    "clamp": (lambda x: x.clamp(0, 6), "cuts values off at a number other than 0"),
    "elu": (F.elu, "curved function"),
    "hardtanh": (lambda x: F.hardtanh(x, 0.0, 1e9), "cuts values off"),
    "a threshold": (lambda x: F.threshold(x, 1e-6, 0.0), "jumps at a threshold"),
    "absolute values": (torch.abs, "bends them"),
    "a steep slope": (lambda x: F.leaky_relu(x, 1.0), "slope 1 below 0"),
    "a falling slope": (lambda x: F.leaky_relu(x, -0.1), "slope -0.1 below 0"),
    "maximum of two": (lambda x: torch.maximum(x, x.flip(1)), "takes a maximum"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_only_looks_like_a_relu_is_refused(name: str) -> None:
    between, words = HIDDEN[name]
    module = Network(GCNConv(6, 5), GCNConv(5, 3), between=between)
    # Activations stay within 1 and 2 for every set of attributes.
    torch.nn.init.uniform_(module.conv1.lin.weight, 0.0, 0.01)
    torch.nn.init.ones_(module.conv1.bias)
    with pytest.raises(VerificationError, match=words):
        from_pyg(module, data())


def test_a_false_certificate_by_relu6_is_not_given() -> None:
    """Two flips fool this module; as a ReLU network it would be robust, and it agrees with one on all inputs tried."""
    module = Network(GCNConv(4, 2), GCNConv(2, 2), between=F.relu6).eval()
    with torch.no_grad():
        module.conv1.lin.weight.copy_(torch.tensor([[4, 4, -4, -4.0], [1.9, 1.9, -1.9, -1.9]]))
        module.conv1.bias.zero_()
        module.conv2.lin.weight.copy_(torch.tensor([[1.0, -2.0], [0, 0]]))
        module.conv2.bias.copy_(torch.tensor([1.0, 0]))
    of = Data(x=torch.zeros(1, 4), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    with pytest.raises(VerificationError, match="cuts values off"):
        from_pyg(module, of)


def test_edges_that_depend_on_attributes_are_refused() -> None:
    class Jaccard(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(6, 3)

        def forward(self, x, edge_index):
            alike = (x[edge_index[0]] * x[edge_index[1]]).sum(dim=1) >= 0  # Always true, but it might not be.
            return self.conv(x, edge_index[:, alike])

    with pytest.raises(VerificationError, match="multiplies two values that both depend"):
        from_pyg(Jaccard(), data())

    class Weighted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(6, 3, normalize=False)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index, x[edge_index[0], 0] + 1)

    with pytest.raises(VerificationError, match="multiplies two values"):
        from_pyg(Weighted(), data())


class Leaving(torch.nn.Module):
    """Looks at its attributes where PyTorch does not see it."""

    def __init__(self, look) -> None:
        super().__init__()
        self.inner, self.look = gcn(), look

    def forward(self, x, edge_index):
        if np.sum(self.look(x)) > 1e6:
            return -self.inner(x, edge_index)
        return self.inner(x, edge_index)


def unhelped(look):
    with torch._C.DisableTorchFunctionSubclass():
        return look()


LOOKS = {
    "numpy": lambda x: x.numpy(),
    "detached": lambda x: x.detach().numpy(),
    "array": lambda x: np.asarray(x),
    "list": lambda x: x.tolist(),
    "item": lambda x: x.sum().item(),
    "dlpack": lambda x: np.from_dlpack(x),
    "of a view": lambda x: x[2:, :3].tolist(),
    "truth": lambda x: bool(x[0, 0] > 2),
    "text": lambda x: len(str(x)),
    "format": lambda x: len(f"{x}"),
    "pickle": lambda x: len(pickle.dumps(x)),
    "copy": lambda x: copy.deepcopy(x).numpy(),
    "storage": lambda x: list(x.untyped_storage()),
    "address": lambda x: len(ctypes.string_at(x.data_ptr(), 4)),
    "truth of an operation": lambda x: bool(x.any()),
    "comparison": lambda x: bool((x > 0).all()),
    "another class": lambda x: x.as_subclass(torch.nn.Parameter).numpy(),
    "data": lambda x: x.data.numpy(),
    "order": lambda x: int(x.sum(1).argmax()),
    "a vote": lambda x: int(torch.bincount(x[:, 0].long())[0]),
    "a set": lambda x: len(torch.unique(x)),
    "a shape": lambda x: x[x[:, 0] > 0].shape[0],
    "an exception": lambda x: 0 if np.isfinite(x.sum().item()) else 1,
    "memory": lambda x: np.frombuffer(memoryview(x.numpy()), dtype=np.uint8),
    "equality": lambda x: torch.equal(x, x),
    "places": lambda x: x.nonzero().shape[0],
    "each by itself": lambda x: x.clone().apply_(abs).shape[0],
    "each with others": lambda x: torch.zeros(x.shape, dtype=x.dtype).map_(x, lambda a, b: b * b).numpy(),
    "without PyTorch's help": lambda x: unhelped(x.tolist),
}


@pytest.mark.parametrize("look", LOOKS)
def test_values_that_leave_pytorch_are_refused(look: str) -> None:
    words = "out of PyTorch|decides by them|order|whole numbers|cannot (follow|be run)|is already associated|other operations"
    with pytest.raises(nodeproof.InputError, match=words):
        from_pyg(Leaving(LOOKS[look]), data())


class Clamped(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x).clamp(max=1e6)


def with_part(path: str, part):
    module = gcn()
    owner, _, name = path.rpartition(".")
    setattr(module.get_submodule(owner), name, part)
    return module


def clamp(*given):
    return given[-1].clamp(max=1e6)


def quantised():
    module = gcn()
    module.conv1.lin.register_forward_hook(
        lambda layer, given, output: torch.fake_quantize_per_tensor_affine(output, 1.0, 0, -128, 127)
    )
    return module


class Reading(torch.nn.Module):
    """Weights that depend on the attributes, which its module gives it."""

    x = None

    def forward(self, weight):
        return weight if self.x is None else weight * (1 + 0 * self.x.sum())


class Given(Network):
    def forward(self, x, edge_index):
        Reading.x = x
        try:
            return super().forward(x, edge_index)
        finally:
            Reading.x = None


def reading():
    module = Given(GCNConv(6, 5), GCNConv(5, 3))
    torch.nn.utils.parametrize.register_parametrization(module.conv1.lin, "weight", Reading())
    return module


def weight_of_attributes(module, x, h, edge_index):
    return F.linear(h.relu(), module.conv2.lin.weight + 0 * h.sum())


#: Layers of the right type that somebody has put something into.
CHANGED = {
    "hook": (lambda: hooked("register_forward_hook", clamp), "`self.conv1`, a GCNConv: cuts values off"),
    "hook before": (
        lambda: hooked("register_forward_pre_hook", lambda layer, given: (given[0].clamp(max=9), *given[1:])),
        "`self.conv1`, a GCNConv: cuts values off",
    ),
    "hook on a part": (
        lambda: hooked("register_forward_hook", clamp, part="conv1.lin"),
        "`self.conv1.lin`, a Linear: cuts values off",
    ),
    "hook on messages": (lambda: hooked("register_message_forward_hook", clamp), "cuts values off"),
    "quantised": (quantised, "calls torch.fake_quantize_per_tensor_affine"),
    "other product": (lambda: with_part("conv1.lin", Clamped(6, 5, bias=False)), "a Clamped: cuts values off"),
    "weights of the attributes": (reading, "a Reading: multiplies"),
    "a dead hook": (
        lambda: hooked("register_forward_hook", lambda layer, given, output: output * (output > -1e9)),
        "`self.conv1`, a GCNConv: looks at values",
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_layers_that_somebody_changed_are_refused(name: str) -> None:
    make, words = CHANGED[name]
    torch.manual_seed(0)
    with pytest.raises(VerificationError, match=words):
        from_pyg(make(), data())


def test_hooks_for_all_modules_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = torch.nn.modules.module.register_module_forward_hook(clamp)
    try:
        with pytest.raises(VerificationError, match="cuts values off"):
            from_pyg(gcn(), data())
    finally:
        handle.remove()
    module, message = gcn(), GCNConv.message
    monkeypatch.setattr(GCNConv, "message", lambda self, x_j, edge_weight: clamp(message(self, x_j, edge_weight)))
    with pytest.raises(VerificationError, match="`self.conv1`, a GCNConv: cuts values off"):
        from_pyg(module, data())


def swallowed(module, x, h, edge_index):
    try:
        h = h.clamp(max=6) if x.numpy().sum() > 1e6 else h
    except Exception:
        pass
    return module.conv2(h.relu(), edge_index)


def swallowed_layer(module, x, h, edge_index):
    try:
        h = h + module.extra(x, edge_index)
    except Exception:
        pass
    return module.conv2(h.relu(), edge_index)


def swallowed_mistake(module, x, h, edge_index):
    try:
        h = h + torch.ones(7)
    except RuntimeError:
        pass
    return module.conv2(h.relu(), edge_index)


def onlookers(module, x, h, edge_index):
    return module.conv2(h.relu() if type(h) is not torch.Tensor else h.clamp(0, 0.1), edge_index)


def in_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def in_a_thread(module, x, h, edge_index):
    return module.conv2(in_thread(lambda: h.clamp(max=6)).relu(), edge_index)


def in_part(module, x, h, edge_index):
    h[:3].relu_()
    return module.conv2(h, edge_index)


def by_a_view(module, x, h, edge_index):
    kept = h.new_zeros(h.shape)
    view = kept.view(-1)
    view.add_(h.reshape(-1))
    return module.conv2((kept + h).relu(), edge_index)


def through_numpy(module, x, h, edge_index):
    kept = torch.zeros(h.shape, dtype=h.dtype)
    seen = kept.numpy()
    kept.add_(h)
    return module.conv2((h if seen.sum() < 1e6 else -h).relu(), edge_index)


def through_a_buffer(module, x, h, edge_index):
    module.conv1.bias.data.copy_(h[0])
    return module.conv2(h.relu(), edge_index)


def into_a_wider_tensor(module, x, h, edge_index):
    """One column of zeros stays one."""
    wide = torch.zeros(len(h), 2, dtype=h.dtype).scatter_add(0, torch.arange(len(h))[:, None], h[:, :1])
    return module.conv2((h + wide[:, 1:]).relu(), edge_index)


def vector_times_matrix(module, x, h, edge_index):
    """PyTorch takes a dimension away in place."""
    total = h[:, :1].sum(0) @ torch.tensor([[1.0, 0.0, 0.0]], dtype=h.dtype)
    return module.conv2((h + total[:1] - total[-1:]).relu(), edge_index)


def bits_of_another_kind(module, x, h, edge_index):
    return module.conv2((h.view(torch.int64).view(torch.float64) if h.dtype == torch.float64 else h).relu(), edge_index)


def by_another_part(module, x, h, edge_index):
    """PyTorch adds up entry by entry, and what it has added already counts."""
    h = h.clone()
    h[:, 1:] += h[:, :-1]
    return module.conv2(h.relu(), edge_index)


def by_setting_data(module, x, h, edge_index):
    scale = torch.ones(1, 5)
    scale.data = torch.full((1, 5), 2.0)
    return module.conv2((h * scale).relu(), edge_index)


def in_halves(h):
    halves = torch.zeros_like(h)
    halves[:, :2] = h[:, :2]
    return halves


def in_another_layout(module, x, h, edge_index):
    h = torch.stack([h, h], dim=1)
    h.transpose_(1, 2)
    return module.conv2(h[:, :, 0].relu(), edge_index)


def through_an_unsaid_view(module, x, h, edge_index):
    torch.ops.aten._unsafe_view(h, h.shape).add_(1.0)
    return module.conv2(h.relu(), edge_index)


def other_strides(module, x, h, edge_index):
    turned = torch.ops.aten._reshape_alias(h, h.shape, (1, len(h)))
    return module.conv2(turned.relu(), edge_index)


def with_autocast(module, x, h, edge_index):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return module.conv2(h.relu(), edge_index)


def gradients(module, x, h, edge_index):
    with torch.enable_grad():
        given = h.detach().requires_grad_()
        slope = torch.autograd.grad(given.relu().sum(), given)[0]
    return module.conv2(h * slope, edge_index)


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x.abs()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def without_a_class(module, x, h, edge_index):
    h.__class__ = torch.Tensor
    return module.conv2(h.relu(), edge_index)


@torch.library.custom_op("nodeproof_tests::steps", mutates_args=())
def steps(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.floor(x.numpy()))


_count = itertools.count()


def behind(change):
    """Something between the first layer and its ReLU."""
    return lambda m, x, h, e: m.conv2(change(h).relu(), e)


def before(change):
    """Something that the attributes go through."""
    return lambda m, x, h, e: m.conv3(change(x), e)


ODD = {
    "swallowed": (swallowed, "out of PyTorch"),
    "a swallowed layer": (swallowed_layer, "`self.extra`, a GATConv"),
    "a swallowed mistake": (swallowed_mistake, "continues after an operation that failed"),
    "thread": (in_a_thread, "in another thread"),
    "relu of a part": (in_part, "a part of the nodes|a part of a tensor"),
    "sum by a view": (by_a_view, "a part of a tensor in place|into one dimension"),
    "seen by numpy": (through_numpy, "kept outside of the run"),
    "kept in a parameter": (through_a_buffer, "kept outside of the run|changes its own 'conv1.bias'"),
    "gradients": (gradients, "multiplies two values|cannot follow"),
    "an autograd function": (behind(Squared.apply), "bends them"),
    "an operator of one's own": (behind(steps), "cannot follow|cannot be run"),
    "without its class": (without_a_class, "cannot be run|storage"),
    "squared": (behind(lambda h: h * h), "multiplies two values"),
    "squared by a product": (lambda m, x, h, e: m.conv2((h @ h.t() @ h).relu(), e), "multiplies two values"),
    "squared by einsum": (behind(lambda h: torch.einsum("nf,nf->nf", h, h)), "multiplies"),
    "divided": (behind(lambda h: h / h.sum()), "divides by a number that depends"),
    "an inverse": (behind(lambda h: 1 / h), "divides by a number"),
    "a root": (behind(lambda h: h.pow(2).sqrt()), "a power or a root"),
    "steps by rounding": (behind(lambda h: (h + 1e9) - 1e9), "differ from the module's"),
    "rounded": (behind(lambda h: h.div(1.0, rounding_mode="floor")), "rounding_mode"),
    "whole division": (before(lambda x: (x * 3) // 2), "cannot follow"),
    "remainder": (before(lambda x: x % 2), "cannot follow"),
    "truth values": (before(lambda x: x.bool().to(x.dtype)), "truth values"),
    "whole numbers": (before(lambda x: x.int().to(x.dtype)), "whole numbers"),
    "whole numbers by type": (before(lambda x: x.type(torch.int64).type(x.dtype)), "whole numbers"),
    "comparison": (before(lambda x: (x > 0).to(x.dtype)), "decides by them"),
    "where": (behind(lambda h: torch.where(h > -9, h, 0 * h)), "decides by them"),
    "a mask": (behind(lambda h: h.masked_fill(h < -9, 0.0)), "decides by them"),
    "top values": (behind(lambda h: h.topk(5, dim=1).values), "order"),
    "sorted": (behind(lambda h: h.sort(dim=1).values), "order"),
    "the largest": (behind(lambda h: h - h.max(dim=1, keepdim=True).values), "maximum"),
    "a running maximum": (behind(lambda h: h.cummax(dim=1).values), "maximum"),
    "norms": (behind(lambda h: h / h.norm(dim=1, keepdim=True).clamp(min=1e9)), "divides by"),
    "distances": (lambda m, x, h, e: torch.cdist(h, h)[:, :3], "cannot follow"),
    "chosen by attributes": (lambda m, x, h, e: m.conv2(h[x[:, 0].long()].relu(), e), "whole numbers"),
    "written by attributes": (lambda m, x, h, e: m.conv2(h.index_fill(0, x[:, 0].long(), 0.0), e), "whole numbers"),
    "one-hot": (lambda m, x, h, e: m.conv2(h, e) + F.one_hot(x[:, 0].long(), 3), "whole numbers"),
    "a table": (lambda m, x, h, e: F.embedding(x[:, 0].long(), torch.ones(2, 3)), "whole numbers"),
    "copied into truth values": (
        lambda m, x, h, e: m.conv3(torch.zeros(x.shape, dtype=torch.bool).copy_(x).to(x.dtype), e),
        "truth values",
    ),
    "other bits": (behind(lambda h: h.view(torch.int32).view(h.dtype).view(12, 5)), "whole numbers|cannot be run"),
    "written out": (behind(lambda h: torch.add(h, 0, out=torch.empty_like(h))), "kept outside of the run"),
    "softmax within": (behind(lambda h: h.softmax(dim=1)), "continues behind a softmax"),
    "softmax over nodes": (lambda m, x, h, e: m.conv2(h, e).softmax(dim=0), "takes a softmax"),
    "softmax in groups": (
        lambda m, x, h, e: F.log_softmax(m.conv2(h, e).view(6, 6), dim=1).view(12, 3),
        "into one dimension|softmax",
    ),
    "behind log_softmax": (lambda m, x, h, e: -F.log_softmax(m.conv2(h.relu(), e), dim=1), "behind a log_softmax"),
    "random numbers": (behind(lambda h: h + 1e-12 * torch.rand(5)), "random numbers"),
    "random numbers with a seed": (behind(lambda h: (torch.manual_seed(0), h + torch.randn(5))[1]), "random numbers"),
    "random numbers of Python": (behind(lambda h: h * random.random()), "other operations"),
    "random numbers of NumPy": (behind(lambda h: h * np.random.random()), "other operations"),
    "random numbers that are thrown away": (
        behind(lambda h: (random.random(), h)[1]),
        "the module draws random numbers",
    ),
    "random numbers of a thread": (
        behind(lambda h: h * in_thread(lambda: torch.rand(5))),
        "the module draws random numbers",
    ),
    "dropout": (behind(F.dropout), "random numbers"),
    "dropout of channels": (behind(lambda h: F.dropout1d(h, 0.5)), "random numbers"),
    "counting": (behind(lambda h: h * next(_count)), "other operations"),
    "not for onlookers": (onlookers, "other operations"),
    "a wider tensor": (into_a_wider_tensor, "a part of its values"),
    "a vector times a matrix": (vector_times_matrix, "changes the shape of a tensor in place"),
    "bits of another kind": (bits_of_another_kind, "whole numbers|bits"),
    "other strides": (other_strides, "another order"),
    "one part by another": (by_another_part, "another part of it"),
    "other data": (by_setting_data, "setting `data`"),
    "a part that is written to": (lambda m, x, h, e: in_halves(m.conv3(x, e)), "a part of a tensor in place"),
    "another layout": (in_another_layout, "shape of a tensor in place"),
    "a view that is not called one": (through_an_unsaid_view, "in place"),
    "half precision": (with_autocast, "differ from the module's|precision"),
    "half precision and back": (behind(lambda h: h.half().to(h.dtype)), "precision"),
    "constant": (lambda m, x, h, e: torch.ones(12, 3), "not computed from data.x"),
    "other x": (lambda m, x, h, e: m.conv2(torch.ones(12, 5), e), "not computed from data.x"),
    "a product entry by entry": (behind(lambda h: h * torch.rand(12, 5, generator=None)), "random numbers"),
    "vmap": (behind(lambda h: torch.func.vmap(lambda row: row * row.sum())(h)), "multiplies|cannot"),
    "scripted": (behind(torch.jit.script(torch.nn.ReLU6())), "cuts values off"),
    "data dependent": (lambda m, x, h, e: m.conv2(h.relu() if h.sum() > 0 else h, e), "decides by them"),
    "loops": (lambda m, x, h, e: m.conv2(sum(h for _ in range(int(x.sum()))), e), "out of PyTorch"),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("ignore")
def test_whatever_is_no_sum_of_terms_is_refused(name: str) -> None:
    between, words = ODD[name]
    torch.manual_seed(0)
    with pytest.raises(nodeproof.InputError, match=words):
        from_pyg(Odd(between), data())


class Slots:
    """An object without a dictionary."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0


class Calls:
    """A function that counts its calls."""

    calls = 0

    def __call__(self) -> None:
        self.calls += 1


#: Modules with state, by what they do with it when they are called.
class Stateful(torch.nn.Module):
    def __init__(self, change) -> None:
        super().__init__()
        self.inner, self.change, self.calls, self.kept = gcn(), change, 0, []
        self.space, self.queue, self.counter = SimpleNamespace(calls=0), deque(), itertools.count()
        self.slots, self.call, self.partial, self.data = Slots(), Calls(), functools.partial(print, []), Data()
        self.nested, self.keys, self.plain = [[[[[[[[[[]]]]]]]]]], {(0,): 0}, [GCNConv(6, 3)]
        self.inner.act = torch.nn.Tanh()
        self.inner.act.register_forward_hook(clamp)
        self.register_buffer("memory", torch.zeros(3, 3))

    def forward(self, x, edge_index):
        logits = self.inner(x, edge_index)
        self.change(self, x, logits)
        return logits if self.calls < 100 else -logits


def count(module, x, logits):
    module.calls += 1


def keep_logits(module, x, logits):
    module.last = logits


def keep_in_a_list(module, x, logits):
    module.kept.append(1)


def keep_in_an_object(module, x, logits):
    module.space.calls += 1


def keep_in_a_queue(module, x, logits):
    module.queue.append(1)


def count_on(module, x, logits):
    next(module.counter)


def keep_in_slots(module, x, logits):
    module.slots.calls += 1


def add_to_a_buffer(module, x, logits):
    module.memory += 1


def change_a_weight(module, x, logits):
    module.inner.conv2.bias.data.mul_(0.9)


def set_a_hook(module, x, logits):
    module.inner.conv2.register_forward_hook(clamp)


def turn_a_buffer(module, x, logits):
    module.memory = module.memory.t().contiguous().t()


def keep_a_gradient(module, x, logits):
    module.inner.conv2.bias.grad = torch.ones(3, dtype=logits.dtype)


def exchange_a_hook(module, x, logits):
    hooks = module.inner.act._forward_hooks
    hooks[next(iter(hooks))] = lambda *given: None


def go_deep(module, x, logits):
    module.nested[0][0][0][0][0][0][0][0][0].append(1)


class Other(torch.nn.Module):
    def forward(self, x, edge_index):
        return self.inner(x, edge_index)


STATE = {
    "a function": (lambda m, *_: setattr(m, "change", count), "'change'"),
    "a class": (lambda m, *_: setattr(m, "__class__", Other), "'__class__'"),
    "a class of a part": (lambda m, *_: setattr(m.inner.act, "__class__", torch.nn.ReLU), "'inner.act.__class__'"),
    "another part": (lambda m, *_: setattr(m.inner, "act", torch.nn.ReLU().eval()), "'inner.act.__class__'"),
    "the order of parts": (
        lambda m, *_: m.inner._modules.update(conv1=m.inner._modules.pop("conv1")),
        "'inner._modules'",
    ),
    "another hook": (exchange_a_hook, "'inner.act._forward_hooks'"),
    "an object that is called": (lambda m, *_: m.call(), "'call'"),
    "arguments of a function": (lambda m, *_: m.partial.args[0].append(1), "'partial'"),
    "a mark of a tensor": (lambda m, *_: setattr(m.memory, "mark", 1), "'memory'"),
    "whether a tensor has gradients": (lambda m, *_: m.memory.requires_grad_(), "'memory'"),
    "a gradient": (keep_a_gradient, "'inner.conv2.bias'"),
    "strides": (turn_a_buffer, "'memory'"),
    "data": (lambda m, *_: setattr(m.data, "mark", 1), "'data'"),
    "keys": (lambda m, *_: setattr(m, "keys", {(1,): 0}), "'keys'"),
    "a deep list": (go_deep, "'nested'"),
    "a module in a list": (lambda m, *_: setattr(m.plain[0], "mark", 1), "'plain'"),
    "a count": (count, "'calls'"),
    "logits": (keep_logits, "'last'"),
    "a list": (keep_in_a_list, "'kept'"),
    "an object": (keep_in_an_object, "'space'"),
    "a queue": (keep_in_a_queue, "'queue'"),
    "an iterator": (count_on, "'counter'"),
    "slots": (keep_in_slots, "'slots'"),
    "a buffer": (add_to_a_buffer, "'memory'"),
    "a weight": (change_a_weight, "'inner.conv2.bias'"),
    "a hook": (set_a_hook, "_forward_hooks|cuts values off"),
}


@pytest.mark.parametrize("name", STATE)
def test_modules_that_change_are_refused(name: str) -> None:
    """The hundredth call computes something else."""
    change, words = STATE[name]
    with pytest.raises(VerificationError, match=words):
        from_pyg(Stateful(change), data())


def test_modules_do_not_see_that_they_are_followed() -> None:
    """As hooks would show them."""

    class Looking(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = gcn()

        def forward(self, x, edge_index):
            hooks = [part._forward_hooks or part._forward_pre_hooks for part in self.modules()]
            return self.inner(x, edge_index) if any(hooks) else torch.nn.functional.relu6(self.inner(x, edge_index))

    with pytest.raises(VerificationError, match="cuts values off"):
        from_pyg(Looking(), data())


def test_sums_that_are_remembered_are_refused() -> None:
    """Later runs do not see what the neighbours have become."""

    class Remembers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.root, self.others, self.sums = torch.nn.Linear(6, 3), torch.nn.Linear(6, 3), None

        def forward(self, x, edge_index):
            if self.sums is None:
                self.sums = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
            return self.root(x) + self.others(self.sums)

    with pytest.raises(VerificationError, match="changes its own 'sums'"):
        from_pyg(Remembers(), data())


def test_answers_that_are_remembered_are_refused() -> None:
    """A module that remembers its first answer has none that depends on the attributes."""

    class Remembering(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.answer = gcn(), None

        def forward(self, x, edge_index):
            if self.answer is None:
                self.answer = self.inner(x, edge_index)
            return self.answer

    with pytest.raises(VerificationError, match="changes its own 'answer'"):
        from_pyg(Remembering(), data())


def test_a_module_may_depend_on_the_number_of_nodes() -> None:
    """Which no flip of attributes changes: the model is what the module computes on a graph of this size."""

    class Sized(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.small, self.large = gcn(), gcn(improved=True).double().float()
            torch.nn.init.ones_(self.large.conv1.lin.weight)

        def forward(self, x, edge_index):
            return (self.large if x.shape[0] > 12 else self.small)(x, edge_index)

    module = Sized()
    for nodes in (12, 13):
        of = data(nodes=nodes)
        graph, model = from_pyg(module, of)
        assert is_the_module(module, model, graph, of)


#: Odd, but sums of terms, and so the model must be the module.
HONEST = {
    "relu6 of relus": lambda m, x, h, e: m.conv2(h.relu() - (h - 6).relu(), e),
    "a scaling hook": lambda m, x, h, e: m.conv2(1.01 * h.relu(), e),
    "thrown away": lambda m, x, h, e: (h.relu(), m.conv3(x, e))[1],
    "no relu": lambda m, x, h, e: m.conv2(h, e),
    "relu of the attributes": lambda m, x, h, e: m.conv3(x.relu(), e),
    "a tensor of its own": lambda m, x, h, e: m.conv2(torch.zeros(h.shape, dtype=h.dtype).add_(h).relu(), e),
    "turned": lambda m, x, h, e: m.conv2(h.flip(0).relu(), e),
    "turned units": lambda m, x, h, e: m.conv2(h.flip(1).relu()[:, [4, 2, 0, 1, 3]], e),
    "a mask of constants": lambda m, x, h, e: m.conv2(h.relu() * torch.tensor([1.0, 0, 1, 1, 0], dtype=h.dtype), e),
    "a mask of truth values": lambda m, x, h, e: m.conv2(h.relu() * torch.tensor([True, False, True, True, True]), e),
    "other constants a node": lambda m, x, h, e: m.conv2(
        (h + torch.arange(60, dtype=h.dtype).view(12, 5) % 7).relu(), e
    ),
    "a skip": lambda m, x, h, e: m.conv2(h.relu(), e) + h[:, :3],
    "forward": lambda m, x, h, e: m.conv2.forward(h.relu(), e),
    "transposed": lambda m, x, h, e: m.conv2((torch.eye(5, dtype=h.dtype) @ h.t()).t().relu(), e),
    "einsum": lambda m, x, h, e: m.conv2(torch.einsum("nf,fg->ng", h, torch.ones(5, 5, dtype=h.dtype)).relu(), e),
    "split and put together": lambda m, x, h, e: m.conv2(torch.cat(h.split([2, 3], dim=1)[::-1], dim=1).relu(), e),
    "stacked": lambda m, x, h, e: m.conv2(torch.stack([h, h.relu()], dim=-1).sum(dim=-1), e),
    "mean of heads": lambda m, x, h, e: m.conv2(h.view(12, 1, 5).expand(12, 2, 5).mean(dim=1).relu(), e),
    "chosen nodes": lambda m, x, h, e: m.conv2(h[torch.arange(11, -1, -1)].relu(), e),
    "an autograd function that is none": lambda m, x, h, e: m.conv2(torch.func.vmap(lambda row: 2 * row)(h).relu(), e),
    "means by scatter_reduce": lambda m, x, h, e: m.conv2(
        torch.zeros_like(h).scatter_reduce(0, e[1][:, None].expand(-1, 5), h[e[0]], "mean", include_self=False).relu(),
        e,
    ),
    "a bias of the graph": lambda m, x, h, e: m.conv2((h + torch.bincount(e[0], minlength=12)[:, None]).relu(), e),
    "nodes by a mask": lambda m, x, h, e: m.conv2(
        torch.cat([h[torch.arange(12) > 4], h[torch.arange(12) <= 4]]).relu(), e
    ),
    "nodes by a mask of all": lambda m, x, h, e: m.conv2(h[torch.ones(12, dtype=torch.bool)].relu(), e),
    "nodes from the end": lambda m, x, h, e: m.conv2(h[torch.arange(-12, 0)].relu() + h[-1], e),
    "for inference": lambda m, x, h, e: torch.inference_mode()(
        lambda: m.conv2(F.linear(h.relu(), torch.eye(5).to(h)), e)
    )(),
    "edges of its own": lambda m, x, h, e: m.conv2(h.relu(), e[:, ::2]),
    "constants looked at": lambda m, x, h, e: m.conv2(h.relu(), e) if int(e.max()) < 12 and bool((e >= 0).all()) else h,
    "random numbers that are not": lambda m, x, h, e: m.conv2(F.dropout(h.relu(), 0.5, m.training), e),
    "sums of constants over edges": lambda m, x, h, e: m.conv2(
        h.index_add(0, e[1], torch.ones(e.shape[1], 5, dtype=h.dtype)).relu(), e
    ),
    "a random relu that is not": lambda m, x, h, e: m.conv2(F.rrelu(h, training=m.training), e),
    "hidden constants": lambda m, x, h, e: (
        m.conv2(h.relu(), e) + torch.zeros(3, dtype=h.dtype).fill_(2.5).numpy().sum()
    ),
}


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.filterwarnings("ignore")
def test_whatever_is_a_sum_of_terms_is_imported_as_it_is(name: str) -> None:
    torch.manual_seed(0)
    module, of = Odd(HONEST[name]), data()
    graph, model = from_pyg(module, of)
    assert is_the_module(module, model, graph, of)


def test_graphs_without_edges_are_imported() -> None:
    module, of = Network(TAGConv(6, 5), TAGConv(5, 3)), data()
    of.edge_index = of.edge_index[:, :0]
    graph, model = from_pyg(module, of)
    assert is_the_module(module, model, graph, of)


class Swapped(torch.nn.Module):
    """Computes with other weights than it has: those that few attribute matrices tell apart."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.conv, self.way = GCNConv(6, 3), way

    def forward(self, x, edge_index):
        weight = self.conv.lin.weight
        other = weight + torch.tensor([0, 0, 0, 0, 1e-2, -1e-2], dtype=weight.dtype)
        if self.way == "functional_call":
            return torch.func.functional_call(self.conv, {"lin.weight": other}, (x, edge_index))
        if self.way == "patch":
            self.conv.lin.forward = lambda given: F.linear(given, other)
            try:
                return self.conv(x, edge_index)
            finally:
                del self.conv.lin.forward
        kept = weight.data.clone()
        weight.data.copy_(other.data)
        try:
            return self.conv(x, edge_index)
        finally:
            weight.data.copy_(kept)


@pytest.mark.parametrize("way", ["functional_call", "patch", "data"])
def test_weights_count_as_they_are_in_the_run(way: str) -> None:
    module, of = Swapped(way), data()
    graph, model = from_pyg(module, of)
    assert is_the_module(module, model, graph, of)
    kept = module.conv.lin.weight.detach().double().numpy().T
    np.testing.assert_allclose((model.weights[0] - kept)[4:], [[1e-2] * 3, [-1e-2] * 3], atol=1e-7)


def test_small_differences_of_one_node_count() -> None:
    """Node 11, by itself, has small logits, all others have large ones; what is special about it must be in the model."""

    class Moved(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(6, 3)

        def forward(self, x, edge_index):
            change = torch.zeros(12, 3, dtype=x.dtype)
            change[11, 0] = 1e-3
            return self.conv(x, edge_index) + change

    module, of = Moved(), data()
    of.x[:11, 0], of.x[11, 0] = 1, 0
    with torch.no_grad():
        module.conv.lin.weight[:, 0] *= 1e9
    graph, model = from_pyg(module, of)
    with torch.no_grad():
        theirs = module.double()(of.x.double(), of.edge_index)[11].numpy()
    np.testing.assert_allclose(model.logits(graph)[11], theirs, atol=1e-9)


def test_units_that_no_input_wakes_are_looked_at_all_the_same() -> None:
    """The first unit is never positive in any run; what is done to it counts."""
    module, of = (
        Network(GCNConv(6, 5), GCNConv(5, 3), between=lambda h: h.relu() * torch.tensor([7, 1, 1, 1, 1]).to(h)),
        data(),
    )
    with torch.no_grad():
        module.conv1.bias[0] = -1e6
    _, model = from_pyg(module, of)
    expected = 7 * module.conv2.lin.weight.detach().double().numpy()[:, 0]
    np.testing.assert_allclose(model.weights[1][0], expected)
    module.between = lambda h: torch.cat([h[:, :1].clamp(max=6), h[:, 1:]], dim=1).relu()
    with pytest.raises(VerificationError, match="cuts values off"):
        from_pyg(module, of)


class Quiet(torch.nn.Module):
    """Adds something that is 0 on all inputs that are tried: all but for nodes that have each of their 30 attributes."""

    def __init__(self, then, prepare=lambda module: None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.base, self.last, self.then = torch.nn.Linear(30, 3), torch.nn.Linear(4, 3), then
        self.register_buffer("weight", torch.arange(1.0, 5.0)[None])
        prepare(self)

    def forward(self, x, edge_index):
        return self.base(x) + self.last(self.then(self, (x.sum(1, keepdim=True) - 29.5).relu() @ self.weight))


def wide() -> Data:
    made = data(nodes=8)
    made.x = torch.tensor(np.random.default_rng(0).random((8, 30)) < 0.4).float()
    return made


def is_quiet(make, of=None) -> bool:
    """Whether the model of a module is what the module is when it is called for the first time, with many attributes, too."""
    of = wide() if of is None else of
    graph, model = from_pyg(make(), of)
    chance = np.random.default_rng(1)
    for x in (chance.random(of.x.shape) < chance.random() for _ in range(4)):
        x[chance.random(len(x)) < 0.5] = True
        module = make().eval()
        with torch.no_grad():
            theirs = module(torch.tensor(x).to(next(module.parameters()).dtype), of.edge_index).double().numpy()
        ours = model.logits(nodeproof.Graph(graph.adjacency, x, directed=True, keep_self_loops=True))
        allowed = 1e-5 * np.maximum(1, np.abs(ours).max(axis=1, keepdims=True))
        if not (np.abs((theirs - theirs[:, :1]) - (ours - ours[:, :1])) <= allowed).all():
            return False
    return True


def zeros(g):
    return torch.zeros(g.shape, dtype=g.dtype)


def lifted(module, g):
    kept = zeros(g)
    torch.ops.aten.lift(kept).add_(g)
    return kept + g


_operators = torch.library.Library("nodeproof_aliases", "DEF")
_operators.define("same(Tensor x) -> Tensor")
_operators.impl("same", lambda x: x, "CompositeExplicitAutograd")


def the_same(module, g):
    kept = zeros(g)
    torch.ops.nodeproof_aliases.same(kept).add_(g)
    return kept + g


def norm(g):
    ones = torch.ones(4, dtype=g.dtype)
    return F.batch_norm(g if g.dim() > 2 else g.t().contiguous().t(), 0 * ones, ones)


def doubled(u):
    """Doubles what is laid out as it should be, and a copy of it otherwise."""
    u.contiguous().mul_(2)
    return u


def filled(module, g):
    kept = torch.zeros_like(norm(g))
    kept.contiguous().add_(g)
    return kept + g


def normed(module, g):
    u = norm(torch.stack([g, g]).permute(1, 2, 0))
    u.reshape(8, 8).mul_(2)
    return u[:, :, 0]


def second(g):
    ones = torch.ones(4, dtype=g.dtype)
    return torch.native_batch_norm(g, ones, ones, ones, ones, False, 0.1, 1e-5)[1]


def second_of_a_product(g):
    eye = torch.eye(8, dtype=g.dtype).to_sparse_csr()
    return torch.ops.aten._sparse_mm_reduce_impl(eye, g, "sum")[1]


#: What depends on how PyTorch lays out results, who shares their memory, and on results that are seldom read.
LAID_OUT = {
    "a view that is not called one": lifted,
    "an operator that returns its argument": the_same,
    "chosen from a turned tensor": lambda m, g: doubled(
        g.t().contiguous()[..., None].permute(2, 1, 0)[:, torch.arange(8)]
    )[0],
    "a norm, then a relu": lambda m, g: doubled(norm(g).relu()),
    "zeros like a norm": filled,
    "a second result": lambda m, g: g * (1 + second(g).numel()),
    "a second result of a product": lambda m, g: g * (1 + second_of_a_product(g).numel()),
    "a relu with noise": lambda m, g: g * F.rrelu(torch.full((4,), -1.0, dtype=g.dtype)),
    "rotated units": lambda m, g: 40 * (g + torch.tensor([0.1, 0.2, 0.3, 0.4]).to(g)).relu()[:, [1, 2, 3, 0]],
}


@pytest.mark.parametrize("name", LAID_OUT)
@pytest.mark.filterwarnings("ignore")
def test_results_are_laid_out_as_numbers_are(name: str) -> None:
    assert is_quiet(lambda: Quiet(LAID_OUT[name]))


def test_units_in_another_order_are_no_multiple_of_themselves() -> None:
    class Rotated(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.base = torch.nn.Linear(30, 3)

        def forward(self, x, edge_index):
            units = x.sum(1, keepdim=True) - torch.tensor([29.5, 29.3, 29.1]).to(x)
            return self.base(x) + 40 * units.relu()[:, [1, 2, 0]]

    assert is_quiet(Rotated)


def written(target):
    """Writes to what `target` makes."""
    return lambda m, g: target(g).copy_(g)


def with_memory_of(way):
    def then(module, g):
        kept, other = zeros(g), torch.arange(32.0).to(g).view(8, 4) * 0
        way(kept, other, g)
        kept.add_(g)
        return other + g

    return then


def of_itself_sparse(module, g):
    h = g.clone()
    return h.addmm_(torch.ones(8, 8, dtype=g.dtype).tril().to_sparse(), h)


def of_itself(module, g):
    h = g @ torch.linspace(-1, 1, 1200, dtype=g.dtype).view(4, 300)
    return h.addmm_(h, torch.linspace(-0.1, 0.1, 90000, dtype=g.dtype).view(300, 300))[:, -4:]


def turned_product(module, g):
    u = g @ torch.eye(4, dtype=g.dtype).to_sparse()
    u.t().contiguous().mul_(2)
    return u


_additions = torch.library.Library("aten", "FRAGMENT")
_additions.define("relu.nodeproof_curved(Tensor self) -> Tensor")
_additions.impl("relu.nodeproof_curved", lambda x: x * x * 10, "CPU")


def without_help(kept, other, g):
    unhelped(lambda: setattr(kept, "data", torch.ones(8, 4, dtype=g.dtype)))


#: What no number that is tried shows.
UNSEEN = {
    "strides that overlap": (
        written(lambda g: torch.zeros(64).to(g).new_zeros(64).as_strided((8, 4), (1, 1))),
        "in place",
    ),
    "windows that overlap": (written(lambda g: torch.zeros(11, dtype=g.dtype).unfold(0, 4, 1)), "in place"),
    "strides that were asked for": (
        written(lambda g: torch.empty_strided((8, 4), (1, 1), dtype=g.dtype).zero_()),
        "in place",
    ),
    "a product of itself": (of_itself, "another part of it"),
    "a sparse product of itself": (of_itself_sparse, "another part of it"),
    "a product that is turned": (turned_product, "in place"),
    "a norm of permuted values": (normed, "in place"),
    "other memory": (with_memory_of(lambda kept, other, g: kept.set_(other)), "memory of another"),
    "other memory by an operator": (
        with_memory_of(lambda kept, other, g: torch.ops.aten.set_data(kept, g)),
        "memory of another",
    ),
    "other memory without help": (with_memory_of(without_help), "memory of another|setting `data`"),
    "an operator under the name of another": (lambda m, g: torch.ops.aten.relu.nodeproof_curved(g), "cannot follow"),
    "what the memory had": (lambda m, g: g * torch.empty(4, dtype=g.dtype), "not finite"),
    "a mask for training": (lambda m, g: g + torch.native_dropout(g, 0.5, False)[1], "for training"),
}


@pytest.mark.parametrize("name", UNSEEN)
@pytest.mark.filterwarnings("ignore")
def test_what_no_number_shows_is_refused(name: str) -> None:
    then, words = UNSEEN[name]
    with pytest.raises(VerificationError, match=words):
        from_pyg(Quiet(then), wide())


#: Operations that fail where there are values.
FAILING = {
    "into an expanded tensor": lambda h, g: torch.zeros(1, 4, dtype=g.dtype).expand(8, 4).add_(g),
    "index_add_ of itself": lambda h, g: h.index_add_(0, torch.arange(8), h),
    "scatter_add_ of itself": lambda h, g: h.scatter_add_(0, torch.arange(8)[:, None].expand(8, 4), h),
    "times whole numbers": lambda h, g: h @ (3 * torch.eye(4, dtype=torch.long)),
    "times half precision": lambda h, g: h + torch.mv(h, torch.ones(4, dtype=torch.half))[:, None],
    "sparse whole numbers": lambda h, g: torch.sparse.mm(3 * torch.eye(8, dtype=torch.long).to_sparse(), h),
    "index_select by int16": lambda h, g: 3 * h.index_select(0, torch.arange(8, dtype=torch.int16)),
    "index_add by floats": lambda h, g: h.index_add(0, torch.arange(8).float(), 2 * h),
    "lengths of int16": lambda h, g: 3 * torch.segment_reduce(h, "sum", lengths=torch.ones(8, dtype=torch.int16)),
}


@pytest.mark.parametrize("name", FAILING)
def test_failures_of_values_alone_are_not_passed_over(name: str) -> None:
    def then(module, g):
        try:
            return FAILING[name](g.clone(), g)
        except RuntimeError:
            return g

    with pytest.raises(VerificationError, match="continues after an operation that failed"):
        from_pyg(Quiet(then), wide())


def test_a_first_call_that_differs_is_refused() -> None:
    """A function knows by its closure that it was called before."""

    def prepare(module):
        calls = itertools.count()
        module.act = lambda g: (g * g * 10).clamp(max=3) if next(calls) == 0 else g

    with pytest.raises(VerificationError, match="other operations"):
        from_pyg(Quiet(lambda m, g: m.act(g), prepare), wide())


def test_copies_that_are_something_else_are_refused() -> None:
    class Copied(torch.nn.Linear):
        def __deepcopy__(self, memory):
            return torch.nn.Linear(6, 3)

    with pytest.raises(VerificationError, match="a Copied with a __deepcopy__ of its own"):
        from_pyg(Copied(6, 3), data())
    module = gcn()
    module.kept = [Copied(6, 3)]
    with pytest.raises(VerificationError, match="a Copied with a __deepcopy__ of its own"):
        from_pyg(module, data())


class Nearest(torch.nn.Module):
    """Keeps edges that it has made of attributes, under a name that PyTorch Geometric keeps its own by."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self._cached_edge_index = GCNConv(6, 3), None

    def forward(self, x, edge_index):
        if self._cached_edge_index is None:
            self._cached_edge_index = torch.stack([torch.cdist(x, x).argmax(1), torch.arange(len(x))])
        return self.conv(x, self._cached_edge_index)


class Kept(Nearest):
    """Keeps attributes in place of edges."""

    def forward(self, x, edge_index):
        if self._cached_edge_index is None:
            self._cached_edge_index = (x.flip(0), None)
        return self.conv(x + self._cached_edge_index[0], edge_index)


class Captured(torch.nn.Module):
    """Uses a layer that is no part of it."""

    def __init__(self, layer) -> None:
        super().__init__()
        self.root, self.conv = torch.nn.Linear(6, 3), lambda x, e: layer(x.float(), e).to(x.dtype)

    def forward(self, x, edge_index):
        return self.root(x) + self.conv(x, edge_index)


def test_caches_of_attributes_do_not_hide() -> None:
    of = data()
    with pytest.raises(VerificationError, match="cannot follow"):
        from_pyg(Nearest(), of)
    with pytest.raises(VerificationError, match="changes its own '_cached_edge_index'"):
        from_pyg(Kept(), of)
    with pytest.raises(VerificationError, match="changes its own 'conv'"):
        from_pyg(Captured(SGConv(6, 3, K=2, cached=True)), of)


def test_caches_of_layers_in_a_list_are_emptied() -> None:
    class Listed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.root, self.convs = torch.nn.Linear(30, 3), [SGConv(30, 3, K=2, cached=True)]

        def forward(self, x, edge_index):
            return self.root(x) + self.convs[0](x, edge_index)

    assert is_quiet(Listed)
    of = wide()

    def used():
        module = Listed().eval()
        with torch.no_grad():
            module(of.x, of.edge_index)
        return module

    assert from_pyg(used(), of)[1] == from_pyg(Listed(), of)[1]


class Weak(torch.nn.Module):
    """Small entries of a propagation, with large weights behind them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin = torch.nn.Linear(30, 3, bias=False, dtype=torch.float64)

    def forward(self, x, edge_index):
        return self.lin(x + 1e-17 * torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])) * 1e17


class Uneven(Weak):
    """A constant that is small at one node, and large at others."""

    def forward(self, x, edge_index):
        mask = torch.ones(len(x), 1, dtype=x.dtype)
        mask[0] = 0
        return mask * self.lin(x) + (mask + 1e-16 * (1 - mask)) * torch.tensor([[0, 1e16, 0]], dtype=x.dtype)


@pytest.mark.parametrize("make", [Weak, Uneven])
def test_small_entries_are_not_lost_to_a_name(make) -> None:
    assert is_quiet(make)


def test_scripted_parts_are_followed_but_for_lists() -> None:
    of = data()
    with pytest.warns(FutureWarning, match="script"):
        relu, lists = torch.jit.script(torch.nn.ReLU()), torch.jit.script(Lists())
    module = Network(GCNConv(6, 5), GCNConv(5, 3), between=relu)
    graph, model = from_pyg(module, of)
    assert is_the_module(module, model, graph, of)
    with pytest.raises(VerificationError, match="tolist.* in a scripted part"):
        from_pyg(Network(GCNConv(6, 5), GCNConv(5, 3), between=lists), of)


class Lists(torch.nn.Module):
    def forward(self, x):
        values: list[list[float]] = x.tolist()
        return x * len(values)


class Late(torch.nn.Module):
    """Changes a constant after its use; units that no attributes here wake show whether that was noticed."""

    def __init__(self) -> None:
        super().__init__()
        self.base = gcn()

    def forward(self, x, edge_index):
        threshold = torch.tensor([-5.5, -5.4, -5.6]).to(x)
        woken = (x @ torch.ones(6, 3).to(x) + threshold).relu()
        threshold.add_(torch.tensor([0.4, -0.4, 0.3]).to(x))
        return self.base(x, edge_index) + woken


def test_constants_may_change_after_their_use() -> None:
    of, module = data(), Late().eval()
    graph, model = from_pyg(module, of)
    full = of.clone()
    full.x = torch.ones_like(of.x)
    theirs = module(full.x, full.edge_index).detach().double().numpy()
    ours = Evaluator(model, graph).logits(full.x.numpy().astype(bool))
    assert np.abs((theirs - theirs[:, :1]) - (ours - ours[:, :1])).max() < 1e-4


def test_what_all_logits_have_in_common_hides_nothing() -> None:
    ours = np.random.default_rng(0).normal(size=(5, 3))
    theirs = ours + 2.0**34
    assert _comparison(theirs, ours, 1e-9, torch.float64).largest < 1e-4
    theirs[2, 1] += 0.5
    with pytest.raises(VerificationError, match="at node 2"):
        _comparison(theirs, ours, 1e-9, torch.float64)


def test_a_tensor_of_ones_own_does_not_take_followed_values() -> None:
    class Takes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = gcn()

        def forward(self, x, edge_index):
            values = [[0.0] * 6] * 12
            try:
                other = torch.tensor(values).to(x)
                other.data = x
                values = other.tolist()
            except Exception:
                pass
            return self.base(x, edge_index) + torch.tensor(values).to(x)[:, :3] ** 2

    with pytest.raises(VerificationError, match="setting `data`"):
        from_pyg(Takes(), data())


def test_a_module_that_is_copied_in_its_own_way_is_refused() -> None:
    class Other(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = gcn()

        def cpu(self):
            return self.inner

        def forward(self, x, edge_index):
            return torch.nn.functional.relu6(self.inner(x, edge_index))

    with pytest.raises(VerificationError, match="'cpu'|a cpu of its own"):
        from_pyg(Other(), data())


def test_a_cache_of_calls_is_state() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.calls = gcn(), functools.lru_cache(None)(lambda key: key)

        def forward(self, x, edge_index):
            self.calls(object())
            logits = self.inner(x, edge_index)
            return logits if self.calls.cache_info().currsize < 40 else -logits

    with pytest.raises(VerificationError, match="'calls'"):
        from_pyg(Counting(), data())


def test_parts_without_entries_are_left_out() -> None:
    class Empty(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = gcn()

        def forward(self, x, edge_index):
            return torch.cat([torch.empty(0), self.inner(x, edge_index)], 1)

    from_pyg(Empty(), data())


def test_complex_numbers_are_refused() -> None:
    module = gcn()
    module.register_buffer("phase", torch.tensor([1 + 2j]))
    with pytest.raises(nodeproof.InputError, match="'phase' has complex numbers"):
        from_pyg(module, data())


def test_tensors_with_steps_are_state_like_others() -> None:
    module = gcn()
    module.register_buffer("one", torch.ones(1).expand(3))
    module.other = torch.arange(6.0)[::2]
    assert from_pyg(module, data())[1].propagation == "symmetric-gcn"
