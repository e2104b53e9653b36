"""The same work on a cluster.

`certify` and `radius` do what their namesakes of the package do, over the workers of a Ray or a Dask cluster: graph and model
are sent once, nodes in chunks, chunks of lost workers are done again, and the results are those of one machine, to the bit.
Here `backend` says where the work is done; `engine` says, as everywhere in nodeproof, how hard to try.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import flag, whole
from ._optional import optional
from ._progress import Progress, observer
from .budget import Budget
from .certification import Engine, Settings, TargetClass, targets_of
from .errors import InputError, NodeproofError
from .graph import Graph
from .model import Model
from .results import Certificates, Radii
from .split import Nodes, Split

Backend = Literal["ray", "dask"]
#: The work on one chunk: what it came to, a line a node.
Work = Callable[[Graph, Model, Nodes], bytes]

#: Chunks for each worker, so that none is left waiting at the end.
_CHUNKS_EACH = 8
#: Most nodes of a chunk, so that little is lost with a worker.
_LARGEST_CHUNK = 2000


def certify(
    graph: Graph,
    model: Model,
    *,
    backend: Backend,
    global_budget: int,
    local_budget: int | str = "1%",
    add_only: bool = False,
    delete_only: bool = False,
    protect_attributes: Iterable[int | str] = (),
    protect_nodes: Iterable[int] = (),
    local_budget_at: Mapping[int, int] | None = None,
    nodes: str | npt.ArrayLike = "all",
    split: Split | None = None,
    target_class: TargetClass = "predicted",
    engine: Engine = "complete",
    time_limit: float | None = 10.0,
    memory_limit: int | str = "1G",
    timings: bool = False,
    chunk: int | None = None,
    retries: int = 3,
    client: Any = None,
    progress: Progress = None,
) -> Certificates:
    """Certifies nodes on a cluster: `nodeproof.certify`, with the same results wherever no node runs into `time_limit`.

    Args:
        backend: "ray" or "dask": where the work is done. Ray takes the cluster of `ray.init`, and starts one on this machine
            if there is none; each chunk takes one processor.
        chunk: nodes of a chunk; by default eight chunks a worker, and no more than 2,000 nodes.
        retries: how often a chunk is done again whose worker was lost.
        client: the client of Dask; by default the current one.

    All else as in `nodeproof.certify`.
    """
    targets = targets_of(graph, model, nodes, split)
    budget = Budget(
        global_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at or {}
    )
    settings = Settings(budget, engine, target_class, time_limit, memory_limit=memory_limit, threads=1)
    work = _Certify(settings, flag("timings", timings))
    checked = settings.on(graph)
    checked.check(graph._core, model._core, targets, False)
    lines = _spread(work, graph, model, targets, _backend(backend, client), chunk, retries, progress, "certify")
    made = _core.Certificates.of_records(graph._core, model._core, checked, len(targets), work.timings, lines)
    return Certificates(_checked(made, targets), graph)


def radius(
    graph: Graph,
    model: Model,
    *,
    backend: Backend,
    max_budget: int = 100,
    local_budget: int | str = "1%",
    add_only: bool = False,
    delete_only: bool = False,
    protect_attributes: Iterable[int | str] = (),
    protect_nodes: Iterable[int] = (),
    local_budget_at: Mapping[int, int] | None = None,
    nodes: str | npt.ArrayLike = "all",
    split: Split | None = None,
    target_class: TargetClass = "predicted",
    engine: Engine = "complete",
    time_limit: float | None = 10.0,
    memory_limit: int | str = "1G",
    scan: bool = False,
    timings: bool = False,
    chunk: int | None = None,
    retries: int = 3,
    client: Any = None,
    progress: Progress = None,
) -> Radii:
    """Finds radii on a cluster: `nodeproof.radius`, with the same results; `backend`, `chunk`, … as in `certify`."""
    targets = targets_of(graph, model, nodes, split)
    budget = Budget(
        max_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at or {}
    )
    settings = Settings(budget, engine, target_class, time_limit, memory_limit=memory_limit, threads=1)
    work = _Radius(settings, flag("scan", scan), flag("timings", timings))
    checked = settings.on(graph, most=True)
    checked.check(graph._core, model._core, targets, work.scan)
    lines = _spread(work, graph, model, targets, _backend(backend, client), chunk, retries, progress, "radius")
    made = _core.Radii.of_records(graph._core, model._core, checked, len(targets), work.scan, work.timings, lines)
    return Radii(_checked(made, targets), graph)


@dataclass(frozen=True)
class _Certify:
    """Certifies chunks; travels to workers."""

    settings: Settings
    timings: bool

    def __call__(self, graph: Graph, model: Model, nodes: Nodes) -> bytes:
        settings = self.settings.on(graph)
        return _core.certify(graph._core, model._core, settings, nodes, self.timings, None).records()


@dataclass(frozen=True)
class _Radius:
    """Finds radii of chunks; travels to workers."""

    settings: Settings
    scan: bool
    timings: bool

    def __call__(self, graph: Graph, model: Model, nodes: Nodes) -> bytes:
        settings = self.settings.on(graph, most=True)
        return _core.radius(graph._core, model._core, settings, nodes, self.scan, self.timings, None).records()


def _spread(
    work: Work,
    graph: Graph,
    model: Model,
    targets: Nodes,
    backend: _Backend,
    chunk: int | None,
    retries: int,
    progress: Progress,
    what: str,
) -> list[bytes]:
    """What the chunks came to, in their order: each done once, however often it was begun."""
    if chunk is not None:
        chunk = whole("chunk", chunk, least=1)
    retries = whole("retries", retries)
    if not len(targets):
        return []
    size = chunk or min(_LARGEST_CHUNK, max(1, -(-len(targets) // (_CHUNKS_EACH * backend.workers()))))
    chunks = [targets[start : start + size] for start in range(0, len(targets), size)]
    lines: list[bytes | None] = [None] * len(chunks)
    done = 0
    with observer(progress, what) as tell, backend.results(work, graph, model, chunks, retries) as results:
        for place, found in results:
            if lines[place] is not None:
                raise NodeproofError(f"chunk {place} came back twice")
            lines[place] = found
            done += len(chunks[place])
            if tell is not None:
                tell(done, len(targets))
    if any(found is None for found in lines):
        raise NodeproofError("some chunks never came back; this should not be")
    return [found for found in lines if found is not None]


def _checked(results: Any, targets: Nodes) -> Any:
    """The results, if they are about the nodes asked for, each once and in order."""
    if not np.array_equal(results.columns()["node"], targets):
        raise NodeproofError("the cluster returned results of other nodes than were asked for")
    return results


class _Backend(ABC):
    """Where work is done."""

    @abstractmethod
    def workers(self) -> int:
        """Chunks that are worked on at the same time."""

    @abstractmethod
    def results(self, work: Work, graph: Graph, model: Model, chunks: list[Nodes], retries: int) -> Any:
        """A context in which places of chunks and what they came to are at hand, as they are done."""


class _Ray(_Backend):
    def __init__(self) -> None:
        self.ray = optional("ray", "ray", "backend='ray'")
        if not self.ray.is_initialized():
            self.ray.init(log_to_driver=False)

    def workers(self) -> int:
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    @contextmanager
    def results(
        self, work: Work, graph: Graph, model: Model, chunks: list[Nodes], retries: int
    ) -> Iterator[Iterator[tuple[int, bytes]]]:
        ray = self.ray
        remote = ray.remote(num_cpus=1, max_retries=retries)(_certify_chunk)
        placed = ray.put(work), ray.put(graph), ray.put(model)
        tasks = {remote.remote(*placed, nodes): place for place, nodes in enumerate(chunks)}

        def finished() -> Iterator[tuple[int, bytes]]:
            waiting = list(tasks)
            while waiting:
                ready, waiting = ray.wait(waiting)
                for task in ready:
                    try:
                        yield tasks[task], ray.get(task)
                    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
                        raise NodeproofError(
                            f"a chunk of nodes was lost with its worker {retries + 1} times; see Ray's logs, or give smaller "
                            "chunks or more retries"
                        ) from error
                    except ray.exceptions.RayTaskError as error:
                        cause = error.as_instanceof_cause()
                        if isinstance(getattr(error, "cause", None), NodeproofError):
                            raise error.cause from error
                        raise cause from None

        try:
            yield finished()
        except BaseException:
            for task in tasks:
                ray.cancel(task)
            raise


class _Dask(_Backend):
    def __init__(self, client: Any) -> None:
        self.distributed = optional("distributed", "dask", "backend='dask'")
        try:
            self.client = client or self.distributed.default_client()
        except ValueError as error:
            raise InputError("there is no client of Dask; make one, client = distributed.Client(...)") from error

    def workers(self) -> int:
        return max(1, int(sum(self.client.nthreads().values())))

    @contextmanager
    def results(
        self, work: Work, graph: Graph, model: Model, chunks: list[Nodes], retries: int
    ) -> Iterator[Iterator[tuple[int, bytes]]]:
        # Without `hash`, keys are new ones. One that equals that of an earlier call may be released while it is being scattered.
        placed = [self.client.scatter(thing, broadcast=True, hash=False) for thing in (work, graph, model)]
        tasks = {
            self.client.submit(_certify_chunk, *placed, nodes, pure=False, retries=retries): place
            for place, nodes in enumerate(chunks)
        }
        try:
            done = self.distributed.as_completed(tasks)
            yield ((tasks[task], task.result()) for task in done)
        except BaseException:
            self.client.cancel(list(tasks))
            raise


def _backend(name: str, client: Any) -> _Backend:
    if name == "ray":
        return _Ray()
    if name == "dask":
        return _Dask(client)
    raise InputError(f"backend={name!r} is none; there are 'ray' and 'dask' (engine= says how hard to try)")


def _certify_chunk(work: Work, graph: Graph, model: Model, nodes: Nodes) -> bytes:
    """What a worker does."""
    return work(graph, model, nodes)
