"""PyTorch Geometric: whatever is not a network of layers of terms is refused, however well it hides."""

from __future__ import annotations

import copy
import ctypes
import itertools
import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nodeproof
from nodeproof import VerificationError, from_pyg
from nodeproof.pyg.verify import _comparison

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
F = torch.nn.functional

from networks import Network, Odd, clamp, data, gcn, hooked, is_the_module, unhelped  # noqa: E402
from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import GCN, GCNConv  # noqa: E402


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
    "absolute values": (torch.abs, r"takes magnitudes .*; torch.relu\(h\) \+ torch.relu\(-h\)"),
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


def put(h, place, value):
    """The same with something else at a place."""
    h = h.clone()
    h[place] = value
    return h


def under_another_name(h):
    """A view of what is written to by another one."""
    h = h.clone()
    view = h.view(h.shape)
    h[0] = 0.0
    return view


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
    "an autograd function": (behind(Squared.apply), "takes magnitudes"),
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
    "a mask of infinities": (behind(lambda h: h.masked_fill(torch.arange(5) == 1, -torch.inf)), "not finite"),
    "single entries": (behind(lambda h: h.index_put((torch.tensor([0]),), torch.zeros(1, 5))), "use torch.where"),
    "several values": (behind(lambda h: put(h, torch.tensor([0, 1]), torch.ones(2, 5))), "writes several values"),
    "a row of several values": (behind(lambda h: put(h, 0, torch.arange(5.0).to(h.dtype))), "in place"),
    "some units of some nodes": (behind(lambda h: put(h, (slice(2, 5), 0), 0.0)), "write whole rows, or whole columns"),
    "a row of another": (behind(lambda h: put(h, 0, h[1])), "in place"),
    "a row that is added to": (behind(lambda h: put(h, 0, h[0] + 1)), "in place"),
    "a view that was made before": (behind(under_another_name), "in place"),
    "a row of infinities": (behind(lambda h: put(h, 0, torch.inf)), "not finite"),
    "a mask of what is written": (behind(lambda h: h.index_put((h > -9,), torch.tensor(0.0))), "decides by them"),
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


def test_one_number_a_node_is_no_classifier() -> None:
    of = data()
    with pytest.raises(nodeproof.InputError, match=r"return torch.cat\(\[0 \* z, z\], dim=1\)"):
        from_pyg(GCN(of.num_features, 4, 2, 1), of)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("ignore")
def test_whatever_is_no_sum_of_terms_is_refused(name: str) -> None:
    between, words = ODD[name]
    torch.manual_seed(0)
    with pytest.raises(nodeproof.InputError, match=words):
        from_pyg(Odd(between), data())


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


def test_what_all_logits_have_in_common_hides_nothing() -> None:
    ours = np.random.default_rng(0).normal(size=(5, 3))
    theirs = ours + 2.0**34
    assert _comparison(theirs, ours, 1e-9, torch.float64).largest < 1e-4
    theirs[2, 1] += 0.5
    with pytest.raises(VerificationError, match="at node 2"):
        _comparison(theirs, ours, 1e-9, torch.float64)


def test_complex_numbers_are_refused() -> None:
    module = gcn()
    module.register_buffer("phase", torch.tensor([1 + 2j]))
    with pytest.raises(nodeproof.InputError, match="'phase' has complex numbers"):
        from_pyg(module, data())
