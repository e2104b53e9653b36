"""PyTorch Geometric: modules that change from one run to the next, or are copied as something else, are refused."""

from __future__ import annotations

import functools
import itertools
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

from nodeproof import VerificationError, from_pyg
from nodeproof.pyg.evaluate import Evaluator

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
F = torch.nn.functional

from networks import Network, Quiet, clamp, data, gcn, is_quiet, wide  # noqa: E402
from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import GCNConv, SGConv  # noqa: E402


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
    module.last = getattr(module, "last", 0) + logits


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
    "keys": (lambda m, *_: setattr(m, "keys", {**m.keys, (1,): 0}), "'keys'"),
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


class Storing(torch.nn.Module):
    """Two convolutions, and what `store` does between them with hidden units, which gives others."""

    def __init__(self, store) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.store, self.conv1, self.conv2 = store, GCNConv(6, 4), GCNConv(4, 3)

    def forward(self, x, edge_index):
        return self.conv2(self.store(self, self.conv1(x, edge_index).relu()), edge_index)


def embed(module, h):
    module.emb, module.nodes, module.several = h, len(h), [h, (h.mean(),)]
    return h


def embed_and_read(module, h):
    module.emb = h
    return module.emb if hasattr(module, "emb") else 2 * h


def embed_in_a_part(module, h):
    module.conv1.seen = h
    return module.conv1.seen


def embed_twice(module, h):
    module.emb = h
    module.emb = module.emb + module.emb
    return module.emb / 2


HARMLESS = {
    "an embedding": embed,
    "one that is read": embed_and_read,
    "one of a part": embed_in_a_part,
    "one that is made anew": embed_twice,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_stored_and_not_read_by_a_later_run_is_harmless(name: str) -> None:
    of, module = data(), Storing(HARMLESS[name])
    expected = from_pyg(Storing(lambda _, h: h), of)[1]
    had = dict(vars(module)), dict(vars(module.conv1))
    assert from_pyg(module, of)[1] == expected
    assert (dict(vars(module)), dict(vars(module.conv1))) == had, "the module stores nothing where it is imported"
    # Trained, and with what training left, of which PyTorch makes no copies.
    module(of.x, of.edge_index).sum().backward()
    had = dict(vars(module)), dict(vars(module.conv1))
    assert from_pyg(module, of)[1] == expected and type(module) is Storing and type(module.conv1) is GCNConv
    for now, before in zip((vars(module), vars(module.conv1)), had, strict=True):
        assert now.keys() == before.keys() and all(now[key] is before[key] for key in now)


def read_first(module, h):
    before = getattr(module, "emb", None)
    module.emb = h
    return h if before is None else h + before


def ask_first(module, h):
    if not hasattr(module, "emb"):
        module.emb = h
    return module.emb


def read_and_go_on(module, h):
    try:
        h = h + module.emb
    except Exception:
        pass
    module.emb = h
    return h


def read_from_the_dictionary(module, h):
    before = vars(module).get("emb")
    module.emb = h
    return h if before is None else h + before


def read_what_a_part_stored(module, h):
    before = getattr(module.conv2, "seen", 0.0)
    module.conv2.seen = h
    return h + before


def store_now_and_then(module, h):
    if not hasattr(module, "flag"):
        module.emb = 0 * h
    module.flag = True
    return h + module.emb


def change_a_list(module, h):
    module.emb = getattr(module, "emb", [])
    module.emb.append(h)
    return sum(module.emb)


def exchange_a_function(module, h):
    module.store = lambda _, h: h.abs()
    return h


def keep_a_buffer(module, h):
    module.register_buffer("emb", h)
    return h


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (read_first, "'emb' when it is run, and reads what was there before"),
        (ask_first, "'emb' when it is run, and reads what was there before"),
        (read_and_go_on, "'emb' when it is run, and reads what was there before"),
        (read_what_a_part_stored, "'conv2.seen' when it is run, and reads what was there before"),
        (store_now_and_then, "when it is run, and reads what was there before"),
        (change_a_list, "'emb' when it is run, and reads what was there before"),
        (exchange_a_function, "'store' when it is run, and reads what was there before"),
        (keep_a_buffer, "'emb' when it is run, so that the next run"),
        (read_from_the_dictionary, "differ"),
    ],
)
def test_what_a_later_run_reads_is_refused(store, words: str) -> None:
    with pytest.raises(VerificationError, match=words):
        from_pyg(Storing(store), data())


