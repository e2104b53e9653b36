"""The same work on a cluster.

`certify` and `radius` do what their namesakes of the package do, over the machines of a Ray or a Dask cluster, and the results
are those of one machine, to the bit. Nodes go out in shards, those of `nodeproof certify --shard`; each is written to a file
of its own, and counts once, however often it was begun. Here `backend` says where the work is done; `engine` says, as
everywhere in nodeproof, how hard to try.

With Ray each machine has a worker that opens graph and model once, prepares once what all shards share, and takes one shard
after the other with all its threads. If a worker is lost, another one takes its place, and goes on with the shard where the
file ends, if that is still there. With Dask each shard is a task with one thread, which prepares for itself, and is done
again from the beginning if its worker is lost, unless there is a folder `out`.
"""

from __future__ import annotations

import os
import queue
import shutil
import tempfile
import threading
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import flag, whole
from ._files import StrPath, path_text
from ._optional import optional
from ._progress import Observer, Progress, observer
from .budget import GLOBAL, LOCAL, MOST, NO, NONE, NOTHING, Budget, Count, budget_of, parts_of
from .certification import Engine, Settings, TargetClass, targets_of, told
from .errors import FileError, InputError, NodeproofError
from .graph import Graph
from .model import Model
from .results import Certificates, Radii
from .split import Nodes, Split

__all__ = ["certify", "radius"]

Backend = Literal["ray", "dask"]
_Found = TypeVar("_Found", Certificates, Radii)
#: Told the number of the shard that is whole now, if there is one; says which is next, if there is one.
Next = Callable[[int | None], int | None]

#: Shards for each worker, so that none is left waiting at the end.
_SHARDS_EACH = 8
#: Shards that a worker has ahead of it, the one it is at included, so that it never waits for another.
_AHEAD = 2
#: Seconds after which a worker says how far it has come, if there is nothing else to say.
_NEWS = 0.5


def certify(
    graph: Graph,
    model: Model,
    budget: Budget | None = None,
    *,
    backend: Backend,
    global_budget: Count = GLOBAL,
    local_budget: int | str = LOCAL,
    add_only: bool = NO,
    delete_only: bool = NO,
    protect_attributes: Iterable[int | str] = NONE,
    protect_nodes: str | Iterable[int | str] = NONE,
    local_budget_at: Mapping[int | str, int] | None = NOTHING,
    nodes: str | npt.ArrayLike = "all",
    split: Split | None = None,
    target_class: TargetClass = "predicted",
    engine: Engine = "complete",
    time_limit: float | None = 10.0,
    memory_limit: int | str = "1G",
    timings: bool = False,
    shards: int | None = None,
    out: StrPath | None = None,
    threads: int = 0,
    retries: int = 3,
    client: Any = None,
    progress: Progress = None,
) -> Certificates:
    """Certifies nodes on a cluster: `nodeproof.certify`, with the same results wherever no node runs into `time_limit`.

    Args:
        backend: "ray" or "dask": where the work is done. Ray takes the cluster of `ray.init`, and starts one on this machine
            if there is none.
        shards: in how many parts the nodes go out; by default eight a worker. No more than that is lost with one.
        out: a folder that all machines see, in which shards are files, as those of `nodeproof certify --shard`. They stay, and
            those that are there are not done again: a run that was interrupted goes on. By default shards are in a temporary
            folder of each machine until they are fetched.
        threads: threads of each worker of Ray, which takes as many processors, and there are as many workers on a machine as
            it has processors for; 0 takes all of a machine for one worker. Each worker prepares for itself, which on a large
            graph is half of the work: fewer workers with more threads cost less. Tasks of Dask have one thread.
        retries: how often a shard is done again whose worker was lost.
        client: the client of Dask; by default the current one.

    All else as in `nodeproof.certify`.
    """
    targets = targets_of(graph, model, nodes, split)
    said = parts_of(
        global_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at
    )
    meant = budget_of(budget, said).by_ids(graph, split)
    settings = Settings(meant, engine, target_class, time_limit, memory_limit=memory_limit)
    work = _Certify(settings, flag("timings", timings))
    checked = settings.on(graph)
    checked.check(graph._core, model._core, targets, False)
    where = _backend(backend, client)
    plan = _Plan.of(shards, out, threads, retries, len(targets), where)
    if not len(targets):
        return told(
            Certificates(_core.certify(graph._core, model._core, checked, targets, work.timings, None, None), graph)
        )
    with observer(progress, "certify") as tell:
        files = _files(where, plan, work, graph, model, targets, tell)
    made = _core.Certificates.of_shards(graph._core, model._core, checked, len(targets), work.timings, files)
    return told(_checked(Certificates(made, graph), targets))


