"""Training networks, robust ones included."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import _core, notebook
from ._checks import flag, instance, listed, number, whole
from ._files import StrPath, path_text
from ._optional import optional
from ._progress import Progress, observer
from .budget import Budget
from .certification import certify
from .errors import InputError
from .graph import Graph
from .model import Model, given_propagation
from .results import Certificates
from .split import Share, Split

#: Cross entropy; of worst-case logits; hinge loss of worst-case margins of labelled nodes; and of unlabelled ones, too.
Method = Literal["ce", "rce", "rh", "rh-u"]

#: How the layers of a network are put together (`docs/training.md`).
Architecture = Literal["gcn", "sage", "gin", "sgc", "appnp", "gcnii", "mlp"]

#: Options that count something; all others are numbers, or have names.
_WHOLE = ("steps", "labelled_steps", "batch", "labelled_batch", "warm_up", "patience")
_MAY_BE_NONE = ("batch", "labelled_batch", "saturation", "clip", "patience")


class _Default:
    """Stands for the default of the method, where `None` means something else."""

    def __repr__(self) -> str:
        return "the method's default"


DEFAULT: Any = _Default()


@dataclass(frozen=True)
class Training:
    """What training came to: the model, how it got there, and what it is worth."""

    graph: Graph
    model: Model
    method: str
    split: Split
    #: What each step came to, as in the log of the command line (`docs/formats.md`), without accuracies.
    log: list[dict[str, Any]]
    steps: int
    #: Certificates of all nodes under the budget of training, by the engine that `evaluate` names; `None` without it.
    certificates: Certificates | None
    #: Shares of the nodes whose predicted class is their label; `None` without `evaluate`.
    accuracy_labelled: float | None
    accuracy_unlabelled: float | None

    @property
    def robust_share(self) -> float | None:
        """The share of all nodes that are proven robust."""
        return None if self.certificates is None else float(self.certificates.robust.mean())

    def to_pandas(self) -> Any:
        """The log as a `pandas.DataFrame`, a row a step."""
        table = optional("pandas", "pandas", "to_pandas()").DataFrame(self.log)
        return table[["step", *(column for column in table.columns if column != "step")]] if len(table) else table

    def __repr__(self) -> str:
        facts = [f"method={self.method!r}", f"steps={self.steps}"]
        for name in ("accuracy_labelled", "accuracy_unlabelled", "robust_share"):
            value = getattr(self, name)
            facts += [] if value is None else [f"{name}={value:.3f}"]
        return f"Training({', '.join(facts)})"

    def _repr_html_(self) -> str:
        shares = (
            ("accuracy, labelled", self.accuracy_labelled),
            ("accuracy, unlabelled", self.accuracy_unlabelled),
            ("robust", self.robust_share),
        )
        return notebook.training(self.method, repr(self.split), self.steps, shares)


def train(
    graph: Graph,
    method: Method,
    *,
    global_budget: int,
    local_budget: int | str = "1%",
    add_only: bool = False,
    delete_only: bool = False,
    protect_attributes: Iterable[int | str] = (),
    protect_nodes: Iterable[int] = (),
    local_budget_at: Mapping[int, int] | None = None,
    split: Split | None = None,
    train: Share = "10%",
    train_per_class: int | None = None,
    validation: Share = "0%",
    split_seed: int | None = None,
    seed: int = 0,
    architecture: Architecture = "gcn",
    hidden: int | Sequence[int] = DEFAULT,
    steps: int = DEFAULT,
    labelled_steps: int = DEFAULT,
    batch: int | None = DEFAULT,
    labelled_batch: int | None = DEFAULT,
    learning_rate: float = DEFAULT,
    schedule: Literal["constant", "cosine"] = DEFAULT,
    weight_decay: float = DEFAULT,
    dropout: float = DEFAULT,
    attribute_dropout: float = DEFAULT,
    cross_entropy_weight: float = DEFAULT,
    robust_weight: float = DEFAULT,
    worst_case: Literal["dual", "first-order"] = DEFAULT,
    warm_up: int = DEFAULT,
    labelled_margin: float = DEFAULT,
    unlabelled_margin: float = DEFAULT,
    saturation: float | None = DEFAULT,
    clip: float | None = DEFAULT,
    patience: int | None = DEFAULT,
    propagation: Any = DEFAULT,
    checkpoint: StrPath | None = None,
    checkpoint_every: int = 50,
    resume: bool = False,
    evaluate: bool = True,
    threads: int = 0,
    progress: Progress = None,
) -> Training:
    """Trains a network on the labelled nodes of a split; options and defaults are those of `nodeproof train`.

    Args:
        graph: the graph, with labels.
        method: "ce" is standard training, "rce", "rh" and "rh-u" are the paper's robust losses.
        global_budget, …, local_budget_at: what the network is to withstand; see `Budget`.
        split: which nodes are labelled. Without it one is drawn: `train` (a share of each class) or `train_per_class` (a
            number), `validation`, and `split_seed`, which is `seed` if it is not given.
        seed: seed of initialisation, dropout and batches. The same input gives the same bits.
        architecture: how the layers are put together: "gcn", "sage", "gin", "sgc", "appnp", "gcnii" or "mlp".
        hidden: units of each hidden layer: 32 (gcnii three of 32, sgc has none).
        steps: most steps: ce 300, rce 400, rh 200, rh-u 800, the latter after `labelled_steps`, 100.
        batch: nodes whose worst-case margins a step looks at, or `None` for all: 256.
        labelled_batch: labelled nodes whose cross entropy a step looks at, drawn anew each time, or `None` for all.
        learning_rate, schedule: of Adam: 0.01; "constant" (ce) or "cosine" (all others).
        weight_decay: weight of the L2 term; suited to the graph and the method (`docs/training.md`).
        dropout, attribute_dropout: shares left out: of hidden activations (0.5, gin 0), of attributes in the worst-case loss.
        cross_entropy_weight, robust_weight: weights of the two losses: 1 (rce 0.1), and suited to the graph.
        worst_case: what worst-case margins are taken to be: "dual", or from two hidden layers on "first-order".
        warm_up: steps over which the worst-case loss grows to its weight: rce 150, rh 0, rh-u 200.
        labelled_margin, unlabelled_margin: worst-case margins asked for: log 9 (rh, rh-u), and log 1.5 (rh-u).
        saturation: how much an unlabelled node may miss until its pull is halved, or `None`: 1 (rh-u).
        clip: longest gradient, or `None`, the default.
        patience: steps without a better loss that end a phase, or `None`: ce 50, others `None`.
        propagation: what a node takes from its neighbours, see `Model`: "symmetric-gcn". sage, gin and mlp have their own.
        checkpoint, checkpoint_every, resume: keeps there what is needed to continue after an interrupt, and continues.
        evaluate: certifies all nodes at the end, with the `fast` engine; with `tight` from two hidden layers
            on, and on other attributes than plain bits. Without it nothing looks at all nodes, and accuracies are `None`, too.
        threads, progress: as in `certify`.

    The model's `metadata` say how it was trained: `model.write` writes the file that `nodeproof train` writes.

    >>> import nodeproof
    >>> training = nodeproof.train(nodeproof.Graph.bundled(), "ce", global_budget=5, steps=40)
    >>> training.model, training.steps
    (Model(layers=[2048, 32, 6], propagation='symmetric-gcn'), 40)
    """
    method = str(method).lower()  # type: ignore[assignment]
    budget = Budget(
        global_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at or {}
    )
    on_graph = budget.on(graph)
    given: dict[str, Any] = {
        "hidden": hidden, "steps": steps, "labelled_steps": labelled_steps, "batch": batch,
        "labelled_batch": labelled_batch,
        "learning_rate": learning_rate, "schedule": schedule, "weight_decay": weight_decay, "dropout": dropout,
        "attribute_dropout": attribute_dropout, "cross_entropy_weight": cross_entropy_weight,
        "robust_weight": robust_weight, "worst_case": worst_case, "warm_up": warm_up,
        "labelled_margin": labelled_margin, "unlabelled_margin": unlabelled_margin, "saturation": saturation,
        "clip": clip, "patience": patience,
    }  # fmt: skip
    options = {name: _checked(name, value) for name, value in given.items() if value is not DEFAULT}
    options |= {"seed": whole("seed", seed), "architecture": str(architecture).lower()}
    if propagation is not DEFAULT:
        options["propagation"] = given_propagation(propagation)
    threads = whole("threads", threads)
    checkpoint_every = whole("checkpoint_every", checkpoint_every, least=1)
    if flag("resume", resume) and checkpoint is None:
        raise InputError("resume=True needs a checkpoint to go on from; give checkpoint=")
    if split is not None:
        instance("split", split, Split, "Split.stratified(graph)")
    else:
        if graph.labels is None:
            raise InputError("the graph has no labels to learn from; give it labels")
        split = Split.stratified(
            graph,
            train=train,
            train_per_class=train_per_class,
            validation=validation,
            seed=seed if split_seed is None else split_seed,
        )
    kept: Any = (
        None if checkpoint is None else {"path": path_text(checkpoint), "every": checkpoint_every, "resume": resume}
    )
    with observer(progress, "train") as tell:
        made, lines, metadata, taken = _core.train(
            graph._core, split._core, method, on_graph, options, threads, kept, tell
        )
    model = Model._of(made, metadata)
    labelled = unlabelled = certificates = None
    if flag("evaluate", evaluate):
        labelled, unlabelled = model.accuracy(graph, split.train), model.accuracy(graph, split.unlabelled)
        certificates = certify(
            graph, model, engine=made.first_engine, time_limit=None, threads=threads, progress=progress, **vars(budget)
        )
    result = Training(
        graph, model, method, split, [json.loads(line) for line in lines], taken, certificates, labelled, unlabelled
    )
    model.metadata |= _worth(result)
    return result


def _checked(name: str, value: Any) -> Any:
    """The value of an option, if it is of the right kind."""
    if value is None and name in _MAY_BE_NONE:
        return None
    if name == "hidden":
        sizes = [value] if hasattr(value, "__index__") else listed("hidden", value, "sizes")
        return [whole("hidden", units) for units in sizes]
    if name in ("schedule", "worst_case"):
        return str(value)
    return whole(name, value) if name in _WHOLE else number(name, value)


def _worth(result: Training) -> dict[str, str]:
    """What the file of a model says about its worth, if that was evaluated."""
    worth = {}
    for name in ("accuracy_labelled", "accuracy_unlabelled", "robust_share"):
        value = getattr(result, name)
        if value is not None and result.certificates is not None:
            worth[name] = repr(int(value)) if value == int(value) else repr(value)
    return worth
