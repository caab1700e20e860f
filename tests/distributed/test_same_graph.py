"""The graph of a cluster is the graph of one process, bit for bit."""

from __future__ import annotations

from functools import partial

import dask.array as da
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import otgraph
from otgraph.costs import scaling
from otgraph.distributed import _blocks, _cluster, _pairs
from otgraph.distributed._cluster import Cluster

N = 600


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(1).normal(size=(N, 5))


@pytest.mark.parametrize("n_blocks", [1, 2, 3])
@pytest.mark.parametrize("which", ["client", "one_worker"])
def test_blocks_and_workers(assert_same, request, build, X, which, n_blocks):
    cluster = request.getfixturevalue(which)
    there = build(X, 0.5, client=cluster, block_rows=-(-N // n_blocks))
    assert there.n_blocks == n_blocks
    assert_same(there, otgraph.quadratic_ot_graph(X, 0.5))


OPTIONS = {
    "degree": {"mean_degree": 8},
    "loops": {"eps": 0.5, "self_loops": True},
    "cosine": {"eps": 0.5, "metric": "cosine", "power": 1},
    "power": {"eps": 0.5, "power": 1.5, "normalize": False},
    "any_metric": {"eps": 0.5, "metric": "manhattan"},
    "outliers": {"eps": 0.5, "outlier_cost": 0.1},
    "chosen_outliers": {"mean_degree": 8, "outlier_cost": "auto", "connect": False},
    "few_candidates": {"eps": 5.0, "n_candidates": 3},  # screens, also of single points
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_options(assert_same, build, X, options):
    X = X[:300]
    assert_same(build(X, block_rows=70, **options), otgraph.quadratic_ot_graph(X, **options))


def test_masses_and_start(assert_same, build, X, rng):
    mass = rng.uniform(0.5, 2.0, size=N)
    u0 = otgraph.quadratic_ot_graph(X, 0.4, mass=mass).potentials
    there = build(X, 0.5, mass=mass, u0=u0, block_rows=N)
    assert_same(there, otgraph.quadratic_ot_graph(X, 0.5, mass=mass, u0=u0))


@pytest.mark.parametrize(
    ("dim", "search"), [(12, "exact"), (12, "approximate"), (3, "exact")], ids=str
)
def test_cells_and_trees(assert_same, build, rng, dim, search):
    X = rng.normal(size=(8200, dim)) / np.arange(1, dim + 1)
    options = {"eps": 0.05, "search": search}
    assert_same(build(X, block_rows=3000, **options), otgraph.quadratic_ot_graph(X, **options))


def test_points_are_shared_in_groups(build, rng, monkeypatch):
    """Every task of a search gets some groups, none of them all points."""
    largest = []
    submit = Cluster.submit

    def watched(self, name, function, *args):
        if name == "group":
            largest.append(np.ptp(args[2]))
        assert name != "cost"  # which every worker would hold
        return submit(self, name, function, *args)

    monkeypatch.setattr(Cluster, "submit", watched)
    X = rng.normal(size=(8200, 12)) / np.arange(1, 13)
    build(X, 0.05, block_rows=3000)
    assert len(largest) > 2
    assert sum(largest) == 8200
    assert max(largest) < 8200 / 2


SHARED = {
    "power": {"eps": 0.05, "power": 1.5, "connect": False},
    "cosine": {"eps": 0.05, "metric": "cosine", "connect": False},
    "degree": {"mean_degree": 6, "search": "approximate"},  # lonely points look for neighbors
    "few_candidates": {"eps": 1.0, "n_candidates": 3},  # screens of single points
}


@pytest.mark.parametrize("options", SHARED.values(), ids=SHARED.keys())
def test_shared_points(assert_same, build, rng, options):
    X = (rng.normal(size=(8200, 12)) / np.arange(1, 13)).astype(np.float32)
    chunks = da.from_array(X, chunks=(1999, 7))
    there = build(chunks, block_rows=2500, **options)
    assert_same(there, otgraph.quadratic_ot_graph(X, **options))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_shared_points_are_read_in_blocks(assert_same, build, rng, kind, monkeypatch):
    """The center is a sum of blocks, also of float32 points that stay so."""
    monkeypatch.setattr(scaling, "MOST_SUM_ROWS", scaling.FEWEST_SUM_ROWS)
    X = (3.0 + rng.normal(size=(8200, 12)) / np.arange(1, 13)).astype(kind)
    options = {"eps": 0.05, "power": 1.5, "connect": False}
    assert_same(build(X, block_rows=3000, **options), otgraph.quadratic_ot_graph(X, **options))


def test_shared_points_whose_cells_are_of_no_use(assert_same, build, rng):
    """Neighbors are looked for in all groups, and screens compute all pairs."""
    X = rng.normal(size=(8200, 40))
    options = {"mean_degree": 8, "search": "exact"}
    assert_same(build(X, block_rows=3000, **options), otgraph.quadratic_ot_graph(X, **options))


def test_progress(assert_same, build, X, capsys):
    few = {"n_candidates": 3}  # so that a screen is needed
    here = otgraph.quadratic_ot_graph(X[:50], 0.5, **few)
    assert_same(build(X[:50], 0.5, progress=True, **few), here)
    shown = capsys.readouterr().err
    for label in ("search", "screen", "solve"):
        assert label in shown


def test_one_block_per_row(assert_same, build, X):
    assert_same(build(X[:9], 1.0, block_rows=1), otgraph.quadratic_ot_graph(X[:9], 1.0))


def test_more_rows_to_a_block_than_there_are(assert_same, build, X):
    there = build(X[:9], 1.0, block_rows=1000)
    assert there.n_blocks == 1
    assert_same(there, otgraph.quadratic_ot_graph(X[:9], 1.0))


def test_vectors_in_several_pieces(assert_same, build, X, monkeypatch):
    """As those that are too long for the tasks of a round to contain them."""
    small = partial(Cluster, piece_entries=128)
    monkeypatch.setattr(_blocks, "MOST_CONTAINED", 0)
    monkeypatch.setattr("otgraph.distributed.quadratic.Cluster", small)
    assert_same(build(X, 0.5, block_rows=250), otgraph.quadratic_ot_graph(X, 0.5))


def test_other_graphs_in_the_thread_of_a_worker(client):
    """They have products of matrices, whose last bits depend on the threads of BLAS."""

    def results():
        X = np.random.default_rng(0).normal(size=(800, 20))
        graph = otgraph.gaussian_graph(X, 1.0)
        coordinates = otgraph.eigenmaps(otgraph.knn_gaussian_graph(X, 10), 3).coordinates
        return graph.weights.data, graph.extend(X[:100] + 0.1).data, coordinates

    with threadpool_limits(2, "blas"):
        for there, here in zip(client.submit(results).result(), results(), strict=True):
            np.testing.assert_array_equal(there, here)


@pytest.mark.parametrize("most", [0, 1 << 21])
def test_linear_systems_product_by_product_or_by_one_worker(
    assert_same, build, X, monkeypatch, most
):
    submit, asked = _cluster.Cluster.submit, set()

    def seen(self, name, *args):
        asked.add(name)
        return submit(self, name, *args)

    monkeypatch.setattr(_cluster.Cluster, "submit", seen)
    monkeypatch.setattr(_pairs, "MOST_SOLVED", most)
    assert_same(build(X, 0.1, block_rows=30), otgraph.quadratic_ot_graph(X, 0.1))
    assert ("solve" in asked) == (most > 0)


@pytest.mark.parametrize("behind", [0, 1, 100])
def test_a_full_step_is_evaluated_in_the_round_of_its_system(
    assert_same, build, X, monkeypatch, behind
):
    """A round less for each system, but not for more of them in a row than are kept."""
    notes, rounds = _cluster.Cluster.notes, []

    def seen(self, futures, *args):
        rounds.append({_cluster._readable(future.key).split()[0] for future in futures})
        return notes(self, futures, *args)

    monkeypatch.setattr(_cluster.Cluster, "notes", seen)
    monkeypatch.setattr(_pairs, "MOST_BEHIND", behind)
    assert_same(build(X, 0.1, block_rows=30), otgraph.quadratic_ot_graph(X, 0.1))
    systems = [names for names in rounds if "solve" in names]
    together = sum("evaluate" in names for names in systems)
    assert len(systems) > 3
    assert together == 0 if behind == 0 else together > 0
    assert (together < len(systems)) == (behind < 100)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_points_nearby_are_solved_by_a_worker_that_has_room(
    assert_same, build, rng, monkeypatch, elsewhere
):
    """A round for all hops, and one for the solve and the evaluation after it."""
    rounds = _rounds(monkeypatch)
    monkeypatch.setattr(_pairs, "LOCAL_BYTES", 0 if elsewhere else 1 << 40)
    X = np.concatenate((rng.normal(size=(300, 4)), 20.0 * rng.normal(size=(20, 4))))
    options = {"mean_degree": 8, "min_degree": 3}
    graph = otgraph.quadratic_ot_graph(X, **options)
    assert_same(build(X, block_rows=60, **options), graph)
    assert graph.certificate.n_floors
    solves = [names for names in rounds if "nearby" in names]
    assert bool(solves) == elsewhere
    assert all("evaluate" in names for names in solves)
    if elsewhere:
        assert rounds.count({"marks"}) == len(solves)
        after = [rounds[place + 1] for place, names in enumerate(rounds) if "nearby" in names]
        assert {"evaluate"} not in after


def test_start_potentials_are_one_round(assert_same, build, X, monkeypatch):
    rounds = _rounds(monkeypatch)
    assert_same(build(X, 0.1, block_rows=30), otgraph.quadratic_ot_graph(X, 0.1))
    assert rounds.count({"lift"}) == 1
    assert {"start"} not in rounds


def _rounds(monkeypatch):
    """The names of the tasks that each round waits for, in a list that grows."""
    rounds = []

    def watched(wait):
        def seen(self, futures, *args):
            rounds.append({_cluster._readable(future.key).split()[0] for future in futures})
            return wait(self, futures, *args)

        return seen

    for kind in ("notes", "gather"):
        monkeypatch.setattr(_cluster.Cluster, kind, watched(getattr(_cluster.Cluster, kind)))
    return rounds


def test_systems_are_solved_where_it_takes_less_time():
    """A round takes longer with more blocks and longer vectors, and helps with more threads."""
    assert _pairs.solved_by_one(10**12, 10**6, 4, 1)  # nobody else could help
    assert _pairs.solved_by_one(10**12, 10**6, 1, 8)
    most = [
        max(a for a in range(0, 10**8, 10**6) if _pairs.solved_by_one(a, n, n_blocks, n_threads))
        for n, n_blocks, n_threads in [(10**5, 4, 64), (10**5, 4, 2), (10**6, 4, 2), (10**6, 16, 2)]
    ]
    assert most == sorted(set(most))


def test_groups_are_cut_only_where_memory_is_short(build, rng, monkeypatch):
    """A task gets whole groups if they fit: each cut would be a task, for every other task."""
    submit, asked = Cluster.submit, []

    def seen(self, name, *args):
        asked.append(name)
        return submit(self, name, *args)

    monkeypatch.setattr(Cluster, "submit", seen)
    X = (rng.normal(size=(8200, 12)) / np.arange(1, 13)).astype(np.float32)
    build(X, block_rows=2500, mean_degree=6, search="approximate")
    assert "search" in asked
    assert "cells" not in asked


@pytest.mark.parametrize(("tasks", "n_bytes"), [(1, 1 << 30), (64, 100)])
def test_messages_of_few_tasks_and_of_few_bytes(assert_same, build, X, monkeypatch, tasks, n_bytes):
    monkeypatch.setattr(_cluster, "MOST_WAITING", tasks)
    monkeypatch.setattr(_cluster, "MESSAGE_BYTES", n_bytes)
    assert_same(build(X, 0.1, block_rows=30), otgraph.quadratic_ot_graph(X, 0.1))