def radius(
    graph: Graph,
    model: Model,
    budget: Budget | None = None,
    *,
    backend: Backend,
    max_budget: Count = MOST,
    local_budget: int | str = LOCAL,
    add_only: bool = NO,
    delete_only: bool = NO,
    protect_attributes: Iterable[int | str] = NONE,
    protect_nodes: str | Iterable[int | str] = NONE,
    local_budget_at: Mapping[int | str, int] | None = NOTHING,
    nodes: str | npt.ArrayLike = "all",
    split: Split | None = None,
    target_class: TargetClass = "predicted",
    engine: Engine = "complete",
    time_limit: float | None = 10.0,
    memory_limit: int | str = "1G",
    scan: bool = False,
    timings: bool = False,
    shards: int | None = None,
    out: StrPath | None = None,
    threads: int = 0,
    retries: int = 3,
    client: Any = None,
    progress: Progress = None,
) -> Radii:
    """Finds radii on a cluster: `nodeproof.radius`, with the same results; `backend`, `shards`, … as in `certify`."""
    targets = targets_of(graph, model, nodes, split)
    said = parts_of(
        max_budget,
        local_budget,
        add_only,
        delete_only,
        protect_attributes,
        protect_nodes,
        local_budget_at,
        "max_budget",
    )
    meant = budget_of(budget, said, "max_budget").by_ids(graph, split)
    settings = Settings(meant, engine, target_class, time_limit, memory_limit=memory_limit)
    work = _Radius(settings, flag("scan", scan), flag("timings", timings))
    checked = settings.on(graph, most=True)
    checked.check(graph._core, model._core, targets, work.scan)
    where = _backend(backend, client)
    plan = _Plan.of(shards, out, threads, retries, len(targets), where)
    if not len(targets):
        return Radii(_core.radius(graph._core, model._core, checked, targets, work.scan, work.timings, None), graph)
    with observer(progress, "radius") as tell:
        files = _files(where, plan, work, graph, model, targets, tell)
    made = _core.Radii.of_shards(graph._core, model._core, checked, len(targets), work.scan, work.timings, files)
    return _checked(Radii(made, graph), targets)


def _checked(results: _Found, targets: Nodes) -> _Found:
    """The results, if they are about the nodes asked for, each once and in order."""
    if not np.array_equal(results.nodes, targets):
        raise NodeproofError("the cluster returned results of other nodes than were asked for")
    return results


class _Work(ABC):
    """What is done with shards; travels to workers."""

    settings: Settings

    @abstractmethod
    def __call__(
        self,
        graph: Graph,
        model: Model,
        targets: Nodes,
        files: list[str],
        following: Next,
        threads: int,
        tell: Observer,
    ) -> None:
        """Writes the shards that `following` names, each to its file."""


@dataclass(frozen=True)
class _Certify(_Work):
    """Certifies shards."""

    settings: Settings
    timings: bool

    def __call__(
        self,
        graph: Graph,
        model: Model,
        targets: Nodes,
        files: list[str],
        following: Next,
        threads: int,
        tell: Observer,
    ) -> None:
        settings = replace(self.settings, threads=threads).on(graph)
        _core.certify_shards(graph._core, model._core, settings, targets, files, following, self.timings, tell)


@dataclass(frozen=True)
class _Radius(_Work):
    """Finds radii of shards."""

    settings: Settings
    scan: bool
    timings: bool

    def __call__(
        self,
        graph: Graph,
        model: Model,
        targets: Nodes,
        files: list[str],
        following: Next,
        threads: int,
        tell: Observer,
    ) -> None:
        settings = replace(self.settings, threads=threads).on(graph, most=True)
        _core.radius_shards(
            graph._core, model._core, settings, targets, files, following, self.scan, self.timings, tell
        )


