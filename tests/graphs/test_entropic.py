"""Entropic optimal transport graphs, judged by their optimality and by POT."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from otgraph import datasets
from otgraph._parallel import cache_blocks
from otgraph.exceptions import ConvergenceError, ConvergenceWarning, InfeasibleError
from otgraph.graphs import entropic_ot_graph

TOL = 1e-6


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((60, 4))


def cost_of(X, *, self_loops):
    C = cdist(X, X, "sqeuclidean")
    C /= C.mean()
    if not self_loops:
        np.fill_diagonal(C, np.inf)
    return C


def pot_plan(C, mass, reg):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ot
    return ot.sinkhorn(
        mass, mass, C, reg, method="sinkhorn_log", numItermax=20_000, stopThr=1e-13, warn=False
    )


def assert_optimal(graph, C, mass, eps, tol=TOL):
    weights = graph.weights
    assert (weights != weights.T).nnz == 0
    assert weights.indices.dtype == np.int32
    sums = np.asarray(weights.sum(axis=1)).ravel()
    error = np.abs(sums / mass - 1.0).max()
    assert error <= tol
    assert graph.certificate.marginal_error == pytest.approx(error, abs=1e-12)
    u = graph.potentials
    with np.errstate(under="ignore"):
        plan = np.exp((u[:, None] + u - C) / eps)
    np.testing.assert_allclose(weights.toarray(), plan, rtol=1e-9, atol=1e-300)
    assert graph.certificate.status == "exact"
    assert 0.0 <= graph.certificate.duality_gap <= tol


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("eps", [0.15, 0.5, 3.0])
@pytest.mark.parametrize("uniform", [False, True])
def test_equals_pot_with_eps_as_reg(X, rng, eps, self_loops, uniform):
    mass = np.ones(60) if uniform else rng.random(60) + 0.2
    graph = entropic_ot_graph(
        X, eps, mass=None if uniform else mass, self_loops=self_loops, tol=1e-10
    )
    C = cost_of(X, self_loops=self_loops)
    assert_optimal(graph, C, mass, eps, 1e-10)
    # POT takes masses that sum to one; the plan scales with the mass, reg stays.
    finite = np.where(np.isfinite(C), C, 1e4)
    plan = pot_plan(finite, mass / mass.sum(), eps) * mass.sum()
    np.testing.assert_allclose(graph.weights.toarray(), plan, atol=1e-8)


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("eps", [0.01, 0.03, 0.1, 0.3, 1.0, 10.0])
def test_noisy_spiral_converges(eps, self_loops):
    X = datasets.noisy_spiral(1000).X
    graph = entropic_ot_graph(X, eps, self_loops=self_loops)
    assert_optimal(graph, cost_of(X, self_loops=self_loops), np.ones(1000), eps)
    assert graph.certificate.n_steps <= 60
    assert graph.certificate.pairs_checked == 1000 * 999 // 2 + 1000 * self_loops


def test_two_and_three_points_by_hand():
    two = entropic_ot_graph([[0.0], [5.0]], 0.1)
    np.testing.assert_allclose(two.weights.toarray(), [[0, 1], [1, 0]], atol=TOL)
    # Three points without self-loops: row sums leave no freedom, all weights are 1/2.
    three = entropic_ot_graph([[0.0], [5.0], [6.0]], 0.1, tol=1e-9)
    np.testing.assert_allclose(three.weights.toarray(), (1 - np.eye(3)) / 2, atol=1e-8)


def test_large_eps_spreads_evenly(X):
    weights = entropic_ot_graph(X, 1e6, self_loops=True, tol=1e-9).weights.toarray()
    np.testing.assert_allclose(weights, 1 / 60, rtol=1e-5)


def test_small_eps_with_self_loops_is_the_identity(X):
    weights = entropic_ot_graph(X, 1e-4, self_loops=True).weights.toarray()
    np.testing.assert_allclose(weights, np.eye(60), atol=1e-6)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.booleans())
def test_laws(seed, self_loops):
    rng = np.random.default_rng(seed)
    X, eps = rng.standard_normal((12, 3)), float(rng.uniform(0.1, 2))
    C = cdist(X, X, "sqeuclidean")
    options = {"metric": "precomputed", "normalize": False, "tol": 1e-11, "self_loops": self_loops}
    base = entropic_ot_graph(C, eps, **options)
    # scaling cost and eps together
    scaled = entropic_ot_graph(7.0 * C, 7.0 * eps, **options)
    np.testing.assert_allclose(scaled.weights.toarray(), base.weights.toarray(), atol=1e-9)
    if self_loops:  # without them a plan near a matching leaves u almost free
        np.testing.assert_allclose(scaled.potentials, 7.0 * base.potentials, atol=1e-7)
    # a constant added to the cost moves u by half of it
    shifted = entropic_ot_graph(C + 3.0, eps, **options)
    np.testing.assert_allclose(shifted.weights.toarray(), base.weights.toarray(), atol=1e-9)
    if self_loops:
        np.testing.assert_allclose(shifted.potentials, base.potentials + 1.5, atol=1e-7)
    # scaling the masses scales the plan
    doubled = entropic_ot_graph(C, eps, mass=np.full(12, 2.0), **options)
    np.testing.assert_allclose(doubled.weights.toarray(), 2 * base.weights.toarray(), atol=1e-9)
    # permutation and translation of the points
    order = rng.permutation(12)
    moved = entropic_ot_graph(X[order] - 5.0, eps, **{**options, "metric": "euclidean"})
    expected = base.weights.toarray()[np.ix_(order, order)]
    np.testing.assert_allclose(moved.weights.toarray(), expected, atol=1e-9)


def test_threads_and_runs_agree_to_the_bit(rng):
    X = rng.standard_normal((800, 5))
    assert len(cache_blocks(800, 800)) > 2
    graphs = [entropic_ot_graph(X, 0.02, n_jobs=jobs) for jobs in (1, 2, 2)]
    for other in graphs[1:]:
        np.testing.assert_array_equal(other.weights.data, graphs[0].weights.data)
        np.testing.assert_array_equal(other.potentials, graphs[0].potentials)


class TestHardCases:
    def test_newton_takes_over_where_averaging_crawls(self, rng):
        # Pairs of near points exchange almost all of their mass: eigenvalues near −1.
        X = rng.standard_normal((30, 3))
        X = np.vstack([X, X + 1e-3 * rng.standard_normal((30, 3))])
        graph = entropic_ot_graph(X, 0.02)
        assert_optimal(graph, cost_of(X, self_loops=False), np.ones(60), 0.02)
        assert graph.certificate.n_steps < 100

    def test_small_eps_is_approached_from_larger_ones(self, X):
        graph = entropic_ot_graph(X, 1e-3)
        assert_optimal(graph, cost_of(X, self_loops=False), np.ones(60), 1e-3)
        assert graph.certificate.n_steps < 80  # from scratch it takes some 150

    def test_outlier_and_far_clusters(self, rng):
        X = rng.standard_normal((100, 4))
        X[0] = 1e6
        X[50:] += 1e5
        graph = entropic_ot_graph(X, 0.01)
        assert np.all(np.isfinite(graph.potentials))
        assert graph.certificate.status == "exact"

    def test_duplicates_and_identical_points(self, rng):
        X = rng.standard_normal((50, 3))
        X[:30] = X[0]
        assert entropic_ot_graph(X, 0.1).certificate.status == "exact"
        with pytest.warns(UserWarning, match="All 10 points are identical"):
            graph = entropic_ot_graph(np.ones((10, 2)), 0.1)
        np.testing.assert_allclose(graph.weights.toarray(), (1 - np.eye(10)) / 9, rtol=1e-5)

    def test_heavy_point(self, X):
        mass = np.ones(60)
        mass[3] = 55.0
        graph = entropic_ot_graph(X, 0.1, mass=mass)
        assert_optimal(graph, cost_of(X, self_loops=False), mass, 0.1)
        mass[3] = 60.0
        with pytest.raises(InfeasibleError, match="point 3"):
            entropic_ot_graph(X, 0.1, mass=mass)
        entropic_ot_graph(X, 0.1, mass=mass, self_loops=True)

    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_scale_of_the_points_does_not_matter(self, X, scale):
        expected = entropic_ot_graph(X, 0.2, tol=1e-10).weights.toarray()
        weights = entropic_ot_graph(X * scale, 0.2, tol=1e-10).weights.toarray()
        np.testing.assert_allclose(weights, expected, atol=1e-8)

    def test_not_converging_is_said(self, X):
        with pytest.warns(ConvergenceWarning, match=r"after \d passes, more than `tol`=1e-06"):
            graph = entropic_ot_graph(X, 0.05, max_iter=3)
        assert graph.certificate.status == "not_converged"
        assert graph.certificate.n_steps <= 4  # and one to see where it stands
        assert graph.certificate.marginal_error > 1e-6
        assert np.all(np.isfinite(graph.weights.data))
        with pytest.raises(ConvergenceError, match="`max_iter`"):
            entropic_ot_graph(X, 0.05, max_iter=3, on_failure="raise")

    def test_hopeless_eps_ends(self, X):
        with pytest.warns(ConvergenceWarning, match="more than `tol`"):
            graph = entropic_ot_graph(X, 1e-14, max_iter=300)
        assert graph.certificate.n_steps <= 330
        assert np.all(np.isfinite(graph.potentials))


def test_gap_is_infinite_where_no_feasible_plan_was_found():
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.warns(ConvergenceWarning, match="no plan with exact row sums was found"):
        certificate = entropic_ot_graph(X, 1e-3, tol=0.9, max_iter=15).certificate
    assert (certificate.status, certificate.duality_gap) == ("not_converged", np.inf)


@pytest.mark.parametrize("max_error", [None, 1e-6])
@pytest.mark.parametrize("eps", [0.001, 0.003, 0.01])
def test_points_that_exchange_nearly_all_mass(eps, max_error, rng):
    """Newton systems are nearly singular; conjugate gradients alone do not solve them."""
    X = rng.normal(size=(400, 5))
    certificate = entropic_ot_graph(X, eps, max_error=max_error).certificate
    assert certificate.status == "exact"
    assert certificate.duality_gap < 1e-6
    assert certificate.n_steps < 250


def test_gap_is_that_of_a_feasible_plan(X):
    """The gap formula against the two objective values themselves, far from the optimum."""
    eps = 0.3
    with pytest.warns(ConvergenceWarning):
        graph = entropic_ot_graph(X, eps, max_iter=7, tol=1e-12)
    C, W, u = cost_of(X, self_loops=True), graph.weights.toarray(), graph.potentials
    sums = W.sum(axis=1)
    d = np.linalg.solve(np.diag(sums) + W, 1.0 - sums)
    feasible = W * (1.0 + d[:, None] + d)
    np.testing.assert_allclose(feasible.sum(axis=1), 1.0, rtol=1e-12)
    positive = feasible > 0
    assert np.array_equal(positive, W > 0)
    logs = np.log(feasible, where=positive, out=np.zeros_like(W))
    primal = (C * feasible).sum() + eps * (feasible * (logs - 1.0)).sum()
    dual = 2.0 * u.sum() - eps * W.sum()
    relative = (primal - dual) / ((C * W).sum() + eps * 60)
    assert relative > 1e-9  # else the comparison below would say nothing
    assert graph.certificate.duality_gap == pytest.approx(relative, rel=1e-4)


def test_progress_is_shown(X, capsys):
    entropic_ot_graph(X, 0.5, progress=True)
    assert "sinkhorn" in capsys.readouterr().err


def test_history_comes_down_from_larger_eps_to_the_tolerance(rng):
    certificate = entropic_ot_graph(rng.normal(size=(60, 3)), eps=0.05, tol=1e-8).certificate
    assert len(certificate.history) > 1
    assert 2 < sum(map(len, certificate.history)) <= certificate.n_steps
    assert certificate.history[-1][0] > 1e-8 >= certificate.history[-1][-1]


def test_warning_says_what_is_not_proved(monkeypatch):
    """Row sums may be right while no plan with exact ones is found."""
    monkeypatch.setattr("otgraph.graphs.entropic.relative_gap", lambda *_: float("inf"))
    with pytest.warns(ConvergenceWarning, match="not proved optimal: row sums are within `tol`"):
        entropic_ot_graph([[0.0], [1.0], [3.0]])
