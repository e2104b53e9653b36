"""Long work: other threads go on, Ctrl-C ends it, progress is told, and mistakes of the caller come through."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import nodeproof


def slow():
    """A network with two hidden layers whose nodes no engine decides soon, on a dense random graph."""
    random = np.random.default_rng(0)
    upper = np.triu(random.random((400, 400)) < 0.05, 1)
    graph = nodeproof.Graph((upper | upper.T).astype(int), random.random((400, 200)) < 0.1)
    sizes = [200, 32, 5]
    model = nodeproof.Model([random.normal(size=pair) for pair in itertools.pairwise(sizes)])
    return graph, model


def test_other_threads_go_on() -> None:
    graph, model = slow()
    ticks, done = [], threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.01)

    ticking = threading.Thread(target=tick)
    ticking.start()
    start = time.monotonic()
    nodeproof.certify(graph, model, global_budget=20, time_limit=0.05, nodes=range(60), progress=False, threads=1)
    lasted = time.monotonic() - start
    done.set()
    ticking.join()
    assert lasted < 0.3 or len(ticks) > lasted / 0.1, (lasted, len(ticks))


def test_progress_is_told_and_may_stop_the_work() -> None:
    graph, model = slow()
    told = []

    class Enough(Exception):
        pass

    def observe(done: int, total: int) -> None:
        told.append((done, total))
        if done > 0:
            raise Enough

    start = time.monotonic()
    with pytest.raises(Enough):
        nodeproof.certify(graph, model, global_budget=20, time_limit=1.0, progress=observe)
    assert told and told[-1][1] == 400 and time.monotonic() - start < 300


def test_ctrl_c_ends_the_work_at_once() -> None:
    program = textwrap.dedent(
        f"""
        import signal, sys
        # What is started in the background inherits that Ctrl-C is ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from test_work import slow
        import nodeproof
        graph, model = slow()
        print("ready", flush=True)
        try:
            nodeproof.certify(graph, model, global_budget=40, time_limit=None, progress=False)
            print("finished", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "ready\n"
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    sent = time.monotonic()
    assert running.stdout.readline() == "interrupted\n"
    assert time.monotonic() - sent < 10
    assert running.wait(timeout=60) == 0


def test_a_forked_process_works_too(papers) -> None:
    """Threads do not survive a fork; a pool that was started before would hang."""
    graph, model = papers
    expected = nodeproof.certify(graph, model, global_budget=2)
    logits = model.logits(graph)
    child = os.fork()
    if child == 0:
        same = nodeproof.certify(graph, model, global_budget=2) == expected and np.array_equal(
            model.logits(graph), logits
        )
        os._exit(0 if same else 1)
    for _ in range(600):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_bar_is_shown_where_it_is_wanted(papers, capsys) -> None:
    pytest.importorskip("tqdm")
    nodeproof.certify(*papers, global_budget=2, progress=True)
    assert "certify" in capsys.readouterr().err
    nodeproof.certify(*papers, global_budget=2)
    assert not capsys.readouterr().err, "not where nobody looks"


def test_errors_are_of_one_family() -> None:
    errors = nodeproof.errors
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), nodeproof.NodeproofError)
    assert issubclass(nodeproof.InputError, ValueError) and issubclass(nodeproof.MissingFileError, FileNotFoundError)
