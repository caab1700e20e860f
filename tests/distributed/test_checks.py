"""What cannot work is refused before the work begins."""

from __future__ import annotations

import asyncio
import time
from importlib.metadata import version

import dask.array as da
import pytest
from distributed import Client, LocalCluster
from distributed.comm import CommClosedError

import otgraph.distributed
from otgraph.distributed import _checks, _cluster
from otgraph.distributed._checks import WorkerFacts
from otgraph.distributed._cluster import Cluster
from otgraph.exceptions import ClusterError, MemoryLimitError

quadratic_ot_graph = otgraph.distributed.quadratic_ot_graph


@pytest.fixture
def X(rng):
    return rng.normal(size=(100, 3))


def test_no_client(X):
    with pytest.raises(ClusterError, match=r"no current Dask client.*Client\(\)"):
        quadratic_ot_graph(X, 1.0)


def test_copies_cannot_be_collapsed(X):
    with pytest.raises(ValueError, match="`collapse` must be False on a cluster"):
        quadratic_ot_graph(X, 1.0, collapse=True)


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


def test_versions(build, X, monkeypatch):
    def facts(dask_worker):
        return WorkerFacts("0.0.7", 1, 1 << 30)

    monkeypatch.setattr(_checks, "_facts", facts)
    with pytest.raises(ClusterError, match=r"has otgraph 0.0.7, and this process has"):
        build(X, 1.0)


def test_memory_for_the_points():
    facts = {"tcp://a": WorkerFacts("1", 1, 10**9)}
    with pytest.raises(MemoryLimitError, match=r"take 400 MB as float64.* may use 700 MB"):
        _checks.check_memory(facts, 400_000_000, 1000)


def test_memory_for_shared_points():
    facts = {f"tcp://{name}": WorkerFacts("1", 1, 10**9) for name in "ab"}
    room = _checks.check_memory(facts, 400_000_000, 1000, shared=True)
    assert room.pairs == 2 * 700 * 10**6  # points are written to disk if pairs need the room
    # What two copies of a share leave, or as large as is of use.
    assert room.group == min(300_000_000 // _checks.GROUPS_OF_THREAD, _checks.MOST_GROUP_BYTES)
    with pytest.raises(MemoryLimitError, match=r"take 700 MB, of which each of 2 worker.*more"):
        _checks.check_memory(facts, 700_000_000, 1000, shared=True)


def test_memory_for_a_block_names_the_size_that_fits():
    facts = {"tcp://a": WorkerFacts("1", 2, 10**9)}
    with pytest.raises(MemoryLimitError, match=r"Pass `block_rows=\d+` or less") as error:
        _checks.check_memory(facts, 10**8, 10**6)
    fits = int(str(error.value).split("block_rows=")[1].split("`")[0])
    assert _checks.check_memory(facts, 10**8, fits).pairs == 600 * 10**6
    with pytest.raises(MemoryLimitError):
        _checks.check_memory(facts, 10**8, fits + 1)


@pytest.mark.parametrize("kind", ["array", "dask"])
def test_memory_is_checked_before_anything_is_sent(build, X, monkeypatch, kind):
    def facts(dask_worker):
        return WorkerFacts(version("otgraph"), 1, 1000)

    def refuse(*args, **kwargs):
        pytest.fail("nothing may be computed")

    monkeypatch.setattr(_checks, "_facts", facts)
    monkeypatch.setattr(Cluster, "submit", refuse)
    monkeypatch.setattr(Cluster, "compute", refuse)
    with pytest.raises(MemoryLimitError, match="Dask pauses it at 80%"):
        build(da.from_array(X) if kind == "dask" else X, 1.0)


def test_memory_that_a_worker_holds_already():
    facts = {"tcp://a": WorkerFacts("1", 1, 10**9, held=3 * 10**8)}
    assert _checks.check_memory(facts, 10**8, 1000).pairs == 300 * 10**6
    facts = {"tcp://a": WorkerFacts("1", 1, 4 * 10**8, held=3 * 10**8)}
    with pytest.raises(MemoryLimitError, match=r"has 400 MB and .* holds 300 MB.*memory_limit"):
        _checks.check_memory(facts, 1000, 1000)


def test_workers_too_small_for_their_own_process_are_refused_before_any_task(rng):
    X = rng.normal(size=(3000, 20))
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="280MB", dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(MemoryLimitError, match="memory_limit"),
    ):
        quadratic_ot_graph(X, mean_degree=10, client=client, block_rows=1000)


def test_a_worker_that_dies_while_it_answers_is_not_called_a_lost_scheduler(client, monkeypatch):
    def died(*_, **__):
        msg = "in <TCP (closed) Scheduler Broadcast>: Stream is closed"
        raise CommClosedError(msg)

    monkeypatch.setattr(client, "run", died)
    with pytest.raises(MemoryLimitError, match="A worker died"):
        _checks.ask_workers(Cluster(client))


def test_workers_that_all_pause_end_the_computation_with_an_error(client, monkeypatch):
    monkeypatch.setattr(_cluster, "_is_stuck", lambda worker: True)
    cluster = Cluster(client, pause_seconds=0.05)
    began = time.perf_counter()
    with pytest.raises(MemoryLimitError, match="All 2 workers are paused"), cluster.running():
        cluster.result(cluster.submit("nap", time.sleep, 20))
    assert time.perf_counter() - began < 15


def test_a_paused_worker_that_runs_a_task_is_not_stuck():
    for metrics in ({"executing": 1}, {"task_counts": {"executing": 1}}):
        assert not _cluster._is_stuck({"status": "paused", "metrics": metrics})
    assert not _cluster._is_stuck({"status": "running", "metrics": {}})
    assert _cluster._is_stuck({"status": "paused", "metrics": {"task_counts": {"ready": 3}}})


def test_blocks_by_threads_and_memory():
    many = [WorkerFacts("1", 4, 10**12)] * 2
    assert _checks.choose_block_rows(100, None, many) == _checks.FEWEST_ROWS
    assert _checks.choose_block_rows(1_000_000, None, many) == 62_500  # two for each thread
    small = [WorkerFacts("1", 1, 10**9), WorkerFacts("1", 1, 10**8)]
    assert _checks.choose_block_rows(1_000_000, None, small[:1], 10**8) == 234_375
    assert _checks.choose_block_rows(1_000_000, None, small) == _checks.FEWEST_ROWS
    assert _checks.choose_block_rows(10**8, None, many[:1] * 100) == 781_250
    assert _checks.choose_block_rows(100, 1000) == 1000
    with pytest.raises(ValueError, match=r"more than 1024 blocks.*Pass at least 977"):
        _checks.choose_block_rows(1_000_000, 10)
    with pytest.raises(ValueError, match="`block_rows` must be an integer >= 1"):
        _checks.choose_block_rows(100, 0)


def test_results_come_from_the_workers_where_this_process_reaches_them(client, X, monkeypatch):
    asked = []
    gather = client.gather

    def seen(futures, **options):
        asked.append(options["direct"])
        return gather(futures, **options)

    monkeypatch.setattr(client, "gather", seen)
    quadratic_ot_graph(X, 1.0, client=client)
    assert set(asked[1:]) == {True}  # they are known from then on

    async def refused(*_, **__):
        raise OSError

    asked.clear()
    monkeypatch.setattr("distributed.comm.connect", refused)
    quadratic_ot_graph(X, 1.0, client=client)
    assert set(asked) == {None}
