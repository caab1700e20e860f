"""Data on which neighbor graphs, float32 or naive Newton methods come to grief."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reference
from otgraph import datasets, quadratic_ot_graph
from otgraph.costs.points import EuclideanCost
from otgraph.exceptions import ConvergenceWarning


def assert_proved(graph):
    """What a certificate says holds, recomputed from the weights where that is cheap."""
    certificate = graph.certificate
    assert certificate.status == "exact"
    assert certificate.violations == 0
    assert abs(certificate.duality_gap) <= 1e-6
    assert certificate.pairs_checked == graph.n * (graph.n - 1) // 2
    assert np.all(np.isfinite(graph.potentials))
    assert (graph.weights != graph.weights.T).nnz == 0
    row_sums = np.asarray(graph.weights.sum(axis=1)).ravel()
    assert np.abs(row_sums / graph.mass - 1.0).max() <= 1e-5


@pytest.mark.parametrize("self_loops", [False, True], ids=["hollow", "loops"])
@pytest.mark.parametrize("eps", np.logspace(-2, 2, 9).round(4))
def test_spiral_of_the_paper(eps, self_loops):
    X = datasets.noisy_spiral(1000).X
    graph = quadratic_ot_graph(X, eps, self_loops=self_loops)
    assert_proved(graph)
    assert graph.certificate.marginal_error <= 1e-6
    assert graph.certificate.n_steps <= 40
    reference.assert_optimal(graph, reference.cost_matrix(X), eps, self_loops=self_loops)


def test_gaussians_in_many_dimensions(rng):
    """Distances concentrate: nearest neighbors are nearly arbitrary, candidates mostly wrong."""
    X = rng.normal(size=(5000, 250))
    graph = quadratic_ot_graph(X, 1.0)
    assert_proved(graph)
    reference.assert_rows_optimal(graph, X, 1.0, rows=range(0, 5000, 25))


@pytest.mark.parametrize("n_per_cluster", [300, 301])
def test_two_clusters_far_apart(rng, n_per_cluster):
    """No edge goes across; clusters of odd size too carry their own mass."""
    X = rng.normal(size=(2 * n_per_cluster, 3))
    X[:n_per_cluster, 0] += 1e6
    for options in ({"eps": 1.0}, {"mean_degree": 10}):
        graph = quadratic_ot_graph(X, **options)
        assert_proved(graph)
        assert graph.weights[:n_per_cluster, n_per_cluster:].nnz == 0
        assert graph.n_connected >= 2


def test_cluster_far_away_is_as_near(rng):
    """Each of two far clusters has the graph it would have alone, at its own scale."""
    A = rng.normal(size=(200, 3))
    both = np.vstack([A, A + 1e6])
    alone = quadratic_ot_graph(A, 1.0, normalize=False, tol=1e-9)
    graph = quadratic_ot_graph(both, 1.0, normalize=False, tol=1e-9)
    assert_proved(graph)
    difference = graph.weights[:200, :200] - alone.weights
    assert abs(difference).max() <= 1e-6  # 1e6 leaves ten digits of a coordinate


@pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
@pytest.mark.parametrize("eps", [0.01, 1.0, 30.0])
def test_five_hundred_copies(rng, eps):
    X = rng.normal(size=(900, 3))
    X[200:700] = X[0]
    graph = quadratic_ot_graph(X, eps)
    assert_proved(graph)
    reference.assert_optimal(graph, reference.cost_matrix(X), eps)
    rows = graph.weights[200:700].toarray()
    assert np.abs(rows[:, :200] - rows[0, :200]).max() <= 1e-5  # copies are treated alike


def test_outlier(rng):
    X = rng.normal(size=(800, 3))
    X[17] = 1e6
    graph = quadratic_ot_graph(X, 1.0)
    assert_proved(graph)
    assert graph.degrees.min() >= 1
    assert graph.n_connected == 1  # it can only share with the others


@pytest.mark.parametrize("eps", [0.01, 0.3, 10.0])
def test_star(eps):
    """One hub, many leaves at the same distance: the leaves alone must do."""
    X = np.vstack([np.zeros(150), np.eye(150)])
    graph = quadratic_ot_graph(X, eps)
    assert_proved(graph)
    reference.assert_optimal(graph, reference.cost_matrix(X), eps)
    leaves = graph.weights[1:, 1:].toarray()[~np.eye(150, dtype=bool)]
    np.testing.assert_allclose(leaves, leaves.mean(), rtol=1e-4)


@pytest.mark.parametrize("degrees_of_freedom", [1.0, 1.5])
@pytest.mark.parametrize("options", [{"eps": 1.0}, {"eps": 0.01}, {"mean_degree": 15}])
@pytest.mark.parametrize("seed", [0, 6, 9])  # 6, 9: solved along a path of eps, not directly
def test_heavy_tails(degrees_of_freedom, options, seed):
    X = np.random.default_rng(seed).standard_t(degrees_of_freedom, size=(2000, 2))
    graph = quadratic_ot_graph(X, **options)
    assert_proved(graph)
    reference.assert_rows_optimal(graph, X, graph.params["eps"], rows=range(0, 2000, 20))


@pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
@pytest.mark.parametrize("degree", [5, 40])
@pytest.mark.parametrize("kind", ["star", "copies"])
def test_degree_that_no_eps_gives(rng, kind, degree):
    """The search leads to eps near zero; what comes back is the nearest graph that is proved."""
    X = np.vstack([np.zeros(150), np.eye(150)])
    if kind == "copies":
        X = rng.normal(size=(600, 3))
        X[:300] = X[0]
    with pytest.warns(ConvergenceWarning, match="No `eps` was found"):
        graph = quadratic_ot_graph(X, mean_degree=degree)
    assert_proved(graph)


def test_density_ratio_of_a_million(rng):
    X = np.vstack([1e-3 * rng.normal(size=(400, 2)), rng.normal(size=(400, 2))])
    for options in ({"eps": 1.0}, {"mean_degree": 10}):
        assert_proved(quadratic_ot_graph(X, **options))


@pytest.mark.parametrize("n", [100, 101])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("eps", [1e-3, 1e-6])
def test_eps_so_small_that_the_plan_is_a_matching(rng, n, self_loops, eps):
    X = rng.normal(size=(n, 3))
    graph = quadratic_ot_graph(X, eps, self_loops=self_loops)
    assert_proved(graph)
    assert graph.mean_degree < 2


def test_eps_above_rounding_is_solved(rng):
    """Excesses of 1e-9 beside costs of 1."""
    assert_proved(quadratic_ot_graph(rng.normal(size=(100, 3)), 1e-9))


def test_eps_below_rounding_ends_and_is_honest(rng):
    """Excesses of 1e-12 have four digits beside costs of 1: fewer than the tolerance asks for."""
    with pytest.warns(ConvergenceWarning, match="row sums are off"):
        graph = quadratic_ot_graph(rng.normal(size=(100, 3)), 1e-12)
    error = np.abs(np.asarray(graph.weights.sum(axis=1)).ravel() - 1.0).max()
    assert graph.certificate.status == "not_converged"
    assert graph.certificate.marginal_error == pytest.approx(error, rel=1e-3)
    assert 1e-6 < error < 1e-2


def test_bipartite_plan():
    """Two rows of points, far enough that only partners across the gap are used."""
    t = np.arange(40.0)
    X = np.vstack([np.column_stack([10 * t, 0 * t]), np.column_stack([10 * t, 0 * t + 1])])
    graph = quadratic_ot_graph(X, 1e-3, normalize=False)
    assert_proved(graph)
    np.testing.assert_allclose(graph.weights[:40, 40:].toarray(), np.eye(40), atol=1e-5)


def test_grid_of_ties():
    x, y = np.meshgrid(np.arange(20.0), np.arange(20.0))
    graph = quadratic_ot_graph(np.column_stack([x.ravel(), y.ravel()]), 0.05)
    assert_proved(graph)


def test_memory_of_twenty_thousand_points():
    """Below 1 GB in all, interpreter and compiler included; a matrix in float32 has 1.6 GB."""
    code = """
