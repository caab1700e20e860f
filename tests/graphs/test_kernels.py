"""Gaussian graphs on all pairs and on nearest neighbors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

import problems
from otgraph import _memory
from otgraph.exceptions import DisconnectedWarning, MemoryLimitError
from otgraph.graphs import _canonical, entropic_ot_graph, gaussian_graph, knn_gaussian_graph


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((80, 6))


def squared(X):
    C = cdist(X, X, "sqeuclidean")
    return C / C.mean()


def assert_canonical(weights, n):
    assert isinstance(weights, sp.csr_matrix)
    assert weights.shape == (n, n)
    assert weights.dtype == np.float64
    assert weights.indices.dtype == weights.indptr.dtype == np.int32
    assert weights.has_canonical_format
    assert np.all(weights.data > 0.0)
    assert (weights != weights.T).nnz == 0
    weights.check_format(full_check=True)


class TestGaussian:
    def test_against_scikit_learn(self, X):
        weights = gaussian_graph(X, 0.7, normalize=False, self_loops=True).weights
        assert_canonical(weights, 80)
        np.testing.assert_allclose(weights.toarray(), rbf_kernel(X, gamma=1 / 0.7), rtol=1e-11)

    def test_normalized_and_hollow_by_default(self, X):
        graph = gaussian_graph(X, 0.3)
        expected = np.exp(-squared(X) / 0.3)
        np.fill_diagonal(expected, 0.0)
        np.testing.assert_allclose(graph.weights.toarray(), expected, rtol=1e-11)
        assert_canonical(graph.weights, 80)
        assert graph.params["method"] == "gaussian"
        assert not hasattr(graph, "certificate")

    @pytest.mark.parametrize(("metric", "p"), [("cityblock", 1.0), ("cosine", 2.0), ("l2", 3.0)])
    def test_other_costs(self, X, metric, p):
        C = cdist(X, X, "euclidean" if metric == "l2" else metric) ** p
        expected = np.exp(-C / C.mean() / 0.5)
        weights = gaussian_graph(X, 0.5, metric=metric, power=p, self_loops=True).weights
        np.testing.assert_allclose(weights.toarray(), expected, rtol=1e-9)

    def test_precomputed(self, X):
        C = squared(X)
        kept = C.copy()
        direct = gaussian_graph(X, 0.5)
        given = gaussian_graph(C, 0.5, metric="precomputed")
        np.testing.assert_allclose(given.weights.data, direct.weights.data, rtol=1e-12)
        assert given.points is None
        np.testing.assert_array_equal(C, kept)

    def test_sparse_points(self, X):
        X = np.where(np.abs(X) < 0.8, 0.0, X)
        dense, sparse = gaussian_graph(X, 0.5), gaussian_graph(sp.csr_matrix(X), 0.5)
        np.testing.assert_allclose(sparse.weights.toarray(), dense.weights.toarray(), rtol=1e-12)
        assert sp.issparse(sparse.points)

    def test_weights_that_underflow_are_not_stored(self, X):
        X[0] += 1e3
        with pytest.warns(DisconnectedWarning, match=r"1 point\(s\) have no neighbor left.*`eps`"):
            graph = gaussian_graph(X, 1.0, normalize=False)
        assert graph.degrees[0] == 0
        assert graph.n_connected == 2

    def test_memory_is_checked_first(self, monkeypatch, rng):
        for module in (_canonical, _memory):
            monkeypatch.setattr(module, "available_bytes", lambda: 10**6)
        X = rng.standard_normal((300, 2))
        message = "300 points would need 1 MB.*at most 273 points.*quadratic_ot_graph"
        for build in (gaussian_graph, entropic_ot_graph):
            with pytest.raises(MemoryLimitError, match=message):
                build(X, 1.0)
        gaussian_graph(X[:270], 1.0)


class TestNearestNeighbors:
    def test_union_against_scikit_learn(self, X):
        pattern = kneighbors_graph(X, 7, include_self=False)
        expected = pattern.maximum(pattern.T).toarray()
        graph = knn_gaussian_graph(X, 7)
        assert_canonical(graph.weights, 80)
        np.testing.assert_array_equal(graph.weights.toarray(), expected)
        weighted = knn_gaussian_graph(X, 7, 0.4).weights.toarray()
        np.testing.assert_allclose(weighted, expected * np.exp(-squared(X) / 0.4), rtol=1e-11)

    def test_average_with_self_as_published(self, X):
        kernel = kneighbors_graph(X, 7, include_self=True).toarray() * np.exp(-squared(X) / 0.4)
        graph = knn_gaussian_graph(X, 7, 0.4, include_self=True, symmetrize="average")
        np.testing.assert_allclose(graph.weights.toarray(), (kernel + kernel.T) / 2, rtol=1e-11)
        assert_canonical(graph.weights, 80)

    @pytest.mark.parametrize("options", [{}, {"eps": 0.4}, {"metric": "cityblock"}])
    def test_one_neighbor_which_is_the_point(self, X, options):
        with pytest.warns(
            DisconnectedWarning, match=r"its own and only neighbor.*Raise `n_neighbors`"
        ):
            graph = knn_gaussian_graph(X, 1, include_self=True, **options)
        np.testing.assert_array_equal(graph.weights.toarray(), np.eye(80))
        assert graph.n_connected == 80

    def test_all_pairs_are_the_gaussian_graph(self, X):
        full, nearest = gaussian_graph(X, 0.5), knn_gaussian_graph(X, 79, 0.5)
        np.testing.assert_allclose(nearest.weights.toarray(), full.weights.toarray(), rtol=1e-11)

    def test_k_is_clipped_with_a_warning(self, X):
        with pytest.warns(
            UserWarning, match="`n_neighbors`=500 is more than the 79 possible neighbor"
        ):
            graph = knn_gaussian_graph(X, 500)
        assert graph.params["n_neighbors"] == 79
        assert np.all(graph.degrees == 79)

    def test_duplicates(self, X):
        X[20] = X[10]
        graph = knn_gaussian_graph(X, 5, 0.1)
        assert graph.weights[10, 20] == 1.0
        assert np.all(graph.degrees >= 5)
        assert not graph.weights.diagonal().any()

    def test_many_duplicates(self, X):
        X[:30] = X[0]
        with pytest.warns(DisconnectedWarning, match=r"30 point\(s\) have only duplicates"):
            graph = knn_gaussian_graph(X, 5, 0.1)
        assert np.all(graph.degrees >= 5)
        assert np.all(np.isfinite(graph.weights.data))

    def test_precomputed_and_function(self, X):
        direct = knn_gaussian_graph(X, 5, 0.4).weights
        given = knn_gaussian_graph(squared(X), 5, 0.4, metric="precomputed").weights
        np.testing.assert_allclose(given.toarray(), direct.toarray(), rtol=1e-11)
        function = knn_gaussian_graph(X, 5, 0.4, metric=lambda x, y: np.linalg.norm(x - y)).weights
        np.testing.assert_allclose(function.toarray(), direct.toarray(), rtol=1e-11)

    def test_rotation_and_translation(self, X, rng):
        rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
        moved = knn_gaussian_graph(X @ rotation + 1e5, 5, 0.4).weights
        expected = knn_gaussian_graph(X, 5, 0.4).weights
        np.testing.assert_allclose(moved.toarray(), expected.toarray(), atol=1e-8)

    def test_permutation(self, X, rng):
        order = rng.permutation(80)
        weights = knn_gaussian_graph(X, 5, 0.4).weights
        permuted = knn_gaussian_graph(X[order], 5, 0.4).weights
        np.testing.assert_allclose(
            permuted.toarray(), weights[order][:, order].toarray(), rtol=1e-12
        )


@pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("eps", [None, 0.3])
@pytest.mark.parametrize("name", problems.CLOUDS)
def test_union_of_lists_is_the_maximum_of_both_directions(rng, name, eps, include_self):
    """Also where points have the same distance from another, so that only order decides."""
    X = problems.CLOUDS[name](rng, 300)
    options = {"eps": eps, "include_self": include_self}
    weights = knn_gaussian_graph(X, 7, **options).weights
    assert_canonical(weights, 300)
    halves = 2.0 * knn_gaussian_graph(X, 7, **options, symmetrize="average").weights
    loops = sp.identity(300) if include_self else sp.csr_matrix((300, 300))
    halves = halves - loops
    # Where only one end has the other, the average is half of the weight.
    assert (weights != 0.0).nnz == (halves != 0.0).nnz
    ratio = halves.multiply(weights.power(-1.0)).tocsr().data
    np.testing.assert_allclose(np.minimum(np.abs(ratio - 1.0), np.abs(ratio - 2.0)), 0.0, atol=1e-9)
