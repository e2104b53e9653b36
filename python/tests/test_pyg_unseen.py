"""PyTorch Geometric: what shows in no number, such as memory, layout and order, is followed as numbers are."""

from __future__ import annotations

import pytest

from nodeproof import VerificationError, from_pyg

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
F = torch.nn.functional

from networks import Quiet, is_quiet, unhelped, wide  # noqa: E402


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