import pathlib, re
import numpy as np
from otgraph import quadratic_ot_graph
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 50)) * np.geomspace(1.0, 0.02, 50)
graph = quadratic_ot_graph(X, mean_degree=15)
assert graph.certificate.status == "exact", graph.certificate
print(re.search(r"VmHWM:\\s*(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
"""
    # Not getrusage: its peak is that of the process which started this one, if that was larger.
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is read from /proc")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 1024 * int(done.stdout) < 1e9


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [3, 50])
def test_fifty_thousand_points(rng, n_features):
    X = rng.normal(size=(50_000, n_features)) * np.geomspace(1.0, 0.02, n_features)
    graph = quadratic_ot_graph(X, mean_degree=10)
    assert_proved(graph)
    reference.assert_rows_optimal(graph, X, graph.params["eps"], rows=range(0, 50_000, 500))


def test_far_points_find_each_other_in_a_screen(rng, monkeypatch):
    """Far points are each other's partners, and nobody's neighbors; more neighbors do not help."""
    searches = []
    neighbors = EuclideanCost.neighbors

    def counted(self, k):
        searches.append(k)
        return neighbors(self, k)

    monkeypatch.setattr(EuclideanCost, "neighbors", counted)
    X = rng.normal(size=(9000, 20)) * 0.9 ** np.arange(20)
    X[:180] = rng.uniform(-12.0, 12.0, size=(180, 20))
    graph = quadratic_ot_graph(X, mean_degree=15, min_degree=0, connect=False)
    assert graph.certificate.status == "exact"
    assert len(searches) == 1
