"""Blocks of costs: right at every scale, offset and distance, for every kind of input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from otgraph._parallel import Workers
from otgraph.costs import DirectCost, check_input, direct_cost
from otgraph.costs.clouds import check_clouds, cross_cost


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((60, 7))


def cost_of(X, metric="euclidean", power=2.0, threads=1, **options):
    checked = check_input(X, metric, candidates=False)
    return direct_cost(checked, metric=metric, power=power, workers=Workers(threads), **options)


def normalized_matrix(X, metric="euclidean", power=2.0, threads=1):
    cost = cost_of(X, metric, power, threads, normalize=True)
    return cost.matrix(), cost.scale


def exact_neighbors(C: np.ndarray, k: int) -> np.ndarray:
    C = C.copy()
    np.fill_diagonal(C, np.inf)
    return np.argsort(C, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "cityblock"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_matrix_against_scipy(X, metric, p, kind):
    expected = cdist(X, X, metric) ** p
    np.fill_diagonal(expected, 0.0)  # scipy's cosine leaves rounding there
    matrix, scale = normalized_matrix(kind(X), metric, p)
    assert scale == pytest.approx(expected.mean(), rel=1e-12)
    np.testing.assert_allclose(matrix, expected / expected.mean(), rtol=1e-9)
    np.testing.assert_array_equal(matrix, matrix.T)


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis"])
def test_metric_that_looks_at_all_points(X, metric):
    keywords = {"V": X.var(axis=0, ddof=1), "VI": np.linalg.inv(np.cov(X.T))}
    name = "V" if metric == "seuclidean" else "VI"
    expected = cdist(X, X, metric, **{name: keywords[name]})
    matrix, scale = normalized_matrix(X, metric, 1.0)
    np.testing.assert_allclose(matrix * scale, expected, rtol=1e-9)
    with pytest.raises(TypeError, match="sparse"):
        normalized_matrix(sp.csr_matrix(X), metric)


def test_function_as_metric(X):
    matrix, _ = normalized_matrix(X, lambda x, y: np.abs(x - y).max(), 1.0)
    expected = cdist(X, X, "chebyshev")
    np.testing.assert_allclose(matrix, expected / expected.mean(), rtol=1e-12)


def test_large_offset_loses_no_digits(X):
    matrix, _ = normalized_matrix(X + 1e6)
    moved = (X + 1e6) - 1e6  # what rounding of the input itself leaves
    expected = cdist(moved, moved, "sqeuclidean")
    np.testing.assert_allclose(matrix, expected / expected.mean(), rtol=1e-11)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e154, 1e300])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_scale_of_the_points_does_not_matter(X, scale, kind):
    expected, _ = normalized_matrix(kind(X))
    matrix, _ = normalized_matrix(kind(X * scale))
    np.testing.assert_allclose(matrix, expected, rtol=1e-11)


def test_points_whose_sum_would_overflow(X):
    X = np.abs(X)
    matrix, _ = normalized_matrix(X * 4e307)
    np.testing.assert_allclose(matrix, normalized_matrix(X)[0], rtol=1e-11)


@pytest.mark.parametrize("exponent", [-900, 3, 900])
def test_powers_of_two_change_nothing(X, exponent):
    np.testing.assert_array_equal(
        normalized_matrix(np.ldexp(X, exponent))[0], normalized_matrix(X)[0]
    )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_near_pairs_keep_their_digits(rng, kind):
    # Two clusters 10^6 apart: |x|² + |y|² − 2x·y alone would leave four digits inside them.
    X = rng.standard_normal((40, 5))
    X[20:] += 1e6
    X[3] = X[7]
    matrix, scale = normalized_matrix(kind(X))
    np.testing.assert_allclose(matrix * scale, cdist(X, X, "sqeuclidean"), rtol=1e-9)
    assert matrix[3, 7] == 0.0
    assert not np.diag(matrix).any()


def test_threads_and_blocks_change_nothing(rng):
    X = rng.standard_normal((2500, 11))  # two blocks
    np.testing.assert_array_equal(normalized_matrix(X)[0], normalized_matrix(X, threads=2)[0])


def test_costs_that_overflow_are_refused(X):
    with pytest.raises(ValueError, match=r"beyond the range of float64.*`normalize=True`"):
        cost_of(X * 1e200, normalize=False)


def test_precomputed_is_the_cost(X, rng):
    C = cdist(X, X)
    matrix, scale = normalized_matrix(C, "precomputed", 2.0)
    np.testing.assert_allclose(matrix, C / C.mean(), rtol=1e-14)
    assert scale == pytest.approx(C.mean())


def test_rounding_in_a_matrix_is_made_symmetric(X, rng):
    C = cdist(X, X) * (1 + 1e-12 * rng.standard_normal((60, 60)))
    matrix, _ = normalized_matrix(C, "precomputed")
    np.testing.assert_array_equal(matrix, matrix.T)


def test_new_points_in_the_same_units(X, rng):
    costs = cost_of(X, normalize=True)
    new = rng.standard_normal((9, 7))
    expected = cdist(new, X, "sqeuclidean") / cdist(X, X, "sqeuclidean").mean()
    np.testing.assert_allclose(costs.rows(costs.queries(new)), expected, rtol=1e-12)


class TestNeighbors:
    @pytest.mark.parametrize("metric", ["euclidean", "cosine", "cityblock", "mahalanobis"])
    def test_against_sorting(self, X, metric):
        indices, values = cost_of(X, metric, 1.0).nearest(6)
        C = cdist(X, X, metric)
        np.testing.assert_array_equal(indices, exact_neighbors(C, 6))
        assert np.all(np.diff(values, axis=1) >= 0)

    def test_of_a_matrix(self, X):
        C = cdist(X, X)
        indices, values = cost_of(C, "precomputed", 1.0).nearest(6)
        np.testing.assert_array_equal(indices, exact_neighbors(C, 6))
        np.testing.assert_array_equal(values, np.take_along_axis(C, indices, 1))

    @pytest.mark.parametrize("d", [3, 40])  # by tree, by product
    @pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
    @pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
    def test_duplicates_are_neighbors_and_the_point_is_not(self, rng, d, kind, metric):
        X = rng.standard_normal((80, d))
        X[10:50] = X[10]  # 40 copies, more than k
        indices, values = cost_of(kind(X), metric).nearest(15)
        assert not np.any(indices == np.arange(80)[:, None])
        assert all(len(set(row)) == 15 for row in indices)
        assert np.all(values[10:50] == 0.0)
        assert np.all((indices[10:50] >= 10) & (indices[10:50] < 50))

    def test_inside_clusters_that_are_far_apart(self, rng):
        # Products of centered coordinates near 5e8 say nothing about distances near 1.
        X = rng.standard_normal((60, 30))
        X[30:] += 1e8
        indices, _ = cost_of(X).nearest(5)
        C = cdist(X, X, "sqeuclidean")
        np.testing.assert_array_equal(indices, exact_neighbors(C, 5))

    def test_new_points(self, X, rng):
        new = rng.standard_normal((5, 7))
        costs = cost_of(X)
        indices, _ = costs.nearest(4, costs.queries(new))
        expected = np.argsort(cdist(new, X), axis=1)[:, :4]
        np.testing.assert_array_equal(indices, expected)


class TestListed:
    @pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
    @pytest.mark.parametrize("metric", ["euclidean", "cosine", "cityblock"])
    def test_equals_the_matrix(self, X, rng, kind, metric):
        cost = cost_of(kind(X), metric, normalize=True)
        i, j = np.sort(rng.integers(60, size=200)), rng.integers(60, size=200)
        np.testing.assert_allclose(cost.listed(i, j), cost.matrix()[i, j], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "cityblock", "precomputed"])
def test_known_scale_saves_the_mean(X, metric):
    X = cdist(X, X) if metric == "precomputed" else X
    cost = cost_of(X, metric, normalize=True)
    again = cost_of(X, metric, normalize=True, scale=cost.scale)
    assert again.scale == cost.scale
    np.testing.assert_allclose(again.matrix(), cost.matrix(), rtol=1e-14)


def test_scale_that_underflowed_is_computed_again(X):
    tiny = cost_of(X * 1e-200, normalize=True)
    again = cost_of(X * 1e-200, normalize=True, scale=tiny.scale)
    np.testing.assert_array_equal(again.matrix(), tiny.matrix())


def test_diagonal_of_a_matrix_counts(X):
    """Mass that stays at a point costs what the matrix says."""
    C = cdist(X, X) + np.eye(60)
    matrix, scale = normalized_matrix(C, "precomputed")
    np.testing.assert_allclose(matrix, C / C.mean(), rtol=1e-14)
    assert scale == pytest.approx(C.mean())


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis"])
def test_neighbors_of_a_fitted_metric_in_threads(rng, metric):
    X = rng.standard_normal((400, 6))
    one, two = (cost_of(X, metric, 1.0, threads).nearest(8) for threads in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "precomputed"])
def test_costs_of_neighbors_are_those_of_the_rows(X, metric):
    C = cdist(X, X, "euclidean" if metric == "precomputed" else metric)
    cost = cost_of(C if metric == "precomputed" else X, metric, 1.0)
    indices = exact_neighbors(C, 3)[:10]
    distances = np.take_along_axis(C[:10], indices, axis=1)
    raw = cost.raw_of_neighbors(cost.own[:10], indices, distances)
    np.testing.assert_allclose(raw * cost.factor, distances, rtol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "precomputed"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_costs_between_clouds_have_no_pairs_within_one(X, metric, kind):
    """New points, neighbors and matrices belong to one cloud: nobody can ask for them."""
    given = (abs(kind(X[:20])), None if metric == "precomputed" else kind(X[20:]))
    cost = cross_cost(check_clouds(given, metric), metric=metric, workers=Workers(1))
    assert not isinstance(cost, DirectCost)
    assert not getattr(cost, "__abstractmethods__", None)
