"""Workers that die on the way: the same graph, and a log of what was computed again."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time

import cloudpickle
import numpy as np
import pytest
from distributed import Client, LocalCluster

import otgraph
from otgraph.distributed import _cluster, _pairs, quadratic_ot_graph

# So many tasks of these names have been asked for when a worker is killed.
IN_THE_SEARCH = ("search", 2)
IN_THE_SOLVE = ("solve", 2)
IN_THE_PRODUCTS = ("product", 21)


@pytest.fixture
def processes():
    """Two worker processes, which are started again when they die."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_killed_in_the_search_and_another_in_the_solve(
    processes, monkeypatch, caplog, tmp_path
):
    n = 20_000
    X = otgraph.datasets.noisy_manifold(n, dim=50, dtype=np.float32).X
    np.save(tmp_path / "points.npy", X)
    monkeypatch.setattr(_pairs, "MOST_SOLVED", 0)  # each product is a round, as for many points
    source = tmp_path / "points.npy"
    assert_survives(processes, monkeypatch, caplog, source, X, IN_THE_PRODUCTS, mean_degree=15)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_few_points_while_workers_die(processes, monkeypatch, caplog, rng):
    X = rng.normal(size=(800, 4))
    assert_survives(processes, monkeypatch, caplog, X, X, IN_THE_SOLVE, eps=0.5)


def assert_survives(client, monkeypatch, caplog, source, X, in_the_solve, **options):
    options["search"] = "exact"
    here = otgraph.quadratic_ot_graph(X, **options)
    killed = []
    submit = _cluster.Cluster.submit
    asked = {}

    def submit_and_kill(self, name, *args, **kwargs):
        future = submit(self, name, *args, **kwargs)
        asked[name] = asked.get(name, 0) + 1
        if (name, asked[name]) in (IN_THE_SEARCH, in_the_solve):
            # Of two workers the second in the search, the first in the solve.
            pids = self.client.run(os.getpid)
            address = sorted(pids)[-1 if name == IN_THE_SEARCH[0] else 0]
            os.kill(pids[address], signal.SIGKILL)
            killed.append(address)
        return future

    monkeypatch.setattr(_cluster.Cluster, "submit", submit_and_kill)
    with caplog.at_level(logging.WARNING, "otgraph.distributed"):
        there = quadratic_ot_graph(source, client=client, block_rows=-(-len(X) // 3), **options)
    assert len(killed) == 2
    assert (there.to_scipy() != here.weights).nnz == 0
    np.testing.assert_array_equal(there.potentials, here.potentials)
    log = [record.message for record in caplog.records if record.name == "otgraph.distributed"]
    for address in killed:
        assert any(f"worker {address} left; computed again" in line for line in log)
    assert any("(task" in line for line in log)  # named


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_workers_killed_at_once(processes, monkeypatch, caplog, rng):
    X = rng.normal(size=(800, 4))
    here = otgraph.quadratic_ot_graph(X, 0.5)
    submit, asked = _cluster.Cluster.submit, []

    def submit_and_kill(self, name, *args, **kwargs):
        future = submit(self, name, *args, **kwargs)
        asked.append(name)
        if (name, asked.count(name)) == IN_THE_SOLVE:
            for pid in self.client.run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)
        return future

    monkeypatch.setattr(_cluster.Cluster, "submit", submit_and_kill)
    with caplog.at_level(logging.WARNING, "otgraph.distributed"):
        there = quadratic_ot_graph(X, 0.5, client=processes, block_rows=300)
    assert (there.to_scipy() != here.weights).nnz == 0
    assert caplog.text.count("left; computed again") == 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_killed_while_methods_use_the_graph(processes, monkeypatch, caplog, rng):
    X = rng.normal(size=(800, 4))
    here = otgraph.quadratic_ot_graph(X, 0.5)
    there = quadratic_ot_graph(X, 0.5, client=processes, block_rows=300)
    submit, asked = _cluster.Cluster.submit, []

    def submit_and_kill(self, name, *args, **kwargs):
        future = submit(self, name, *args, **kwargs)
        asked.append(name)
        if asked.count("product") == 4 and name == "product":  # in the second of three rounds
            os.kill(min(self.client.run(os.getpid).values()), signal.SIGKILL)
        return future

    monkeypatch.setattr(_cluster.Cluster, "submit", submit_and_kill)
    with caplog.at_level(logging.WARNING, "otgraph.distributed"):
        smooth = otgraph.denoise(there, X)
    np.testing.assert_allclose(smooth, otgraph.denoise(here, X), rtol=1e-12)
    assert caplog.text.count("left; computed again") == 1


def eat_memory(first, function, *args):
    """Take memory until the process is ended, if nobody has done so before."""
    try:
        os.close(os.open(first, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return function(*args)
    eaten = []
    while True:
        eaten.append(np.ones(4_000_000))  # 32 MB, written to
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_worker_that_is_ended_because_its_memory_is_full(monkeypatch, caplog, tmp_path):
    """Dask ends it at 95 % of its limit; its groups of points are read and shared again."""
    X = otgraph.datasets.noisy_manifold(9000, dim=20, dtype=np.float32).X
    np.save(tmp_path / "points.npy", X)
    options = {"mean_degree": 10, "search": "exact"}
    here = otgraph.quadratic_ot_graph(X, **options)
    submit = _cluster.Cluster.submit

    def submit_hungry(self, name, function, *args):
        if name == "screen":
            return submit(self, name, eat_memory, str(tmp_path / "eaten"), function, *args)
        return submit(self, name, function, *args)

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have no tests
    monkeypatch.setattr(_cluster.Cluster, "submit", submit_hungry)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        caplog.at_level(logging.WARNING, "otgraph.distributed"),
    ):
        there = quadratic_ot_graph(tmp_path / "points.npy", client=client, **options)
        assert (there.to_scipy() != here.weights).nnz == 0
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert (tmp_path / "eaten").exists()
    assert caplog.text.count("left; computed again") == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_cluster_that_shrinks(monkeypatch, tmp_path):
    """Two of three workers leave during the solve; what they hold moves to the third."""
    X = otgraph.datasets.noisy_manifold(9000, dim=20, dtype=np.float32).X
    np.save(tmp_path / "points.npy", X)
    here = otgraph.quadratic_ot_graph(X, mean_degree=10)
    monkeypatch.setattr(_pairs, "MOST_SOLVED", 0)
    submit, asked = _cluster.Cluster.submit, []
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):

        def submit_and_shrink(self, name, *args):
            asked.append(name)
            if asked.count("product") == 10 and name == "product":
                cluster.scale(1)
            return submit(self, name, *args)

        monkeypatch.setattr(_cluster.Cluster, "submit", submit_and_shrink)
        source, options = tmp_path / "points.npy", {"mean_degree": 10, "block_rows": 3000}
        there = quadratic_ot_graph(source, client=client, **options)
        assert (there.to_scipy() != here.weights).nnz == 0
        assert len(client.nthreads()) == 1
