"""Threads over fixed blocks: order, errors and pickles."""

from __future__ import annotations

import pickle
import threading
import time

import numpy as np
import pytest

from otgraph._parallel import Workers, row_blocks, thread_count


def test_row_blocks_cover_every_row_once():
    for n in (0, 1, 5, 10, 11):
        rows = [i for a, b in row_blocks(n, 5) for i in range(a, b)]
        assert rows == list(range(n))


def test_thread_count(monkeypatch):
    monkeypatch.setattr("otgraph._parallel.cpu_count", lambda: 8)
    assert [thread_count(n) for n in (None, 1, 3, -1, -2, -8, -99)] == [1, 1, 3, 8, 7, 1, 1]
    with pytest.raises(ValueError, match="`n_jobs` must be"):
        thread_count(0)


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


def test_progress_bar_has_a_label(capsys):
    assert list(Workers(1, progress=True).map(abs, [-1, -2], label="screen")) == [1, 2]
    assert "screen" in capsys.readouterr().err
    list(Workers(1, progress=True).map(abs, [-1, -2]))
    assert capsys.readouterr().err == ""
