"""One BLAS thread inside, the numbers of before outside: in every thread and order of leaving."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from contextlib import ExitStack, nullcontext
from functools import partial

import pytest
import scipy.linalg  # noqa: F401  (loads its own BLAS, which is limited too)
from threadpoolctl import threadpool_info, threadpool_limits

from interrupting import interrupted
from otgraph import _blas
from otgraph._blas import single_threaded_blas


def blas_threads():
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, "blas"):
        assert set(blas_threads()) == {2}
        yield


def in_another_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_the_last_to_leave_removes_the_limit():
    with ExitStack() as second:
        with single_threaded_blas():
            second.enter_context(single_threaded_blas())
        assert set(blas_threads()) == {1}  # the first has left
    assert set(blas_threads()) == {2}


def test_the_limit_works_in_every_thread():
    def inside():
        with single_threaded_blas():
            return blas_threads()

    assert set(in_another_thread(inside)) == {1}
    assert set(blas_threads()) == {2}


@pytest.mark.parametrize("first_to_leave", ["main", "other"])
def test_overlapping_threads_leave_in_any_order(first_to_leave):
    inside, go = threading.Event(), threading.Event()

    def other():
        with single_threaded_blas():
            inside.set()
            go.wait()

    thread = threading.Thread(target=other)
    with single_threaded_blas():
        thread.start()
        inside.wait()
        if first_to_leave == "other":
            go.set()
            thread.join()
            assert set(blas_threads()) == {1}
    go.set()
    thread.join()
    assert set(blas_threads()) == {2}


def test_what_somebody_else_sets_meanwhile_is_kept():
    with single_threaded_blas(), ExitStack() as theirs:
        theirs.enter_context(threadpool_limits(3, "blas"))
        with single_threaded_blas():
            assert set(blas_threads()) == {1}  # limited again
        theirs.pop_all()  # never restored
    assert set(blas_threads()) == {3}


def test_a_limit_of_the_caller_stays():
    with threadpool_limits(1, "blas"):
        with single_threaded_blas():
            pass
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


# Interrupts -----------------------------------------------------------------------------


@pytest.mark.parametrize("already_inside", [False, True])
def test_an_interrupt_at_any_moment_leaves_nothing_behind(already_inside):
    def inside_twice():
        with single_threaded_blas(), single_threaded_blas():
            pass

    interrupted(
        sys.maxsize, inside_twice, _blas
    )  # Python 3.12 traces opcodes from the second time on
    at = 0
    while True:
        with single_threaded_blas() if already_inside else nullcontext():
            came = interrupted(at, inside_twice, _blas)
            assert set(blas_threads()) == {1 if already_inside else 2}, at
        assert set(blas_threads()) == {2}, at
        if not came:
            break
        at += 1
    assert at > 30


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # lost interrupts
def test_interrupts_at_random_moments_whose_tracebacks_are_kept(interrupt):
    """As in an interactive session, which keeps the last error."""

    def begin_and_end():
        with single_threaded_blas(), single_threaded_blas():
            pass

    chance, kept = random.Random(0), []
    for _ in range(200):
        kept.append(interrupt(begin_and_end, chance.uniform(1e-5, 1e-3)))
        assert set(blas_threads()) == {2}, kept[-1]
    assert kept.count(None) < len(kept) / 2


# Results --------------------------------------------------------------------------------

RESULTS = """
import hashlib, threading, warnings
import numpy as np
import otgraph
import scipy.linalg  # loads its own BLAS
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info

X = np.random.default_rng(0).normal(size=(1500, 20))

def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()

def results():
    graphs = [
        otgraph.gaussian_graph(X, 1.0),
        otgraph.entropic_ot_graph(X[:700], 0.003, tol=1e-3),
        otgraph.knn_gaussian_graph(X, 10, 1.0),
        otgraph.magic_graph(X, 5, n_pca=8),
        otgraph.quadratic_ot_graph(X, 0.5),
    ]
    arrays = [graph.weights.data for graph in graphs]
    arrays += [graph.extend(X[:300] + 0.01).data for graph in graphs]
    arrays += [otgraph.eigenmaps(graphs[4], 5).coordinates, otgraph.cluster(graphs[4], 3).labels]
    return [digest(array) for array in arrays]

def numbers():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

def in_threads(count):
    found = [None] * count
    def work(i):
        found[i] = results()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return found

if __name__ == "__main__":
    before = numbers()
    expected = results()
    others = {
        "another thread": in_threads(1),
        "four threads": in_threads(4),
        "threads of joblib": Parallel(2, backend="threading")(delayed(results)() for _ in range(2)),
        "processes of joblib": Parallel(2)(delayed(results)() for _ in range(2)),
    }
    for where, found in others.items():
        for each in found:
            assert each is not None, where
            wrong = [i for i, (a, b) in enumerate(zip(each, expected)) if a != b]
            assert not wrong, (where, wrong)
    assert numbers() == before, (before, numbers())
    print(before, "+".join(expected))
"""


@pytest.fixture(scope="module")
def run_with(tmp_path_factory):
    """Run the script with some number of BLAS threads; returns these and the results."""
    path = tmp_path_factory.mktemp("blas") / "results.py"
    path.write_text(RESULTS)

    def run(threads):
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", path], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.rsplit(maxsplit=1)

    return run


@pytest.mark.slow
def test_the_same_bits_in_every_thread_and_for_every_number_of_blas_threads(run_with):
    two = run_with("2")
    assert set(two[0]) == set("[2, 2]")
    assert run_with("1")[1] == two[1]


# Forks ----------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_process_forked_while_other_threads_compute_does_not_wait_for_them():
    stop = threading.Event()

    def compute():
        while not stop.is_set():
            with single_threaded_blas():
                pass

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            child = os.fork()
            if child == 0:
                with single_threaded_blas():
                    one = set(blas_threads()) == {1}
                os._exit(0 if one and set(blas_threads()) == {2} else 1)
            assert _exit_code(child) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _exit_code(child, seconds=20.0):
    """Exit code of a child process; one that hangs is killed and has none."""
    timer = threading.Timer(seconds, partial(os.kill, child, 9))
    timer.start()
    _, status = os.waitpid(child, 0)
    timer.cancel()
    return os.waitstatus_to_exitcode(status)
