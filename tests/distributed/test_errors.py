"""What cannot work is said before the work begins; what breaks on the way is said clearly."""

from __future__ import annotations

import asyncio
import logging
import time

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import otgraph.distributed
from otgraph.distributed import _checks, _cluster
from otgraph.distributed._checks import WorkerFacts
from otgraph.exceptions import ClusterError, MemoryLimitError

quadratic_ot_graph = otgraph.distributed.quadratic_ot_graph


@pytest.fixture
def X(rng):
    return rng.normal(size=(100, 3))


def test_no_client(X):
    with pytest.raises(ClusterError, match=r"no current Dask client.*Client\(\)"):
        quadratic_ot_graph(X, 1.0)


def test_the_current_client_is_used(client, X):
    with client.as_current():
        assert quadratic_ot_graph(X, 1.0).n == len(X)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [("tcp://10.0.0.1:8786", r"Pass `Client\('tcp://10.0.0.1:8786'\)`"), (3, "got 3")],
)
def test_something_else_than_a_client(X, wrong, hint):
    with pytest.raises(TypeError, match=r"`client` must be a distributed.Client.*" + hint):
        quadratic_ot_graph(X, 1.0, client=wrong)


def test_closed_client(client, X):
    second = Client(client.cluster, set_as_default=False)
    second.close()
    with pytest.raises(ClusterError, match="`client` is closed"):
        quadratic_ot_graph(X, 1.0, client=second)


def test_asynchronous_client(client, X):
    async def attempt():
        async with Client(
            client.scheduler.address, asynchronous=True, set_as_default=False
        ) as second:
            quadratic_ot_graph(X, 1.0, client=second)

    with pytest.raises(TypeError, match="must not be asynchronous"):
        asyncio.run(attempt())


def test_no_workers(X):
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(ClusterError, match="has no workers"),
    ):
        quadratic_ot_graph(X, 1.0, client=client)


def test_path_that_no_worker_can_read(build, tmp_path):
    with pytest.raises(ClusterError, match=r"which 2 of 2 workers cannot read .*FileNotFound"):
        build(tmp_path / "absent.npy", 1.0)
    (tmp_path / "text.npy").write_text("not an array")
    with pytest.raises(ClusterError, match=r"cannot read .*ValueError"):
        build(tmp_path / "text.npy", 1.0)


def test_versions(build, X, monkeypatch):
    def facts(dask_worker):
        return WorkerFacts("0.0.7", 1, 1 << 30)

    monkeypatch.setattr(_checks, "_facts", facts)
    with pytest.raises(ClusterError, match=r"has otgraph 0.0.7, and this process has"):
        build(X, 1.0)


def test_memory_for_the_points():
    facts = {"tcp://a": WorkerFacts("1", 1, 10**9)}
    with pytest.raises(MemoryLimitError, match=r"take 400 MB as float64.* may use 800 MB"):
        _checks.check_memory(facts, 400_000_000, 1000)


def test_memory_for_a_block_names_the_size_that_fits():
    facts = {"tcp://a": WorkerFacts("1", 2, 10**9)}
    with pytest.raises(MemoryLimitError, match=r"Pass `block_rows=\d+` or less") as error:
        _checks.check_memory(facts, 10**8, 10**6)
    fits = int(str(error.value).split("block_rows=")[1].split("`")[0])
    assert _checks.check_memory(facts, 10**8, fits) == 7 * 10**8
    with pytest.raises(MemoryLimitError):
        _checks.check_memory(facts, 10**8, fits + 1)


def test_blocks_from_the_number_of_points_alone():
    assert _checks.choose_block_rows(100, None) == _checks.FEWEST_ROWS
    assert _checks.choose_block_rows(1_000_000, None) == 62_500
    assert _checks.choose_block_rows(10**8, None) == 781_250
    assert _checks.choose_block_rows(100, 1000) == 1000
    with pytest.raises(ValueError, match=r"more than 1024 blocks.*Pass at least 977"):
        _checks.choose_block_rows(1_000_000, 10)
    with pytest.raises(ValueError, match="`block_rows` must be an integer >= 1"):
        _checks.choose_block_rows(100, 0)


def test_input_that_is_no_points(build, X):
    with pytest.raises(ValueError, match="must compute costs from points"):
        build(X @ X.T, 1.0, metric="precomputed")
    with pytest.raises(ValueError, match="at least two points"):
        build(X[0], 1.0)
    points = da.from_array(X)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        build(points[points[:, 0] > 0], 1.0)
    with pytest.raises(TypeError, match="one of `eps` and `mean_degree`, got"):
        build(X, 1.0, mean_degree=5)


def test_errors_of_a_worker_are_those_of_the_local_function(build, X):
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"`X` contains NaN.* in row 7"):
        build(X, 1.0)


def test_killed_workers():
    from distributed.scheduler import KilledWorker

    cluster = _cluster.Cluster(None)
    key = f"otgraph-rows-of-search-{cluster._run}-7"
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
    for _ in range(100):
        keys = client.run_on_scheduler(_keys)
        if not keys:
            break
        time.sleep(0.05)
    assert not keys
    monkeypatch.undo()
    assert quadratic_ot_graph(X, 0.1, client=client).n == len(X)  # the client goes on working


def _keys(dask_scheduler):
    return [str(key) for key in dask_scheduler.tasks if "otgraph" in str(key)]
