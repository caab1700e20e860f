"""What the solver may ask is answered alike by every kind of cost."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist, squareform
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import _VALID_METRICS, PAIRWISE_BOOLEAN_FUNCTIONS

import problems
import reference
from otgraph.costs.sizes import SearchSizes

N = 90
# Several blocks of rows, the last one shorter.
cost_of = partial(problems.cost_of, sizes=SearchSizes(block_entries=40 * N))


def taxi(a, b):
    """A metric of the caller."""
    return float(np.abs(a - b).sum())


def _euclidean(X, p, normalize):
    return cost_of(X, power=p, normalize=normalize), reference.cost_matrix(
        X, power=p, normalize=normalize
    )


def _metric(name, metric=None):
    def build(X, p, normalize):
        C = reference.cost_matrix(X, metric=name, power=p, normalize=normalize)
        return cost_of(X, metric=metric or name, power=p, normalize=normalize), C

    return build


def _precomputed(X, p, normalize):
    C = reference.cost_matrix(X, power=p, normalize=False)
    cost = cost_of(C, metric="precomputed", normalize=normalize)
    return cost, C / C.mean() if normalize else C


def _sparse_points(metric):
    def build(X, p, normalize):
        X = np.where(np.abs(X) > 0.8, X, 0.0)
        X[:, 0] = 1.0  # no row of zeros, which has no direction
        C = reference.cost_matrix(X, metric=metric, power=p, normalize=normalize)
        return cost_of(sp.csr_array(X), metric=metric, power=p, normalize=normalize), C

    return build


def _sparse_candidates(X, p, normalize):
    """All pairs as candidates: only what the mean is taken over differs."""
    C = reference.cost_matrix(X, power=p, normalize=False)
    cost = cost_of(sp.csr_matrix(C), metric="precomputed", normalize=normalize)
    return cost, C / (C.sum() / (N * (N - 1))) if normalize else C


KINDS = {
    "euclidean": _euclidean,
    "cosine": _metric("cosine"),
    "sqeuclidean": _metric("sqeuclidean"),
    "manhattan": _metric("cityblock", "manhattan"),
    "chebyshev": _metric("chebyshev"),
    "callable": _metric("cityblock", taxi),
    "precomputed": _precomputed,
    "sparse_points": _sparse_points("euclidean"),
    "sparse_cosine": _sparse_points("cosine"),
    "sparse_candidates": _sparse_candidates,
}


METRICS = sorted(set(_VALID_METRICS) - {"precomputed", "wminkowski"})  # the latter left scipy


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0])
def test_screen_equals_brute_force(rng, kind, p, normalize):
    cost, C = kind(problems.random(rng, N), p, normalize)
    typical = np.median(C[C > 0])
    for level in (-1.0, 0.05, 0.3, 1.0, 5.0):
        upper = 0.5 * typical * level * rng.uniform(0.2, 1.0, size=N)
        upper[rng.uniform(size=N) < 0.1] *= -1.0
        screen = cost.screen(upper[cost.order])
        found = problems.as_mask(screen.pairs, cost.order)
        np.testing.assert_array_equal(found, reference.pairs_below(C, upper))
        rows = np.repeat(np.arange(N), np.diff(screen.pairs.indptr))
        expected = C[cost.order[rows], cost.order[screen.pairs.indices]]
        np.testing.assert_allclose(screen.pairs.costs, expected, rtol=1e-9)


def test_screen_counts_its_pairs(rng, kind):
    cost, _ = kind(problems.random(rng, N), 2.0, True)
    screen = cost.screen(np.full(N, 0.1))
    assert screen.pairs_checked == cost.n_pairs == N * (N - 1) // 2
    assert screen.complete == (kind is not _sparse_candidates)


def test_screen_of_some_points_finds_all_their_pairs(rng, kind):
    cost, C = kind(problems.random(rng, N), 2.0, True)
    upper = rng.uniform(0.0, 0.3, size=N)
    below = reference.pairs_below(C, upper)
    for rows in ([4], [0, 3, 4, 50, N - 1], np.arange(N)):
        some = np.isin(np.arange(N), rows)
        found = problems.as_mask(cost.screen(upper, rows=np.array(rows)).pairs, cost.order)
        assert not (found & ~below).any()
        assert np.array_equal(found[some], below[some])


def test_neighbors_contain_the_nearest(rng, kind):
    cost, C = kind(problems.random(rng, N), 2.0, True)
    np.fill_diagonal(C, np.inf)
    found = problems.as_mask(cost.neighbors(6), cost.order)
    nearest = np.argsort(C, axis=1)[:, :6]
    assert np.take_along_axis(found, nearest, 1).all()


def test_neighbors_of_few_points(kind):
    X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [3.0, 1.0, 2.0]])
    if kind is _sparse_candidates:
        pytest.skip("candidates of another number of points")
    cost, _ = kind(X, 2.0, True)
    np.testing.assert_array_equal(problems.as_mask(cost.neighbors(30)), ~np.eye(3, dtype=bool))


@pytest.mark.parametrize("p", [0.5, 2.0, 3.0])
def test_sample(rng, kind, p):
    cost, C = kind(problems.random(rng, N), p, True)
    rows = np.array([0, 5, N - 1])
    sampled = cost.sample(rows)
    sampled[np.arange(3), rows] = 0.0  # what a point costs itself is never asked
    expected = C[np.ix_(cost.order[rows], cost.order)]
    # From products: squared distances are good to the rounding of the norms.
    np.testing.assert_allclose(sampled, expected, rtol=1e-8, atol=1e-7 if p < 1 else 1e-12)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0])
def test_mean_cost_is_one_after_normalizing(rng, kind, p):
    cost, _ = kind(problems.random(rng, N), p, True)
    costs = cost.screen(np.full(N, 1e9)).pairs.costs
    pairs = N * (N - 1) if kind is _sparse_candidates else N**2
    assert costs.sum() / pairs == pytest.approx(1.0, rel=1e-12)


def test_scale_is_what_was_divided_by(rng, kind):
    X = problems.random(rng, N)
    (normalized, C), (plain, raw) = kind(X, 2.0, True), kind(X, 2.0, False)
    assert plain.scale == 1.0
    np.testing.assert_allclose(C * normalized.scale, raw, rtol=1e-12, atol=1e-12)


def test_predicted_pairs(rng, kind):
    """Every row is in the sample here, so that the prediction is the truth."""
    cost, C = kind(problems.random(rng, N), 2.0, True)
    upper = np.full(N, 0.2)
    assert cost.predict_pairs(upper, n_rows=N) == reference.pairs_below(C, upper).sum() / 2


def test_threads_do_not_change_a_bit(rng):
    X = problems.random(rng, N)
    for metric in ("euclidean", "manhattan"):
        one, two = (cost_of(X, metric=metric, n_jobs=n) for n in (1, 2))
        assert one.scale == two.scale
        a, b = one.screen(np.full(N, 0.2)).pairs, two.screen(np.full(N, 0.2)).pairs
        np.testing.assert_array_equal(a.indices, b.indices)
        np.testing.assert_array_equal(a.costs, b.costs)


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_of_sklearn(rng, metric):
    X = rng.uniform(0.1, 1.0, size=(N, 2))
    if metric in PAIRWISE_BOOLEAN_FUNCTIONS:
        X = rng.uniform(size=(N, 12)) < 0.5
        X[:, 0] = True
    C = pairwise_distances(X, metric=metric)
    np.fill_diagonal(C, 0.0)
    cost = cost_of(X, metric=metric, power=1.0)
    assert cost.scale == pytest.approx(C.mean(), rel=1e-12)
    upper = np.quantile(C / C.mean(), 0.1) * rng.uniform(0.3, 0.8, size=N)
    for pairs in (cost.screen(upper).pairs, cost.neighbors(7)):
        found = sp.csr_matrix((pairs.costs, pairs.indices, pairs.indptr), shape=(N, N)).toarray()
        assert np.array_equal(found, found.T)
        mask = problems.as_mask(pairs)
        np.testing.assert_allclose(found[mask], (C / C.mean())[mask], rtol=1e-9, atol=1e-12)
    below = reference.pairs_below(C / C.mean(), upper)
    np.testing.assert_array_equal(problems.as_mask(cost.screen(upper).pairs), below)


def test_boolean_metric(rng):
    X = rng.uniform(size=(N, 12)) < 0.4
    X[:, 0] = True
    cost = cost_of(X.astype(float), metric="jaccard", power=1.0)
    C = cdist(X, X, "jaccard")
    upper = rng.uniform(0.2, 0.6, size=N)
    found = problems.as_mask(cost.screen(upper).pairs)
    np.testing.assert_array_equal(found, reference.pairs_below(C / C.mean(), upper))


def test_matrix_of_rounding_asymmetry_counts_above_the_diagonal(rng):
    C = squareform(rng.uniform(size=N * (N - 1) // 2))
    below = np.tril(C) * (1 + 1e-12) + np.triu(C)
    cost = cost_of(below, metric="precomputed", normalize=False)
    pairs = cost.screen(np.full(N, 10.0)).pairs
    rows = np.repeat(np.arange(N), np.diff(pairs.indptr))
    np.testing.assert_array_equal(pairs.costs, C[rows, pairs.indices])
    neighbors = cost.neighbors(5)
    rows = np.repeat(np.arange(N), np.diff(neighbors.indptr))
    np.testing.assert_array_equal(neighbors.costs, C[rows, neighbors.indices])


def test_symmetric_costs_to_the_bit(rng, kind):
    """Both rows of a pair hold the same cost, also where two blocks computed it."""
    cost, _ = kind(problems.random(rng, N), 2.0, True)
    for pairs in (cost.screen(np.full(N, 0.4)).pairs, cost.neighbors(7)):
        dense = sp.csr_matrix((pairs.costs, pairs.indices, pairs.indptr), shape=(N, N)).toarray()
        assert np.array_equal(dense, dense.T)
