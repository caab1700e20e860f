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
        if len(rounds) == 15:
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
