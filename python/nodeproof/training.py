"""Training networks, robust ones included."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from . import _core, notebook
from ._checks import flag, instance, listed, number, whole
from ._files import StrPath, path_text
from ._given import given
from ._optional import optional
from ._progress import Progress, observer
from .budget import GLOBAL, LOCAL, NO, NONE, NOTHING, Budget, Count, budget_of, parts_of
from .certification import certify
from .errors import InputError
from .figure import Figure, look
from .graph import Graph
from .model import Model, given_propagation
from .nodes import check_split
from .results import Certificates
from .split import TRAIN, UNSET, VALIDATION, Share, Split

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


class TrainingSummary(TypedDict):
    """How a network was trained, and what it is worth."""

    method: str
    steps: int
    accuracy_labelled: float | None
    accuracy_unlabelled: float | None
    robust_share: float | None


@dataclass(frozen=True, repr=False)
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
        """The share of all nodes that are proven robust; `None` without `evaluate`, or without a budget."""
        return None if self.certificates is None else self.certificates.robust_share

    @property
    def summary(self) -> TrainingSummary:
        """How it was trained, and what it is worth; `None` where that was not looked at."""
        return TrainingSummary(
            method=self.method,
            steps=self.steps,
            accuracy_labelled=self.accuracy_labelled,
            accuracy_unlabelled=self.accuracy_unlabelled,
            robust_share=self.robust_share,
        )

    def plot(self, *, title: str | None = None, width: float = 84, height: float = 58) -> Figure:
        """The mean worst-case margins of labelled and unlabelled nodes by step, as `nodeproof plot dynamics` draws them.

        Methods that look at no margins, such as "ce", need `log_margins`. Width and height are in millimetres.
        """
        options = json.loads(self.model.metadata["options"])
        aims = (options["labelled_margin"], options["unlabelled_margin"]) if self.method in ("rh", "rh-u") else None
        lines = [json.dumps(step) for step in self.log]
        return Figure(_core.plot_training(self.method, lines, aims, look(title, width, height)))

    def to_pandas(self) -> Any:
        """The log as a `pandas.DataFrame`, a row a step."""
        table = optional("pandas", "pandas", "to_pandas()").DataFrame(self.log)
        return table[["step", *(column for column in table.columns if column != "step")]] if len(table) else table

    def to_polars(self) -> Any:
        """The log as a `polars.DataFrame`, a row a step."""
        polars = optional("polars", "polars", "to_polars()")
        table = polars.DataFrame(self.log, infer_schema_length=None)
        return table.select("step", polars.exclude("step")) if len(table) else table

    def to_arrow(self) -> Any:
        """The log as a `pyarrow.Table`, a row a step."""
        pyarrow = optional("pyarrow", "arrow", "to_arrow()")
        table = pyarrow.Table.from_pylist(self.log)
        return table.select(["step", *(name for name in table.column_names if name != "step")]) if len(table) else table

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
    budget: Budget | None = None,
    *,
    global_budget: Count = GLOBAL,
    local_budget: int | str = LOCAL,
    add_only: bool = NO,
    delete_only: bool = NO,
    protect_attributes: Iterable[int | str] = NONE,
    protect_nodes: str | Iterable[int | str] = NONE,
    local_budget_at: Mapping[int | str, int] | None = NOTHING,
    split: Split | None = None,
    train: Share = TRAIN,
    train_per_class: int | None = UNSET,
    validation: Share = VALIDATION,
    split_seed: int | None = UNSET,
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
    log_margins: int = 0,
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
        budget: what the network is to withstand, a `Budget`; or its parts as keywords, `global_budget`, …, `local_budget_at`.
            "ce" can do without: then nothing is certified at the end. `protect_nodes` may name parts of the split.
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
        log_margins: certifies so many labelled and unlabelled nodes before each step, and logs their mean margins where the
            method has none, so that there is something to plot.
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
    if isinstance(method, Budget):
        raise InputError('a budget comes after the method: train(graph, "rh-u", budget)')
    instance("graph", graph, Graph, "Graph.bundled()")
    said = parts_of(
        global_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at
    )
    meant = None if budget is None and not given(said) else budget_of(budget, said)
    options_given: dict[str, Any] = {
        "hidden": hidden, "steps": steps, "labelled_steps": labelled_steps, "batch": batch,
        "labelled_batch": labelled_batch,
        "learning_rate": learning_rate, "schedule": schedule, "weight_decay": weight_decay, "dropout": dropout,
        "attribute_dropout": attribute_dropout, "cross_entropy_weight": cross_entropy_weight,
        "robust_weight": robust_weight, "worst_case": worst_case, "warm_up": warm_up,
        "labelled_margin": labelled_margin, "unlabelled_margin": unlabelled_margin, "saturation": saturation,
        "clip": clip, "patience": patience,
    }  # fmt: skip
    options = {name: _checked(name, value) for name, value in options_given.items() if value is not DEFAULT}
    options |= {"seed": whole("seed", seed), "architecture": str(architecture)}
    if propagation is not DEFAULT:
        options["propagation"] = given_propagation(propagation)
    threads = whole("threads", threads)
    checkpoint_every = whole("checkpoint_every", checkpoint_every, least=1)
    log_margins = whole("log_margins", log_margins, most=2**32 - 1)
    if flag("resume", resume) and checkpoint is None:
        raise InputError("resume=True needs a checkpoint to go on from; give checkpoint=")
    drawn = given(
        {"train": train, "train_per_class": train_per_class, "validation": validation, "split_seed": split_seed}
    )
    if split is not None:
        check_split(split, graph)
        if drawn:
            raise InputError(
                f"a split was given, and so was {next(iter(drawn))}, which is for drawing one; give one or the other"
            )
    else:
        if graph.labels is None:
            raise InputError("the graph has no labels to learn from; give it labels")
        own = drawn.pop("split_seed", None)
        split = Split.stratified(graph, **drawn, seed=seed if own is None else own)
    meant = None if meant is None else meant.by_ids(graph, split)
    on_graph = None if meant is None else meant.on(graph)
    kept: Any = (
        None if checkpoint is None else {"path": path_text(checkpoint), "every": checkpoint_every, "resume": resume}
    )
    with observer(progress, "train") as tell:
        made, lines, metadata, taken = _core.train(
            graph._core, split._core, str(method), on_graph, options, log_margins, threads, kept, tell
        )
    model = Model._of(made, metadata)
    labelled = unlabelled = certificates = None
    if flag("evaluate", evaluate):
        labelled, unlabelled = model.accuracy(graph, split.train), model.accuracy(graph, split.unlabelled)
    if evaluate and meant is not None:
        certificates = certify(
            graph, model, meant, engine=made.first_engine, time_limit=None, threads=threads, progress=progress
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
        if value is not None:
            worth[name] = repr(int(value)) if value == int(value) else repr(value)
    return worth
