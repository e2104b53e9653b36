"""Clusters: the results of one machine, to the bit, also when a worker is killed on the way."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from pathlib import Path

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
            {"nodes": range(0, 3304, 20), "shards": 7, "threads": 1},
            {"nodes": range(0, 3304, 20), "shards": 7, "threads": 2},
            {"nodes": [5], "add_only": True},
        ):
            alone = {key: value for key, value in options.items() if key not in ("shards", "threads")}
            local = nodeproof.certify(bundled, standard, global_budget=5, progress=False, **alone)
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

    def test_radii_are_those_of_one_machine(self, ray, papers) -> None:
        for scan in (False, True):
            options = {"max_budget": 3, "scan": scan, "engine": "fast" if scan else "complete", "progress": False}
            spread = distributed.radius(*papers, backend="ray", shards=5, threads=1, **options)
            assert spread == nodeproof.radius(*papers, **options)

    def test_graph_and_model_travel_once(self, ray, papers, monkeypatch) -> None:
        sent = []
        for kind in (nodeproof.Graph, nodeproof.Model):
            reduce = kind.__reduce__
            monkeypatch.setattr(kind, "__reduce__", lambda self, reduce=reduce: sent.append(type(self)) or reduce(self))
        distributed.certify(*papers, backend="ray", global_budget=1, shards=5, threads=1)
        assert sorted(kind.__name__ for kind in sent) == ["Graph", "Model"]

    def test_no_nodes_and_mistakes(self, ray, papers, tmp_path) -> None:
        assert len(distributed.certify(*papers, backend="ray", global_budget=1, nodes=[])) == 0
        (tmp_path / "file").touch()
        for options in (
            {"nodes": [99]},
            {"engine": "none"},
            {"shards": 0},
            {"threads": -1},
            {"retries": -1},
            {"local_budget": 99},
        ):
            with pytest.raises(nodeproof.InputError):
                distributed.certify(*papers, backend="ray", **({"global_budget": 1} | options))
        with pytest.raises(nodeproof.errors.FileError, match="give a folder"):
            distributed.certify(*papers, backend="ray", global_budget=1, out=tmp_path / "file")

    def test_shards_are_files_that_are_gone_on_with(self, ray, papers, tmp_path) -> None:
        """What is there stays, what is unfinished is gone on with, and another run is refused."""
        options = {"global_budget": 2, "shards": 4, "out": tmp_path, "backend": "ray", "progress": False}
        local = nodeproof.certify(*papers, global_budget=2, progress=False)
        assert distributed.certify(*papers, **options) == local
        names = [f"shard-{number}-of-4.jsonl" for number in range(1, 5)]
        assert sorted(path.name for path in tmp_path.iterdir()) == names
        lines = (tmp_path / names[1]).read_text().splitlines(keepends=True)
        (tmp_path / names[1]).unlink()
        (tmp_path / f"{names[1]}.unfinished").write_text("".join(lines[:3]) + lines[3][:9])
        (tmp_path / names[3]).unlink()
        kept = (tmp_path / names[0]).stat()
        assert distributed.certify(*papers, **options) == local
        assert sorted(path.name for path in tmp_path.iterdir()) == names
        assert (tmp_path / names[1]).read_text() == "".join(lines)
        assert (tmp_path / names[0]).stat().st_ino == kept.st_ino, "it was not written again"
        with pytest.raises(nodeproof.errors.FileError, match="cannot resume"):
            distributed.certify(*papers, **(options | {"global_budget": 3}))
        (tmp_path / names[0]).write_text("".join(lines))
        with pytest.raises(nodeproof.errors.FileError, match="cannot resume"):
            distributed.certify(*papers, **options)

    def test_nothing_temporary_stays(self, ray, papers) -> None:
        before = set(Path(tempfile.gettempdir()).glob("nodeproof-*"))
        distributed.certify(*papers, backend="ray", global_budget=1, shards=3)
        assert set(Path(tempfile.gettempdir()).glob("nodeproof-*")) <= before

    @pytest.mark.parametrize("folder", [False, True])
    def test_a_killed_worker_loses_and_doubles_nothing(
        self, ray, bundled, standard, slow, folder, tmp_path, monkeypatch
    ) -> None:
        psutil = pytest.importorskip("psutil")
        options, expected = slow
        killed, stop = [], threading.Event()

        def kill() -> None:
            """Kills a worker in the middle of a shard, once some shards are done."""
            while not stop.is_set():
                for process in psutil.Process().children(recursive=True):
                    try:
                        busy = "ray::_Worker" in " ".join([process.name(), *process.cmdline()])
                        if busy and len(progress) > 2 and not killed:
                            os.kill(process.pid, signal.SIGKILL)
                            killed.append(process.pid)
                            return
                    except (psutil.NoSuchProcess, psutil.AccessDenied):
                        continue
                time.sleep(0.01)

        done: list[int] = []
        heard = distributed._Staff.heard
        monkeypatch.setattr(
            distributed._Staff,
            "heard",
            lambda self, worker, told, whole: done.extend(n for n, _ in whole) or heard(self, worker, told, whole),
        )
        progress: list[tuple[int, int]] = []
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            spread = distributed.radius(
                bundled,
                standard,
                backend="ray",
                shards=46,
                threads=1,
                out=tmp_path if folder else None,
                **(options | {"progress": lambda *step: progress.append(step)}),
            )
        finally:
            stop.set()
            killer.join()
        assert len(killed) == 1 and len(progress) > 3, "one worker was killed, in the middle"
        assert spread == expected
        assert sorted(done) == list(range(1, 47)), "each shard became whole once"
        assert progress[-1] == (len(expected), len(expected))

    def test_a_worker_that_always_dies_is_an_error(self, ray, papers) -> None:
        def die(*job) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        nodes = nodeproof.nodes.chosen(papers[0], "all", None)
        plan = distributed._Plan(3, None, 0, 1)
        before = set(Path(tempfile.gettempdir()).glob("nodeproof-*"))
        with pytest.raises(nodeproof.NodeproofError, match="lost with its worker 2 times"):
            distributed._files(distributed._Ray(), plan, die, *papers, nodes, None)
        assert set(Path(tempfile.gettempdir()).glob("nodeproof-*")) <= before

    def test_a_worker_that_returns_other_nodes_is_an_error(self, papers) -> None:
        found = nodeproof.certify(*papers, global_budget=1, nodes=[1, 2])
        with pytest.raises(nodeproof.NodeproofError, match="other nodes"):
            distributed._checked(found, nodeproof.nodes.chosen(papers[0], [2, 1], None))

    def test_an_interrupt_reaches_the_caller(self, ray, bundled, standard) -> None:
        class Enough(Exception):
            pass

        def observe(done: int, total: int) -> None:
            raise Enough

        with pytest.raises(Enough):
            distributed.certify(
                bundled, standard, backend="ray", global_budget=5, engine="fast", shards=34, progress=observe
            )


class TestDask:
    def test_without_a_client_there_is_an_error(self, papers) -> None:
        pytest.importorskip("distributed")
        with pytest.raises(nodeproof.InputError, match="no client of Dask"):
            distributed.certify(*papers, backend="dask", global_budget=1)

    def test_results_are_those_of_one_machine(self, bundled, standard, tmp_path) -> None:
        dask = pytest.importorskip("distributed")
        options = {"global_budget": 5, "nodes": range(0, 3304, 20)}
        local = nodeproof.certify(bundled, standard, **options)
        cluster = dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with cluster, dask.Client(cluster) as client:
            assert distributed.certify(bundled, standard, backend="dask", shards=17, **options) == local
            assert distributed.certify(bundled, standard, backend="dask", client=client, **options) == local
            for _ in range(2):
                assert (
                    distributed.certify(bundled, standard, backend="dask", shards=3, out=tmp_path, **options) == local
                )
            with pytest.raises(nodeproof.InputError, match="node 9999"):
                distributed.certify(bundled, standard, backend="dask", global_budget=5, nodes=[9999])
