"""A network in the manner of scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import instance
from .budget import Budget
from .by_budget import CertificatesByBudget
from .certification import certify, radius
from .errors import InputError, not_fitted
from .explanation import Explanation, explain
from .graph import Graph
from .model import Model
from .results import Certificates, Radii
from .split import Share, Split
from .training import Method, Training, train

_BUDGET = (
    "global_budget", "local_budget", "add_only", "delete_only", "protect_attributes", "protect_nodes", "local_budget_at",
)  # fmt: skip


class RobustGCN:
    """A graph convolutional network that withstands attribute flips, in the manner of scikit-learn.

    Args:
        method: the loss: "ce", "rce", "rh" or "rh-u".
        budget: what the network is to withstand, and is certified against unless `certify` says otherwise, a
            `nodeproof.Budget`; or its parts as keywords, `global_budget`, …, `local_budget_at`.
        train: share of each class that is labelled, where `fit` is not given the nodes.
        seed: seed of everything random.
        hidden: units of each hidden layer.
        options: further options of `nodeproof.train`.

    After `fit`: `model_`, `split_`, `training_`, `graph_`, `classes_`, `n_features_in_`. Nodes may be parts of the split that
    it was trained with, such as "test". It is transductive: `fit` and `predict` take graphs, not matrices.

    >>> import nodeproof
    >>> network = RobustGCN(method="ce", global_budget=2, options={"steps": 40})
    >>> network.fit(nodeproof.Graph.bundled()).predict().shape
    (3304,)
    >>> network.certify(nodes=[0, 1, 2], engine="fast").verdicts.shape
    (3,)
    >>> len(network.certify(nodes="test", engine="fast"))
    2973
    """

    model_: Model
    split_: Split
    training_: Training
    graph_: Graph
    classes_: npt.NDArray[np.int64]
    n_features_in_: int

    _estimator_type = "classifier"

    def __init__(
        self,
        method: Method = "rh-u",
        *,
        budget: Budget | None = None,
        global_budget: int = 12,
        local_budget: int | str = "1%",
        add_only: bool = False,
        delete_only: bool = False,
        protect_attributes: Iterable[int | str] = (),
        protect_nodes: str | Iterable[int | str] = (),
        local_budget_at: Mapping[int | str, int] | None = None,
        train: Share = "10%",
        hidden: Sequence[int] = (32,),
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.method = method
        self.budget = budget
        self.global_budget = global_budget
        self.local_budget = local_budget
        self.add_only = add_only
        self.delete_only = delete_only
        self.protect_attributes = protect_attributes
        self.protect_nodes = protect_nodes
        self.local_budget_at = local_budget_at
        self.train = train
        self.hidden = hidden
        self.seed = seed
        self.options = options

    def fit(self, graph: Graph, y: npt.ArrayLike | None = None, *, split: Split | None = None) -> RobustGCN:
        """Trains on `graph`.

        Args:
            graph: the graph.
            y: labels to learn from, one a node, negative for a node that is not labelled; with it these nodes are the train
                part. Without it the graph's own labels are, for the nodes of `split`, or a draw.
            split: which nodes are labelled, in place of a draw.
        """
        instance("graph", graph, Graph, "Graph.bundled()")
        if y is not None:
            if split is not None:
                raise InputError("y says which nodes are labelled, and so does split; give one of them")
            graph = graph.with_labels(y)
            assert graph.labels is not None
            split = Split(graph, np.flatnonzero(graph.labels >= 0))
        own = {"split": split, "train": self.train, "hidden": self.hidden, "seed": self.seed} | self._budget()
        if not isinstance(self.options, (Mapping, type(None))):
            raise InputError(
                f"options={self.options!r} must be a mapping of options of train, such as {{'steps': 100}}"
            )
        options = dict(self.options or {})
        for name in options:
            known = list(inspect.signature(train).parameters)
            if name in own or name not in known:
                raise InputError(
                    f"options: {name!r} is a parameter of RobustGCN itself"
                    if name in own
                    else f"options: train has no option {name!r}{_core.did_you_mean(name, known)}"
                )
        default = inspect.signature(type(self).__init__).parameters["train"].default
        if split is not None or ("train_per_class" in options and self.train == default):
            # The share is for a draw, which there is none of, or one of so many nodes of each class.
            del own["train"]
        self.training_ = train(graph, self.method, **own, **options)
        self.graph_, self.model_, self.split_ = graph, self.training_.model, self.training_.split
        self.classes_, self.n_features_in_ = np.arange(self.model_.classes), self.model_.attributes
        return self

    def _budget(self, **others: Any) -> dict[str, Any]:
        """Options of `certify` and the like: those given, and the budget of training as far as they leave it open."""
        if others.get("budget") is not None:
            return others
        parts = {name: getattr(self, name) for name in _BUDGET}
        if self.budget is not None:
            defaults = inspect.signature(type(self).__init__).parameters
            for name, value in parts.items():
                if repr(value) != repr(defaults[name].default):
                    raise InputError(
                        f"RobustGCN has a budget, and {name}, which is a part of one; give one or the other"
                    )
            instance("budget", self.budget, Budget, "Budget(12)")
            parts = {name: getattr(self.budget, name) for name in _BUDGET}
        return parts | others

    def _on(self, graph: Graph | None) -> tuple[Graph, Model]:
        if not hasattr(self, "model_"):
            raise not_fitted("this RobustGCN is not trained yet; call fit first")
        return (self.graph_ if graph is None else graph), self.model_

    def _split(self, graph: Graph | None, options: dict[str, Any]) -> dict[str, Any]:
        """The options, with the split of training for its own graph."""
        return ({"split": self.split_} if graph is None or graph is self.graph_ else {}) | options

    def decision_function(self, graph: Graph | None = None) -> npt.NDArray[np.float64]:
        """The logits of all nodes, N × K, on the graph of training or another one."""
        graph, model = self._on(graph)
        return model.logits(graph)

    def predict(self, graph: Graph | None = None) -> npt.NDArray[np.int64]:
        """The class of all nodes."""
        graph, model = self._on(graph)
        return model.predict(graph)

    def predict_proba(self, graph: Graph | None = None) -> npt.NDArray[np.float64]:
        """The softmax of the logits of all nodes, N × K."""
        graph, model = self._on(graph)
        return model.predict_proba(graph)

    def score(
        self,
        graph: Graph | None = None,
        y: npt.ArrayLike | None = None,
        *,
        nodes: str | npt.ArrayLike | None = None,
        split: Split | None = None,
    ) -> float:
        """Accuracy: on the graph of training that of the unlabelled nodes, on another one that of all nodes with labels.

        `nodes` are others, given as in `nodeproof.certify`; parts are those of `split`, or of the split of training.
        """
        own = graph is None
        graph, model = self._on(graph)
        if y is not None:
            graph, own = graph.with_labels(y), False
        if split is None and graph.nodes == self.split_.nodes:
            split = self.split_
        accuracy = model.accuracy(graph, "unlabelled" if own and nodes is None else nodes, split=split)
        if accuracy is None:
            raise InputError("no node has a label to compare with; give y")
        return accuracy

    @overload
    def certify(
        self, graph: Graph | None = None, *, global_budget: Iterable[int], **options: Any
    ) -> CertificatesByBudget: ...
    @overload
    def certify(self, graph: Graph | None = None, *, global_budget: int = ..., **options: Any) -> Certificates: ...
    def certify(self, graph: Graph | None = None, **options: Any) -> Certificates | CertificatesByBudget:
        """Verdicts under the budget of training, or another one; options are those of `nodeproof.certify`."""
        on, model = self._on(graph)
        found: Certificates | CertificatesByBudget = certify(on, model, **self._split(graph, self._budget(**options)))
        return found

    def radius(self, graph: Graph | None = None, **options: Any) -> Radii:
        """How many flips predictions withstand; options are those of `nodeproof.radius`."""
        on, model = self._on(graph)
        budget = self._budget(**options)
        budget.pop("global_budget", None)
        return radius(on, model, **self._split(graph, budget))

    def explain(self, node: int | str, graph: Graph | None = None, **options: Any) -> Explanation:
        """The story of one node; options are those of `nodeproof.explain`."""
        on, model = self._on(graph)
        return explain(on, model, node, **self._split(graph, self._budget(**options)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by their names."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **parameters: Any) -> RobustGCN:
        """Sets parameters by their names."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                hint = _core.did_you_mean(name, list(known))
                raise InputError(f"RobustGCN has no parameter {name!r}; there are {', '.join(known)}{hint}")
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of estimators."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=False),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(two_d_array=False),
            no_validation=True,
        )

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self).__init__).parameters
        given = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(parameters[name].default)
        ]
        return f"RobustGCN({', '.join(given)})"