@dataclass(frozen=True)
class _Plan:
    """In how many shards nodes go out, and how; travels to workers."""

    shards: int
    out: str | None
    threads: int
    retries: int

    @classmethod
    def of(
        cls,
        shards: int | None,
        out: StrPath | None,
        threads: int,
        retries: int,
        nodes: int,
        backend: _Backend,
    ) -> _Plan:
        """A plan for so many nodes, once options are what they should be."""
        threads, retries = whole("threads", threads), whole("retries", retries)
        if shards is None:
            shards = _SHARDS_EACH * backend.workers(threads)
        shards = whole("shards", shards, least=1)
        if out is not None:
            out = os.path.abspath(path_text(out))
            try:
                os.makedirs(out, exist_ok=True)
            except OSError as error:
                raise FileError(f"out={out!r}: {error}; give a folder that all machines can write to") from error
        return cls(max(1, min(shards, nodes)), out, threads, retries)

    def paths(self, folder: str) -> list[str]:
        """Where shards are in a folder."""
        return [os.path.join(folder, f"shard-{number}-of-{self.shards}.jsonl") for number in range(1, self.shards + 1)]

    def nodes_of(self, number: int, nodes: int) -> int:
        """How many nodes a shard has."""
        return nodes * number // self.shards - nodes * (number - 1) // self.shards


def _files(
    backend: _Backend, plan: _Plan, work: _Work, graph: Graph, model: Model, targets: Nodes, tell: Observer | None
) -> list[bytes]:
    """The files of all shards, in their order."""
    files: dict[int, bytes | None] = {}
    with backend.results(work, graph, model, targets, plan, tell or _nobody) as results:
        for number, found in results:
            if number in files:
                raise NodeproofError(f"shard {number} came back twice")
            files[number] = found
    if len(files) != plan.shards:
        raise NodeproofError("some shards never came back; this should not be")
    return [_content(plan, number, files[number]) for number in range(1, plan.shards + 1)]


def _content(plan: _Plan, number: int, found: bytes | None) -> bytes:
    """The file of a shard, which came from a worker or is in `out`."""
    if found is not None:
        return found
    path = plan.paths(plan.out or "")[number - 1]
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FileError(
            f"{path}: {error}; a worker has written it, so out= must be a folder that this machine sees, too"
        ) from error


def _nobody(done: int, total: int) -> None:
    """Hears of progress where nobody else does."""


class _Backend(ABC):
    """Where work is done."""

    @abstractmethod
    def workers(self, threads: int) -> int:
        """Shards that are worked on at the same time."""

    @abstractmethod
    def results(self, work: _Work, graph: Graph, model: Model, targets: Nodes, plan: _Plan, tell: Observer) -> Any:
        """A context in which numbers of shards and their files, if these are not in `out`, are at hand, as they are done."""


class _Worker:
    """Does one shard after the other, as an actor of Ray."""

    def __init__(
        self, work: _Work, graph: Graph, model: Model, targets: Nodes, plan: _Plan, folder: str, threads: int
    ) -> None:
        self._folder = plan.out or os.path.join(tempfile.gettempdir(), folder)
        os.makedirs(self._folder, exist_ok=True)
        self._is_temporary = plan.out is None
        self._paths = plan.paths(self._folder)
        self._work, self._job = work, (graph, model, targets, self._paths)
        self._threads = threads
        self._waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._news = threading.Condition()
        self._whole: list[int] = []
        self._done = 0

    def run(self) -> None:
        """Does the shards that are handed to it, and waits for more."""
        self._work(*self._job, self._next, self._threads, self._tell)

    def hand(self, *numbers: int) -> None:
        """Shards to do."""
        for number in numbers:
            self._waiting.put(number)

    def news(self) -> tuple[int, list[tuple[int, bytes | None]]]:
        """Nodes that were done so far, and the shards that have become whole, as soon as there are some."""
        with self._news:
            self._news.wait_for(lambda: self._whole, timeout=_NEWS)
            whole, self._whole = self._whole, []
        return self._done, [(number, self._taken(number)) for number in whole]

    def close(self) -> None:
        """Removes what is temporary."""
        if self._is_temporary:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _taken(self, number: int) -> bytes | None:
        return Path(self._paths[number - 1]).read_bytes() if self._is_temporary else None

    def _next(self, whole: int | None) -> int | None:
        if whole is not None:
            with self._news:
                self._whole.append(whole)
                self._news.notify_all()
        return self._waiting.get()

    def _tell(self, done: int, total: int) -> None:
        self._done = done