def test_what_an_earlier_run_left_is_refused() -> None:
    of, module = data(), Storing(read_first)
    with torch.no_grad():
        module.eval()(of.x, of.edge_index)
    with pytest.raises(VerificationError, match="reads what was there before"):
        from_pyg(module, of)


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
    for module in (Nearest(), Kept()):
        with pytest.raises(VerificationError, match="changes its own '_cached_edge_index'"):
            from_pyg(module, of)
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


def test_tensors_with_steps_are_state_like_others() -> None:
    module = gcn()
    module.register_buffer("one", torch.ones(1).expand(3))
    module.other = torch.arange(6.0)[::2]
    assert from_pyg(module, data())[1].propagation == "symmetric-gcn"


class Marked(torch.nn.Module):
    """Does something else if an attribute is one certain object, which no copy of it is."""

    MARK = object()

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.mark = gcn(), self.MARK

    def forward(self, x, edge_index):
        logits = self.inner(x, edge_index)
        return -logits if self.mark is self.MARK else logits


class Keyed(torch.nn.Module):
    """Knows its layers by where they are in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = gcn()
        self.factors = {id(self.inner): 3.0}

    def forward(self, x, edge_index):
        return self.factors.get(id(self.inner), 1.0) * self.inner(x, edge_index).relu()


def wrapped():
    """A compiled module with a hook that is the wrapper's."""
    module = torch.compile(gcn(), backend="eager")
    module.register_forward_hook(lambda module, given, output: -output)
    return module


@pytest.mark.parametrize("make", [Marked, Keyed, wrapped])
def test_the_module_itself_is_run_too(make) -> None:
    with pytest.raises(VerificationError, match="the module computes something else"):
        from_pyg(make(), data())


def test_the_module_is_run_on_attributes_as_they_are() -> None:
    class Signed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = gcn()

        def forward(self, x, edge_index):
            return self.inner((-x).float(), edge_index)

    of = data()
    of.x = of.x.to(torch.uint8)
    with pytest.raises(VerificationError, match="cannot be run|computes something else"):
        from_pyg(Signed(), of)
    assert from_pyg(gcn(), of)[1].propagation == "symmetric-gcn"


def test_what_has_the_name_of_a_cache_only_is_kept() -> None:
    class Constant(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = gcn()
            self.register_buffer("_cached_x", torch.arange(3.0))

        def forward(self, x, edge_index):
            return self.inner(x, edge_index) + self._cached_x

    of, module = data(), Constant()
    _, model = from_pyg(module, of)
    without = from_pyg(module.inner, of)[1]
    assert np.allclose(model.layers[-1].bias - without.layers[-1].bias, [0, 1, 2])


def test_scripted_parts_do_not_change_themselves() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x if self.calls < 5 else -x

    module = Network(GCNConv(6, 5), GCNConv(5, 3), last=torch.jit.script(Counting()))
    with pytest.raises(VerificationError, match="changes attributes of its own in a scripted part"):
        from_pyg(module, data())


def test_weights_of_edges_are_not_taken_for_anything_else() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = gcn()

        def forward(self, x, edge_index, node_scale=None, *rest):
            assert node_scale is None
            return self.inner(x, edge_index)

    from_pyg(Scaled(), data("weights"))


def test_a_module_that_is_being_trained_is_left_so() -> None:
    module = torch.nn.Sequential()
    module.inner, module.norm = gcn(), torch.nn.BatchNorm1d(3)
    original = module
    module.forward = lambda x, edge_index: original.norm(original.inner(x, edge_index))
    module.train()
    before = module.norm.running_mean.clone()
    from_pyg(module, data())
    assert module.training and module.norm.training
    assert torch.equal(module.norm.running_mean, before)
    module.norm.register_forward_hook(lambda norm, given, output: output**2)
    with pytest.raises(VerificationError):
        from_pyg(module, data())
    assert module.training and module.norm.training
