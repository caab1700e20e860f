"""What breaks on the way is reported clearly, and leaves nothing behind."""

from __future__ import annotations

import gc
import logging
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster

import otgraph.distributed
from otgraph.distributed import _cluster
from otgraph.exceptions import ClusterError

quadratic_ot_graph = otgraph.distributed.quadratic_ot_graph


@pytest.fixture
def X(rng):
    return rng.normal(size=(100, 3))


def test_killed_workers():
    from distributed.scheduler import KilledWorker

    cluster = _cluster.Cluster(None)
    for _ in range(8):
        key = cluster.key("rows-of-search")
    with (
        pytest.raises(ClusterError, match=r"rows of search \(task 7\) was running on 4 workers"),
        cluster.errors(),
    ):
        raise KilledWorker(key, None, 3)


def test_lost_scheduler(X):
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    client = Client(cluster, set_as_default=False)
    graph = quadratic_ot_graph(X, 1.0, client=client)
    cluster.close()
    with pytest.raises(ClusterError, match="was lost"):
        graph.to_scipy()
    client.close()
    with pytest.raises(ClusterError, match="was lost"):  # workers that leave are looked for, too
        _cluster.Cluster(client).watch()


def test_interruption_frees_the_cluster(client, X, monkeypatch, caplog):
    """Ctrl-C while waiting for products: nothing of the computation stays on the cluster."""
    gather = _cluster.Cluster.gather
    rounds = []

    def interrupted(self, futures, label=None):
        rounds.append(label)
        if len(rounds) == 8:
            raise KeyboardInterrupt
        return gather(self, futures, label)

    monkeypatch.setattr(_cluster.Cluster, "gather", interrupted)
    with caplog.at_level(logging.INFO, "otgraph.distributed"), pytest.raises(KeyboardInterrupt):
        quadratic_ot_graph(X, 0.1, client=client, block_rows=30)
    assert "giving up" in caplog.text
    for _ in range(200):
        gc.collect()  # the traceback refers to results
        keys = client.run_on_scheduler(_keys)
        if not keys:
            break
        time.sleep(0.05)
    assert not keys
    monkeypatch.undo()
    assert quadratic_ot_graph(X, 0.1, client=client).n == len(X)  # the client goes on working


def _keys(dask_scheduler):
    return [str(key) for key in dask_scheduler.tasks if "otgraph" in str(key)]


def test_sent_messages_are_forgotten(client):
    """Dask would keep the last thousand, with all vectors in them."""
    cluster = _cluster.Cluster(client)
    with cluster.running():
        future = cluster.send("vector", np.zeros(1000))
        cluster.result(future)
        kept = client.run_on_scheduler(
            lambda dask_scheduler: [
                len(comm.recent_message_log) for comm in dask_scheduler.stream_comms.values()
            ]
        )
    assert kept
    assert not any(kept)
    assert not client.scheduler_comm.recent_message_log


def _kept(i):
    return _cluster.Kept(i, 10 * i)


@pytest.mark.parametrize("state", ["reached", "out of reach", "half of them gone"])
def test_notes(client, monkeypatch, state):
    """Workers are asked for them; a task returns each that they do not have."""
    cluster = _cluster.Cluster(client)
    cluster.reaches_workers = state != "out of reach"
    if state == "half of them gone":
        ask = _cluster._ask_for_notes

        async def half(client, keys):
            return await ask(client, keys[::2])

        monkeypatch.setattr(_cluster, "_ask_for_notes", half)
    returned = []
    submit = cluster._submit
    monkeypatch.setattr(
        cluster, "_submit", lambda name, *task: returned.append(name) or submit(name, *task)
    )
    with cluster.running():
        futures = [cluster.submit("kept", _kept, i) for i in range(6)]
        assert cluster.notes(futures) == [0, 10, 20, 30, 40, 50]
    expected = {"reached": 0, "out of reach": 6, "half of them gone": 3}
    assert returned.count("note") == expected[state]


@pytest.mark.parametrize("reached", [True, False])
def test_notes_of_a_task_that_fails(client, reached):
    cluster = _cluster.Cluster(client)
    cluster.reaches_workers = reached
    with pytest.raises(ZeroDivisionError), cluster.running():
        cluster.notes([cluster.submit("kept", _kept, 1), cluster.submit("kept", divmod, 1, 0)])


def test_results_by_the_worker_that_has_them(client):
    cluster = _cluster.Cluster(client)
    workers = sorted(client.nthreads())
    futures = [
        client.submit(np.zeros, 1000 + i, workers=[workers[i % 2]], pure=False) for i in range(5)
    ]
    cluster.gather(futures)
    lost = client.submit(divmod, 1, 0, pure=False)  # it has failed, and is nowhere
    found = {}
    for cluster.input_bytes in (100, 17_000, 10**6):
        found[cluster.input_bytes] = sorted(cluster.held_together([*futures, lost]))
    assert found[100] == [[0], [1], [2], [3], [4], [5]]
    assert found[17_000] == [[0, 2], [1, 3], [4], [5]]
    assert found[10**6] == [[0, 2, 4], [1, 3], [5]]