@dataclass(eq=False)
class _Hired:
    """A worker of Ray, as its employer sees it."""

    machine: str
    threads: int
    actor: Any
    #: What it is asked for: to run, and for news.
    running: Any
    news: Any
    #: Shards that it has, the one it is at first.
    shards: deque[int] = field(default_factory=deque)
    #: Nodes that it has done, and those of them that are in whole shards.
    done: int = 0
    whole: int = 0


class _Ray(_Backend):
    def __init__(self) -> None:
        self.ray = optional("ray", "ray", "backend='ray'")
        if not self.ray.is_initialized():
            self.ray.init(log_to_driver=False)

    def places(self, threads: int) -> list[tuple[str, int]]:
        """The machine of each worker that there can be, and its threads."""
        machines = [
            (node["NodeID"], int(node["Resources"].get("CPU", 0))) for node in self.ray.nodes() if node["Alive"]
        ]
        places = [
            (machine, threads or processors)
            for machine, processors in machines
            for _ in range(max(1, processors // threads) if threads else 1)
            if processors
        ]
        if not places:
            raise InputError("no machine of the cluster has a processor; start Ray with some")
        return places

    def workers(self, threads: int) -> int:
        return len(self.places(threads))

    @contextmanager
    def results(
        self, work: _Work, graph: Graph, model: Model, targets: Nodes, plan: _Plan, tell: Observer
    ) -> Iterator[Iterator[tuple[int, bytes | None]]]:
        ray = self.ray
        folder = f"nodeproof-{uuid.uuid4().hex}"
        placed = [*map(ray.put, (work, graph, model, targets, plan)), folder]
        staff = _Staff(ray, placed, plan, len(targets), tell)
        try:
            for machine, threads in self.places(plan.threads)[: plan.shards]:
                staff.hire(machine, threads)
            yield staff.results()
        finally:
            staff.dismiss()
            if plan.out is None:
                # What a lost worker left on this machine.
                shutil.rmtree(os.path.join(tempfile.gettempdir(), folder), ignore_errors=True)


class _Staff:
    """The workers of a run, and what is left to do."""

    def __init__(self, ray: Any, placed: list[Any], plan: _Plan, nodes: int, tell: Observer) -> None:
        self.ray, self.placed, self.plan, self.nodes, self.tell = ray, placed, plan, nodes, tell
        self.workers: list[_Hired] = []
        self.left = deque(range(1, plan.shards + 1))
        self.lost: dict[int, int] = {}
        self.whole: set[int] = set()
        self.told = -1

    def hire(self, machine: str, threads: int) -> None:
        """A new worker, on this machine if it is still there, with something to do."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = NodeAffinitySchedulingStrategy(machine, soft=True)
        kind = self.ray.remote(num_cpus=threads, max_concurrency=4, scheduling_strategy=strategy)(_Worker)
        actor = kind.remote(*self.placed, threads)
        worker = _Hired(machine, threads, actor, actor.run.remote(), actor.news.remote())
        self.workers.append(worker)
        self.hand(worker)

    def hand(self, worker: _Hired) -> None:
        """Gives a worker more to do."""
        numbers = []
        while self.left and len(worker.shards) < _AHEAD:
            numbers.append(self.left.popleft())
            worker.shards.append(numbers[-1])
        if numbers:
            worker.actor.hand.remote(*numbers)

    def results(self) -> Iterator[tuple[int, bytes | None]]:
        """Shards as they become whole."""
        while len(self.whole) < self.plan.shards:
            asked = {of: worker for worker in self.workers for of in (worker.running, worker.news)}
            ready, _ = self.ray.wait(list(asked), num_returns=1)
            for answer in ready:
                worker = asked[answer]
                if worker not in self.workers:
                    continue
                try:
                    found = self.ray.get(answer)
                except self.ray.exceptions.RayTaskError as error:
                    if isinstance(getattr(error, "cause", None), NodeproofError):
                        raise error.cause from error
                    raise error.as_instanceof_cause() from None
                except (self.ray.exceptions.RayActorError, self.ray.exceptions.RaySystemError) as error:
                    self.replace(worker, error)
                    continue
                if answer == worker.news:
                    worker.news = worker.actor.news.remote()
                    yield from self.heard(worker, *found)

    def heard(
        self, worker: _Hired, done: int, whole: list[tuple[int, bytes | None]]
    ) -> Iterator[tuple[int, bytes | None]]:
        """News of a worker."""
        worker.done = done
        for number, found in whole:
            worker.shards.remove(number)
            worker.whole += self.plan.nodes_of(number, self.nodes)
            self.whole.add(number)
            yield number, found
        self.hand(worker)
        self.progress()

    def progress(self) -> None:
        """Tells how many nodes are done; never fewer than before."""
        done = sum(self.plan.nodes_of(number, self.nodes) for number in self.whole)
        done += sum(max(0, worker.done - worker.whole) for worker in self.workers)
        if done > self.told:
            self.told = done
            self.tell(done, self.nodes)

    def replace(self, worker: _Hired, error: Exception) -> None:
        """Has what a lost worker had done by another one."""
        self.workers.remove(worker)
        if worker.shards:
            at = worker.shards[0]
            self.lost[at] = self.lost.get(at, 0) + 1
            if self.lost[at] > self.plan.retries:
                raise NodeproofError(
                    f"shard {at} was lost with its worker {self.lost[at]} times; see Ray's logs, or give more shards or more "
                    "retries"
                ) from error
        self.left.extendleft(reversed(worker.shards))
        # If the machine is lost as well, all others share what it had.
        machines = {node["NodeID"] for node in self.ray.nodes() if node["Alive"]}
        if worker.machine in machines or not self.workers:
            self.hire(worker.machine, worker.threads)

    def dismiss(self) -> None:
        """Ends all workers, and what they were at."""
        with suppress(Exception):
            self.ray.wait(
                [worker.actor.close.remote() for worker in self.workers], num_returns=len(self.workers), timeout=5
            )
        for worker in self.workers:
            self.ray.kill(worker.actor)


class _Dask(_Backend):
    def __init__(self, client: Any) -> None:
        self.distributed = optional("distributed", "dask", "backend='dask'")
        try:
            self.client = client or self.distributed.default_client()
        except ValueError as error:
            raise InputError("there is no client of Dask; make one, client = distributed.Client(...)") from error

    def workers(self, threads: int) -> int:
        return max(1, int(sum(self.client.nthreads().values())))

    @contextmanager
    def results(
        self, work: _Work, graph: Graph, model: Model, targets: Nodes, plan: _Plan, tell: Observer
    ) -> Iterator[Iterator[tuple[int, bytes | None]]]:
        # Without `hash`, keys are new ones. One that equals that of an earlier call may be released while it is being
        # scattered.
        placed = [
            self.client.scatter(thing, broadcast=True, hash=False) for thing in (work, graph, model, targets, plan)
        ]
        tasks = {
            self.client.submit(_shard, *placed, number, pure=False, retries=plan.retries): number
            for number in range(1, plan.shards + 1)
        }

        def finished() -> Iterator[tuple[int, bytes | None]]:
            done = 0
            for task in self.distributed.as_completed(tasks):
                found = task.result()
                done += plan.nodes_of(tasks[task], len(targets))
                tell(done, len(targets))
                yield tasks[task], found

        try:
            yield finished()
        except BaseException:
            self.client.cancel(list(tasks))
            raise


def _shard(work: _Work, graph: Graph, model: Model, targets: Nodes, plan: _Plan, number: int) -> bytes | None:
    """What a task of Dask does: one shard; its file, if that is not in `out`."""
    numbers = iter((number,))
    with tempfile.TemporaryDirectory(prefix="nodeproof-") as folder:
        paths = plan.paths(plan.out or folder)
        work(graph, model, targets, paths, lambda whole: next(numbers, None), 1, _nobody)
        return Path(paths[number - 1]).read_bytes() if plan.out is None else None


def _backend(name: str, client: Any) -> _Backend:
    if name == "ray":
        return _Ray()
    if name == "dask":
        return _Dask(client)
    raise InputError(f"backend={name!r} is none; there are 'ray' and 'dask' (engine= says how hard to try)")


def __dir__() -> list[str]:
    return sorted(__all__)
