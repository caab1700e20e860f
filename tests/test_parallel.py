"""Threads over fixed blocks: order, errors and pickles."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from otgraph._parallel import (
    MOST_CORES,
    Reused,
    Workers,
    cpu_count,
    equal_blocks,
    in_own_thread,
    row_blocks,
    thread_count,
)


def test_row_blocks_cover_every_row_once():
    for n in (0, 1, 5, 10, 11):
        rows = [i for a, b in row_blocks(n, 5) for i in range(a, b)]
        assert rows == list(range(n))


def test_thread_count(monkeypatch):
    monkeypatch.setattr("otgraph._parallel.cpu_count", lambda: 8)
    assert [thread_count(n) for n in (None, 1, 3, -1, -2, -8, -99)] == [1, 1, 3, 8, 7, 1, 1]
    with pytest.raises(ValueError, match="`n_jobs` must be"):
        thread_count(0)


def test_cores_are_those_of_joblib(monkeypatch):
    import joblib

    assert cpu_count() == joblib.cpu_count()
    monkeypatch.setenv(MOST_CORES, "1")
    assert cpu_count() == 1


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "250000 100000"}, 3),
        ({"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
    ],
)
def test_cores_of_a_container(monkeypatch, tmp_path, files, cores):
    monkeypatch.delenv(MOST_CORES, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8), raising=False)
    for name, text in files.items():
        file = tmp_path / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert cpu_count(str(tmp_path)) == cores


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_results_in_order(n_jobs):
    def slow_first(i):
        time.sleep(0.01 * (5 - i))
        return i

    assert list(Workers(n_jobs).map(slow_first, range(6))) == list(range(6))


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_errors_come_through_and_stop_the_rest(n_jobs):
    done = []

    def work(i):
        if i == 3:
            msg = "three"
            raise RuntimeError(msg)
        time.sleep(0.001)
        done.append(i)

    with pytest.raises(RuntimeError, match="three"):
        Workers(n_jobs).run(work, range(500))
    assert len(done) < 100


def test_one_item_needs_no_thread():
    name = []
    Workers(4).run(lambda _: name.append(threading.current_thread()), [1])
    assert name == [threading.current_thread()]


def test_closed_pools_open_again():
    workers = Workers(2)
    workers.run(np.sqrt, range(4))
    workers.close()
    workers.close()
    assert list(workers.map(abs, [-1, -2])) == [1, 2]


def test_pickle_leaves_the_threads_behind():
    workers = Workers(2)
    workers.run(np.sqrt, range(4))
    copy = pickle.loads(pickle.dumps(workers))
    assert copy.n_threads == 2
    assert list(copy.map(abs, [-1, -2])) == [1, 2]


def test_progress_follows_the_sizes_of_the_items(capsys):
    """Later parts of a screen have more rows; equal shares would promise too early an end."""
    workers, items = Workers(1, progress=True), [0.2, 0.2, 0.2]
    for _ in workers.map(time.sleep, items, label="screen", sizes=[1.0, 3.0, 6.0]):
        pass
    shown = capsys.readouterr().err
    assert "10%" in shown
    assert "40%" in shown


def test_progress_bar_has_a_label(capsys):
    assert list(Workers(1, progress=True).map(abs, [-1, -2], label="screen")) == [1, 2]
    assert "screen" in capsys.readouterr().err
    list(Workers(1, progress=True).map(abs, [-1, -2]))
    assert capsys.readouterr().err == ""


FORKS = """
import faulthandler, os
import numpy as np
import otgraph

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 20)) + 9.0 * rng.normal(size=(4, 20))[np.arange(2000) % 4]
graph = otgraph.quadratic_ot_graph(X, mean_degree=10, connect=True)
calls = {
    "knn": lambda: otgraph.knn_gaussian_graph(X, 10).weights.data,
    "magic": lambda: otgraph.magic_graph(X, 5).weights.data,
    "to_knn": lambda: graph.to_knn(40).distances,
    "extend": lambda: otgraph.knn_gaussian_graph(X, 10).extend(X + 1).data,
    "cluster": lambda: otgraph.cluster(graph, 4).labels,
    "quadratic": lambda: otgraph.quadratic_ot_graph(X, 1.0).weights.data,
    "entropic": lambda: otgraph.entropic_ot_graph(X[:300], 1.0).weights.data,
    "metric": lambda: otgraph.knn_gaussian_graph(X[:500], 5, metric="manhattan").weights.data,
}
expected = {name: call() for name, call in calls.items()}
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(60, exit=True)
    for name, call in calls.items():
        if not np.array_equal(call(), expected[name]):
            os.write(1, name.encode())
    os._exit(0)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_process_forked_after_a_call_computes_the_same():
    """OpenMP, which scikit-learn uses, must have left no threads that the process waits for."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )  # fmt: skip
    assert done.stdout == "0\n", done.stdout + done.stderr


# Interrupts -----------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["run", "map"])
def test_an_interrupt_while_work_is_handed_out_ends_it(call, monkeypatch):
    """Otherwise threads would go on for as long as the whole call takes."""
    workers, begun = Workers(2), []

    def work(item):
        begun.append(item)
        time.sleep(0.002)

    submit, calls = workers._threads().submit, []

    def interrupted(*arguments):
        calls.append(submit(*arguments))
        if len(calls) == (1 if call == "run" else 50):
            raise KeyboardInterrupt
        return calls[-1]

    monkeypatch.setattr(workers._threads(), "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(getattr(workers, call)(work, range(1000)) or ())
    time.sleep(0.1)  # for the items that were begun
    so_far = len(begun)
    assert so_far < 50
    time.sleep(0.1)
    assert len(begun) == so_far


KMEANS = """
import otgraph
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info

