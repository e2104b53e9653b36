"""Clusters: the results of one machine, to the bit, also when a worker is killed on the way."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import nodeproof
from nodeproof import distributed


def test_backends_are_named_and_engines_are_not_backends(papers) -> None:
    with pytest.raises(nodeproof.InputError, match="there are 'ray' and 'dask'"):
        distributed.certify(*papers, backend="spark", global_budget=1)
    with pytest.raises(TypeError):
        distributed.certify(*papers, global_budget=1)


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=3, log_to_driver=False, include_dashboard=False, configure_logging=False)
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def slow(bundled, standard):
    """Work that takes each of three workers some seconds: the radii of part of the bundled graph."""
    options = {
        "nodes": range(0, 3304, 8),
        "engine": "complete",
        "time_limit": None,
        "max_budget": 30,
        "progress": False,
    }
    return options, nodeproof.radius(bundled, standard, **options)


class TestRay:
    def test_results_are_those_of_one_machine(self, ray, bundled, standard) -> None:
        for options in (
            {"engine": "fast"},
            {"nodes": range(0, 3304, 20), "chunk": 7},
            {"nodes": [5], "add_only": True},
        ):
            local = nodeproof.certify(
                bundled, standard, global_budget=5, progress=False, **{k: v for k, v in options.items() if k != "chunk"}
            )
            told = []
            spread = distributed.certify(
                bundled,
                standard,
                backend="ray",
                global_budget=5,
                progress=lambda *step, told=told: told.append(step),
                **options,
            )
            assert spread == local and spread.graph is bundled
            assert told[-1] == (len(local), len(local)) and [done for done, _ in told] == sorted(
                done for done, _ in told
            )

    def test_graph_and_model_travel_once(self, ray, papers, monkeypatch) -> None:
        sent = []
        for kind in (nodeproof.Graph, nodeproof.Model):
            reduce = kind.__reduce__
            monkeypatch.setattr(kind, "__reduce__", lambda self, reduce=reduce: sent.append(type(self)) or reduce(self))
        distributed.certify(*papers, backend="ray", global_budget=1, chunk=2)
        assert sorted(kind.__name__ for kind in sent) == ["Graph", "Model"]

    def test_no_nodes_and_mistakes(self, ray, papers) -> None:
        assert len(distributed.certify(*papers, backend="ray", global_budget=1, nodes=[])) == 0
        for options in ({"nodes": [99]}, {"engine": "none"}, {"chunk": 0}, {"retries": -1}, {"local_budget": 99}):
            with pytest.raises(nodeproof.InputError):
                distributed.certify(*papers, backend="ray", **({"global_budget": 1} | options))

    def test_a_killed_worker_loses_and_doubles_nothing(self, ray, bundled, standard, slow) -> None:
        psutil = pytest.importorskip("psutil")
        options, expected = slow
        killed, stop = [], threading.Event()

        def kill() -> None:
            """Kills a worker in the middle of a chunk, once some chunks are done."""
            while not stop.is_set():
                for process in psutil.Process().children(recursive=True):
                    try:
                        busy = process.name().startswith("ray::_certify") or "ray::_certify_chunk" in " ".join(
                            process.cmdline()
                        )
                        if busy and progress and not killed:
                            os.kill(process.pid, signal.SIGKILL)
                            killed.append(process.pid)
                            return
                    except (psutil.NoSuchProcess, psutil.AccessDenied):
                        continue
                time.sleep(0.01)

        progress: list[tuple[int, int]] = []
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            spread = distributed.radius(
                bundled,
                standard,
                backend="ray",
                chunk=9,
                **(options | {"progress": lambda *step: progress.append(step)}),
            )
        finally:
            stop.set()
            killer.join()
        assert len(killed) == 1 and len(progress) > 2, "one worker was killed, in the middle"
        assert spread == expected
        assert progress[-1] == (len(expected), len(expected))

    def test_a_worker_that_always_dies_is_an_error(self, ray, papers) -> None:
        def die(graph, model, nodes):
            os.kill(os.getpid(), signal.SIGKILL)

        nodes = nodeproof.nodes.chosen(papers[0], "all", None)
        with pytest.raises(nodeproof.NodeproofError, match="lost with its worker 2 times"):
            distributed._spread(die, *papers, nodes, distributed._Ray(), 9, 1, False, "die")

    def test_a_worker_that_returns_other_nodes_is_an_error(self, papers) -> None:
        found = nodeproof.certify(*papers, global_budget=1, nodes=[1, 2])._core
        with pytest.raises(nodeproof.NodeproofError, match="other nodes"):
            distributed._checked(found, nodeproof.nodes.chosen(papers[0], [2, 1], None))

    def test_an_interrupt_reaches_the_caller(self, ray, bundled, standard) -> None:
        class Enough(Exception):
            pass

        def observe(done: int, total: int) -> None:
            raise Enough

        with pytest.raises(Enough):
            distributed.certify(
                bundled, standard, backend="ray", global_budget=5, engine="fast", chunk=100, progress=observe
            )


class TestDask:
    def test_without_a_client_there_is_an_error(self, papers) -> None:
        pytest.importorskip("distributed")
        with pytest.raises(nodeproof.InputError, match="no client of Dask"):
            distributed.certify(*papers, backend="dask", global_budget=1)

    def test_results_are_those_of_one_machine(self, bundled, standard) -> None:
        dask = pytest.importorskip("distributed")
        options = {"global_budget": 5, "nodes": range(0, 3304, 20)}
        local = nodeproof.certify(bundled, standard, **options)
        cluster = dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with cluster, dask.Client(cluster) as client:
            assert distributed.certify(bundled, standard, backend="dask", chunk=10, **options) == local
            assert distributed.certify(bundled, standard, backend="dask", client=client, **options) == local
            with pytest.raises(nodeproof.InputError, match="node 9999"):
                distributed.certify(bundled, standard, backend="dask", global_budget=5, nodes=[9999])
