"""Soft marginals: points may hold mass back, at a price, and outliers drop out."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import otgraph
import problems
import reference
from otgraph.exceptions import DisconnectedWarning, FormatError, InfeasibleError
from otgraph.graphs.outliers import LARGEST_QUOTIENT, chosen_outlier_cost
from soak import oracle

N = 80


def groups(rng, n_outliers=20, size=40):
    """Three groups in ten dimensions, and points that are anywhere."""
    centers = 4.0 * rng.normal(size=(3, 10))
    X = np.repeat(centers, size, axis=0) + rng.normal(size=(3 * size, 10))
    low, high = X.min(axis=0) - 2.0, X.max(axis=0) + 2.0
    outliers = rng.uniform(low, high, size=(n_outliers, 10))
    return np.vstack([X, outliers]), np.arange(3 * size + n_outliers) >= 3 * size


def soft_graph(X, eps=0.3, cost="auto", **options):
    return otgraph.quadratic_ot_graph(X, eps, outlier_cost=cost, connect=False, **options)


# The solution ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*exact duplicates:otgraph.exceptions.DisconnectedWarning")
@pytest.mark.parametrize("name", problems.CLOUDS)
@pytest.mark.parametrize("self_loops", [False, True])
def test_optimal_whatever_the_cloud(rng, name, self_loops):
    """Independent dense Newton, row sums, weights and gap, for prices from low to high."""
    X = problems.CLOUDS[name](rng, N)
    C = reference.with_diagonal(reference.cost_matrix(X), self_loops=self_loops)
    mass = rng.uniform(0.2, 3.0, size=N)
    for cost in (0.01, 0.3, 10.0):
        graph = soft_graph(X, 0.5, cost, self_loops=self_loops, mass=mass, tol=1e-8)
        assert graph.certificate.status == "exact"
        W, u = graph.weights.toarray(), graph.potentials
        dense = oracle.solve(C, 0.5, mass, highest=0.5 * cost)
        np.testing.assert_allclose(W, dense.plan, atol=1e-6 * W.max())
        np.testing.assert_allclose(W, reference.plan(C, u, 0.5), atol=1e-9)
        held = mass * np.maximum(u, 0.0) / (0.5 * cost)
        np.testing.assert_allclose(W.sum(axis=1) + held, mass, rtol=2e-8)
        gap = oracle.relative_gap(C, W, u, 0.5, mass, np.zeros_like(W), 0.5 * cost)
        assert abs(gap) <= 1e-7
        assert graph.certificate.verify(X)
        assert np.all(u <= 0.5 * cost * (1 + 1e-8))
        assert np.all(W[cost <= C] == 0.0)  # no edge costs more


def test_general_optimizer_finds_nothing_better(rng):
    """The stated objective, over all pairs and what is held back, by a generic method."""
    n, cost, eps = 8, 0.8, 0.5
    X = rng.normal(size=(n, 2))
    C, mass = reference.cost_matrix(X), rng.uniform(0.5, 2.0, size=n)
    i, j = np.triu_indices(n, 1)

    def sums(flows):
        return np.bincount(np.r_[i, j], np.tile(flows, 2), minlength=n)

    def value(flows):
        missing = mass - sums(flows)
        return 2 * (C[i, j] @ flows) + eps * flows @ flows + 0.5 * cost * np.sum(missing**2 / mass)

    graph = soft_graph(X, eps, cost, mass=mass, tol=1e-10)
    found = minimize(
        value, np.full(len(i), 0.1), method="SLSQP", bounds=[(0.0, None)] * len(i),
        constraints={"type": "ineq", "fun": lambda flows: mass - sums(flows)},
        options={"maxiter": 1000, "ftol": 1e-14},
    )  # fmt: skip
    flows = graph.weights.toarray()[i, j]
    assert np.all(sums(flows) <= mass * (1 + 1e-9))
    assert value(flows) == pytest.approx(found.fun, rel=1e-7)
    np.testing.assert_allclose(flows, found.x, atol=1e-4)


def test_two_points_by_hand():
    """With c = 1 and one pair: 2u - 1 = eps (1 - 2u/C), so u = (1 + eps) / (2 + 2 eps / C)."""
    eps, cost = 0.5, 4.0
    graph = otgraph.quadratic_ot_graph([[0.0], [1.0]], eps, normalize=False, outlier_cost=cost)
    u = (1 + eps) / (2 + 2 * eps / cost)
    np.testing.assert_allclose(graph.potentials, u)
    np.testing.assert_allclose(graph.mass_kept, 1 - 2 * u / cost)
    apart = otgraph.quadratic_ot_graph([[0.0], [1.0]], eps, normalize=False, outlier_cost=1.0)
    assert apart.dropped.all()
    np.testing.assert_allclose(apart.potentials, 0.5)


def test_a_high_price_is_the_hard_plan(rng):
    X = rng.normal(size=(N, 3))
    hard = otgraph.quadratic_ot_graph(X, 0.5)
    errors = [abs(soft_graph(X, 0.5, c).weights - hard.weights).max() for c in (1e2, 1e4, 1e6)]
    assert errors[1] < 0.02 * errors[0]
    assert errors[2] < 1e-5


def test_none_is_bit_for_bit_the_hard_plan(rng):
    X = rng.normal(size=(N, 3))
    one, two = (
        otgraph.quadratic_ot_graph(X, 0.5),
        otgraph.quadratic_ot_graph(X, 0.5, outlier_cost=None),
    )
    np.testing.assert_array_equal(one.weights.data, two.weights.data)
    np.testing.assert_array_equal(one.mass_kept, one.mass)
    assert not one.dropped.any()
    assert one.certificate.outlier_cost == np.inf
    assert one.params["outlier_cost"] is None


@settings(max_examples=20, deadline=None)
@given(factor=st.floats(0.1, 10.0), seed=st.integers(0, 10))
def test_scaling(factor, seed):
    """Heavier points and a smaller eps, or other units of the cost, give the same graph."""
    X = np.random.default_rng(seed).normal(size=(30, 2))
    plain = soft_graph(X, 0.5, 0.2)
    heavier = soft_graph(X, 0.5 / factor, 0.2, mass=np.full(30, factor))
    np.testing.assert_allclose(heavier.potentials, plain.potentials, rtol=1e-6)
    np.testing.assert_allclose(heavier.outlier_scores, plain.outlier_scores, rtol=1e-5, atol=1e-9)
    C = reference.cost_matrix(X)
    unit = soft_graph(factor * C, 0.5 * factor, 0.2 * factor, metric="precomputed", normalize=False)
    np.testing.assert_allclose(unit.mass_kept, plain.mass_kept, atol=1e-6)


def test_the_price_goes_by_the_share(rng):
    """A heavy point holds back the same share of its mass as a light one of that potential."""
    X = rng.normal(size=(30, 2))
    mass = np.ones(30)
    mass[0] = 2.0
    one = soft_graph(X, 1e-3, 0.5, mass=mass, normalize=False, self_loops=True, tol=1e-9)
    share = one.mass_kept / one.mass
    held = np.maximum(one.potentials, 0.0) / 0.25
    np.testing.assert_allclose(share, 1.0 - held, atol=1e-7)


def test_more_mass_is_held_back_at_a_lower_price(rng):
    X, _ = groups(rng)
    kept = [soft_graph(X, 0.3, cost).mass_kept.sum() for cost in (0.05, 0.2, 0.8, 3.0)]
    assert np.all(np.diff(kept) > 0)


def test_heavy_points_and_poor_candidates_are_allowed(rng):
    """What cannot be shared is held back."""
    X = rng.normal(size=(20, 2))
    mass = np.ones(20)
    mass[3] = 100.0
    graph = soft_graph(X, 1.0, 5.0, mass=mass)
    assert graph.certificate.status == "exact"
    assert graph.mass_kept[3] < 19.0
    assert soft_graph(X, 1.0, mass=mass).certificate.status == "exact"
    with pytest.raises(InfeasibleError, match="outlier_cost"):
        soft_graph(X, 1.0, None, mass=mass)
    star = np.zeros((5, 5))
    star[0, 1:4] = 1.0  # the last point has no candidate
    for cost in (5.0, "auto"):
        graph = soft_graph(
            sp.csr_matrix(star + star.T), 0.1, cost, metric="precomputed", normalize=False
        )
        assert graph.certificate.status == "exact_on_candidates"
        assert graph.dropped[4]


def test_first_candidates_do_not_matter(rng):
    X, _ = groups(rng)
    few, many = (soft_graph(X, n_candidates=k) for k in (1, len(X) - 1))
    assert few.params["outlier_cost"] == many.params["outlier_cost"]
    np.testing.assert_allclose(few.weights.toarray(), many.weights.toarray(), atol=1e-6)


def test_larger_clouds_are_screened(rng):
    """Enough points that not all pairs are candidates; verified by brute force."""
    X = np.vstack([rng.normal(size=(3000, 12)), rng.uniform(-8, 8, size=(60, 12))])
    graph = soft_graph(X, cost="auto")
    assert graph.certificate.status == "exact"
    assert graph.certificate.pairs_checked == len(X) * (len(X) - 1) // 2
    assert graph.certificate.verify(X)
    assert graph.dropped[3000:].all()


def test_a_wrong_price_is_noticed(rng):
    X, _ = groups(rng)
    graph = soft_graph(X)
    assert graph.certificate.verify(X)
    other = replace(graph.certificate, outlier_cost=1.01 * graph.certificate.outlier_cost)
    assert not otgraph.TransportGraph(
        weights=graph.weights, params=graph.params, points=graph.points, certificate=other,
        potentials=graph.potentials, mass=graph.mass,
    ).certificate.verify(X)  # fmt: skip


# Outliers ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"eps": 0.1}, {"eps": 0.5}, {"mean_degree": 10}, {}])
def test_outliers_are_let_go_and_all_others_kept(rng, options):
    X, outlier = groups(rng)
    graph = otgraph.quadratic_ot_graph(X, outlier_cost="auto", connect=False, **options)
    assert graph.dropped[outlier].mean() >= 0.95
    assert not graph.dropped[~outlier].any()
    np.testing.assert_array_equal(graph.mass_kept == 0.0, graph.dropped)
    np.testing.assert_allclose(
        np.asarray(graph.weights.sum(axis=1)).ravel(), graph.mass_kept, rtol=1e-5
    )
    scores = graph.outlier_scores
    assert np.all((scores >= 0.0) & (scores <= 1.0 + 1e-9))
    assert np.all(scores[graph.dropped] == 1.0)
    assert scores[outlier].min() > np.quantile(scores[~outlier], 0.9)
    if "mean_degree" in options:
        assert graph.mean_degree == pytest.approx(10, rel=0.021)


def test_path_and_choice(rng):
    X, outlier = groups(rng)
    path = otgraph.eps_path(X, [0.1, 0.3, 1.0], outlier_cost="auto")
    for graph in path:
        alone = soft_graph(X, graph.eps)
        assert graph.params["outlier_cost"] == alone.params["outlier_cost"]
        np.testing.assert_allclose(graph.weights.toarray(), alone.weights.toarray(), atol=1e-5)
    chosen = soft_graph(X, "auto", 0.3)
    assert chosen.params["chosen_by"] == "features"
    assert chosen.dropped[outlier].mean() > 0.8


def test_rule(rng):
    """Upper quartile times the quotient of the quartiles, twice, in any units."""
    u = np.exp(rng.normal(size=2001))
    q1, q3 = np.quantile(u, (0.25, 0.75))
    q1, q3 = np.quantile(u[u < q3**2 / q1], (0.25, 0.75))
    assert chosen_outlier_cost(u) == pytest.approx(2 * q3**2 / q1, rel=0.005)
    outliers = np.r_[u, np.full(300, 1e6)]
    assert chosen_outlier_cost(outliers) == pytest.approx(chosen_outlier_cost(u), rel=0.3)
    assert chosen_outlier_cost(8.0 * u) == pytest.approx(8 * chosen_outlier_cost(u), rel=0.01)
    assert chosen_outlier_cost(u * (1 + 1e-9 * rng.normal(size=2001))) == chosen_outlier_cost(u)
    copies = np.where(np.arange(2001) < 800, 1e-12, u)
    copied = copies[copies < LARGEST_QUOTIENT * np.quantile(copies, 0.75)]
    expected = 2 * LARGEST_QUOTIENT * np.quantile(copied, 0.75)
    assert chosen_outlier_cost(copies) == pytest.approx(expected, rel=0.005)
    assert chosen_outlier_cost(-u) == np.inf


def test_files(rng, tmp_path):
    X, _ = groups(rng)
    graph = soft_graph(X)
    graph.save(tmp_path / "soft.otg")
    loaded = otgraph.load_graph(tmp_path / "soft.otg")
    np.testing.assert_array_equal(loaded.mass_kept, graph.mass_kept)
    np.testing.assert_array_equal(loaded.dropped, graph.dropped)
    assert loaded.certificate.verify(X)
    assert loaded.certificate == graph.certificate
    broken = replace(graph.certificate, outlier_cost=-1.0)
    with pytest.raises((FormatError, ValueError), match="outlier_cost"):
        otgraph.TransportGraph(
            weights=graph.weights, params=graph.params, points=X, certificate=broken,
            potentials=graph.potentials, mass=graph.mass,
        ).save(tmp_path / "broken.otg")  # fmt: skip


def test_new_points(rng):
    """The equation of a new row is that of the graph; far points get none."""
    X, outlier = groups(rng)
    graph = soft_graph(X, 0.3, mass=rng.uniform(0.5, 2.0, size=len(X)))
    new = rng.normal(size=(5, 10)) + X[:5]
    masses = rng.uniform(0.5, 2.0, size=5)
    rows = graph.extend(new, mass=masses).toarray()
    C = ((new[:, None] - X) ** 2).sum(axis=2) / graph.params["scale"]
    u, half = graph.potentials, 0.5 * graph.params["outlier_cost"]
    for row, c, m in zip(rows, C, masses, strict=True):
        used = row > 0
        potential = (graph.eps * row + c - u)[used]
        np.testing.assert_allclose(potential, potential[0], rtol=1e-9)
        assert np.all(potential[0] + u - c <= graph.eps * row + 1e-12)
        assert row.sum() == pytest.approx(m * (1 - potential[0] / half), abs=1e-9)
    assert graph.extend(new + 100.0).nnz == 0
    near = graph.extend(X[~outlier][:3], mass=1.0)
    assert np.all(near.sum(axis=1) > 0)


# Methods -----------------------------------------------------------------------------


def test_methods_say_what_outliers_get(rng):
    X, _ = groups(rng, size=60)
    graph = soft_graph(X)
    found = otgraph.cluster(graph)  # without a warning
    assert found.n_clusters == 3
    np.testing.assert_array_equal(found.labels == -1, graph.dropped)
    assert not found.coordinates[graph.dropped].any()
    with pytest.warns(DisconnectedWarning, match=r"3 connected components; .* 60 of 180"):
        embedding = otgraph.eigenmaps(graph)
    assert not embedding.coordinates[graph.dropped].any()
    smooth = otgraph.denoise(graph, X, t=3)
    np.testing.assert_allclose(smooth[graph.dropped], X[graph.dropped])
    labels = np.full(len(X), -1)
    labels[[0, 60, 120]] = 0, 1, 2
    with pytest.warns(DisconnectedWarning, match="No label reaches"):
        spread = otgraph.spread_labels(graph, labels)
    np.testing.assert_array_equal(spread.unreachable, graph.dropped)
    assert np.all(spread.labels[graph.dropped] == -1)


def test_clusters_need_points(rng):
    graph = otgraph.quadratic_ot_graph(rng.normal(size=(20, 2)), 1.0, outlier_cost=1e-6)
    assert graph.dropped.all()
    assert graph.certificate.status == "exact"
    with pytest.raises(ValueError, match="all points were dropped"):
        otgraph.cluster(graph)
    few = otgraph.quadratic_ot_graph([[0.0], [0.1], [9.0]], 1.0, outlier_cost=0.5)
    assert few.dropped.tolist() == [False, False, True]
    with pytest.raises(ValueError, match="at most the number of points, 2"):
        otgraph.cluster(few, 3)


def test_only_kept_points_are_warned_of(rng):
    X = np.vstack([rng.normal(size=(60, 2)), [[50.0, 50.0], [-60.0, 40.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = otgraph.quadratic_ot_graph(X, 1.0, outlier_cost=0.1)
        otgraph.eigenmaps(graph)
    assert graph.dropped.tolist() == 60 * [False] + 2 * [True]
    two = np.vstack([X, X + 1000.0])
    with pytest.warns(DisconnectedWarning, match="2 connected components .of 60, 60 points"):
        otgraph.quadratic_ot_graph(two, 1e-3, outlier_cost=1e-3)


@pytest.mark.parametrize("other", [{"min_degree": 3}, {"connect": True}])
def test_drop_or_connect(rng, other):
    with pytest.raises(ValueError, match="pass one of the two"):
        otgraph.quadratic_ot_graph(rng.normal(size=(20, 2)), outlier_cost=1.0, **other)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan, "much", [1.0]])
def test_bad_prices(rng, value):
    with pytest.raises((TypeError, ValueError), match="outlier_cost"):
        otgraph.quadratic_ot_graph(rng.normal(size=(20, 2)), outlier_cost=value)