fit_predict = KMeans.fit_predict

def told(self, X):
    print([lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "openmp"])
    return fit_predict(self, X)

KMeans.fit_predict = told
X = otgraph.datasets.noisy_spiral(n=200).X
otgraph.cluster(otgraph.quadratic_ot_graph(X, mean_degree=8), 3)
"""


def test_clusters_are_found_by_one_thread_of_openmp():
    """Sums of k-means depend on the number of threads."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KMEANS], capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )  # fmt: skip
    assert done.stdout == "[1]\n", done.stdout + done.stderr


def _own_threads():
    return [thread for thread in threading.enumerate() if thread.name == "otgraph"]


INTERRUPTED = {
    "own thread": lambda work: in_own_thread(lambda: work(0)),
    "run": lambda work: Workers(3).run(work, range(5)),
    "map": lambda work: list(Workers(3).map(work, range(5))),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # lost interrupts
@pytest.mark.parametrize("kind", INTERRUPTED)
@pytest.mark.timeout(120)
def test_an_interrupt_at_any_moment_leaves_nothing_locked(kind, interrupt):
    """Python's own pools, conditions and futures hang here after some hundred interrupts."""
    chance, lost, going = random.Random(0), 0, set()
    before = set(threading.enumerate())  # pools of other tests may still wait to be collected

    def work(_):
        me = threading.current_thread()
        going.add(me)
        time.sleep(1e-4)
        going.remove(me)

    for _ in range(400):
        lost += interrupt(lambda: INTERRUPTED[kind](work), chance.uniform(1e-4, 2e-3)) is None
        if kind == "own thread":
            assert not going
    for _ in range(400):
        if not [thread for thread in _own_threads() if thread not in before]:
            break
        time.sleep(0.01)
    else:
        pytest.fail("threads are left")
    assert going <= {threading.current_thread()}
    assert lost < 200


ENDS = """
import os
from otgraph._parallel import Workers

workers = Workers(2)  # never closed
assert list(workers.map(abs, [-1, -2, -3])) == [1, 2, 3]
child = os.fork()
if child == 0:
    os._exit(list(workers.map(abs, [-4, -5, -6])) != [4, 5, 6])
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_workers_that_are_never_closed_do_not_hold_up_a_process_or_a_forked_one():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ENDS], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "0\n", done.stdout + done.stderr


def test_errors_of_a_function_in_its_own_thread_come_through():
    with pytest.raises(ZeroDivisionError):
        in_own_thread(lambda: 1 / 0)


@pytest.mark.parametrize("n", [0, 1, 2048, 2049, 5000, 100_003])
def test_equal_blocks_cover_all_rows_in_pairs(n):
    blocks = equal_blocks(n, 2048)
    assert [row for a, b in blocks for row in range(a, b)] == list(range(n))
    assert len(blocks) < 2 or len(blocks) % 2 == 0
    assert all(0 < b - a <= 2048 for a, b in blocks)
    assert np.ptp([b - a for a, b in blocks[:-1]] or [0]) == 0


@pytest.mark.parametrize("kept_bytes", [0, 1 << 22])
def test_memory_of_products_is_used_again(rng, monkeypatch, kept_bytes):
    monkeypatch.setattr("otgraph._parallel.KEPT_BYTES", kept_bytes)
    monkeypatch.setattr(Reused, "_kept", [])
    reused = Reused(np.float32)
    for n_rows in (5, 9, 3, 0):
        left, right = (rng.random((rows, 4)).astype(np.float32) for rows in (n_rows, 7))
        product = reused.product(left, right.T)
        np.testing.assert_array_equal(product, left @ right.T)
        reused.give_back(product)
    assert len(reused._free) + len(Reused._kept) == 1 + (kept_bytes == 0)


def test_memory_of_small_products_is_kept_between_searches(rng, monkeypatch):
    monkeypatch.setattr(Reused, "_kept", [])
    monkeypatch.setattr("otgraph._parallel.MOST_KEPT", 1)
    left = rng.random((6, 4))
    first = Reused(np.float64)
    both = [first.product(left, left.T) for _ in range(2)]
    address = both[0].ctypes.data
    for product in both:
        first.give_back(product)
    del both, product
    assert len(Reused._kept) == 1
    other = Reused(np.float32).product(left.astype(np.float32), left.T.astype(np.float32))
    assert other.ctypes.data == address
    assert not Reused._kept  # nobody else gets it meanwhile
