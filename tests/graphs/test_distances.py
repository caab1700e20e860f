"""Distances along edges, and a fixed number of neighbors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

import otgraph
from otgraph import Graph


def chebyshev(x, y):
    return float(np.abs(x - y).max())


@pytest.mark.parametrize(
    ("metric", "power"),
    [("euclidean", 2.0), ("euclidean", 1.0), ("cosine", 2.0), ("manhattan", 1.5), (chebyshev, 2.0)],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_distances_undo_power_and_scale(rng, metric, power, sparse):
    if sparse and callable(metric):
        pytest.skip("a function of two points takes no sparse points")
    X = rng.normal(size=(60, 4))
    points = sp.csr_matrix(X) if sparse else X
    graph = otgraph.quadratic_ot_graph(points, mean_degree=6, metric=metric, power=power)
    expected = pairwise_distances(X, metric=metric)
    function = metric if callable(metric) else None
    for each in (graph, replace(graph, edge_costs=None)):  # kept, and measured again
        D = each.distances(metric=function).tocoo()
        np.testing.assert_allclose(D.data, expected[D.row, D.col], rtol=1e-9, atol=1e-7)
        assert D.nnz == graph.weights.nnz + graph.n


def test_rows_are_sorted_and_begin_with_the_point_itself(rng):
    X = rng.normal(size=(50, 3))
    X[1] = X[0]  # a duplicate: its zero is stored
    graph = otgraph.quadratic_ot_graph(X, mean_degree=8, self_loops=True)
    D = graph.distances()
    for i in range(graph.n):
        row = slice(D.indptr[i], D.indptr[i + 1])
        assert D.indices[row][0] == i
        assert D.data[row][0] == 0.0
        assert (np.diff(D.data[row]) >= 0.0).all()
        assert set(D.indices[row]) == set(graph.weights[i].indices) | {i}
    assert D.indices[D.indptr[0] + 1] == 1
    assert D.data[D.indptr[0] + 1] == 0.0


def test_precomputed_costs_are_the_distances(rng):
    C = pairwise_distances(rng.normal(size=(30, 3))) ** 3
    graph = otgraph.quadratic_ot_graph(C, mean_degree=6, metric="precomputed")
    D = graph.distances().tocoo()
    np.testing.assert_allclose(D.data, C[D.row, D.col], rtol=1e-12)


def test_distances_of_magic_are_between_its_components(rng):
    X = rng.normal(size=(80, 10)) * np.arange(1, 11)
    graph = otgraph.magic_graph(X, n_neighbors=4, n_pca=3)
    D = graph.distances().tocoo()
    components = PCA(3, svd_solver="full").fit_transform(X)
    expected = pairwise_distances(components)[D.row, D.col]
    np.testing.assert_allclose(D.data, expected, rtol=1e-6, atol=1e-6)


def test_graph_without_points_or_costs_says_so(rng):
    W = otgraph.knn_gaussian_graph(rng.normal(size=(20, 2)), n_neighbors=3).weights
    with pytest.raises(ValueError, match="neither points nor costs"):
        Graph.from_weights(W).distances()


def test_points_can_be_given_to_any_graph(rng):
    X = rng.normal(size=(20, 2))
    W = otgraph.knn_gaussian_graph(X, n_neighbors=3).weights
    D = Graph.from_weights(W, points=X).distances().tocoo()
    np.testing.assert_allclose(D.data, pairwise_distances(X)[D.row, D.col], atol=1e-12)


def brute_knn(X, graph, k):
    """Own edges first, nearest first; then the nearest others; then sorted by distance."""
    D = pairwise_distances(X)
    chosen = np.empty((len(X), k), dtype=int)
    for i in range(len(X)):
        own = set(graph.weights[i].indices) - {i}
        order = sorted(set(range(len(X))) - {i}, key=lambda j: (j not in own, D[i, j], j))
        chosen[i] = sorted(order[:k], key=lambda j: (D[i, j], j))
    return chosen, np.take_along_axis(D, chosen, axis=1)


@pytest.mark.parametrize("k", [1, 5, 12, 59])
def test_to_knn_keeps_edges_and_fills_with_the_nearest(rng, k):
    X = np.exp(rng.normal(size=(60, 2)))  # uneven density: edges are not the nearest points
    graph = otgraph.quadratic_ot_graph(X, mean_degree=6)
    assert graph.degrees.min() < 6 < graph.degrees.max()
    indices, distances = graph.to_knn(k)
    expected, values = brute_knn(X, graph, k)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_allclose(distances, values, rtol=1e-9)


def test_to_knn_is_not_the_list_of_nearest_neighbors(rng):
    X = np.exp(rng.normal(size=(60, 2)))
    graph = otgraph.quadratic_ot_graph(X, mean_degree=6)
    nearest = NearestNeighbors(n_neighbors=8).fit(X).kneighbors(return_distance=False)
    assert (graph.to_knn(8).indices != nearest).any()


def test_to_knn_counts_the_point_itself_on_request(rng):
    X = rng.normal(size=(40, 3))
    X[3] = X[7]
    graph = otgraph.quadratic_ot_graph(X, mean_degree=6)
    without, with_self = graph.to_knn(9), graph.to_knn(10, include_self=True)
    np.testing.assert_array_equal(with_self.indices[:, 0], np.arange(40))
    np.testing.assert_array_equal(with_self.indices[:, 1:], without.indices)
    assert not with_self.distances[:, 0].any()


def test_to_knn_as_a_matrix_stores_zeros(rng):
    X = rng.normal(size=(40, 3))
    X[3] = X[7]
    found = otgraph.quadratic_ot_graph(X, mean_degree=6).to_knn(5)
    matrix = found.matrix()
    assert (np.diff(matrix.indptr) == 5).all()
    np.testing.assert_array_equal(matrix.indices.reshape(40, 5), found.indices)
    assert matrix.indices[3 * 5] == 7
    assert matrix.data[3 * 5] == 0.0


@pytest.mark.parametrize(("k", "include_self"), [(40, False), (41, True), (0, False)])
def test_to_knn_refuses_impossible_numbers(rng, k, include_self):
    graph = otgraph.quadratic_ot_graph(rng.normal(size=(40, 3)), mean_degree=6)
    with pytest.raises(ValueError, match="`n_neighbors` must be"):
        graph.to_knn(k, include_self=include_self)


def test_to_knn_without_points_gives_what_the_edges_give(rng):
    C = pairwise_distances(rng.normal(size=(30, 3)))
    graph = otgraph.quadratic_ot_graph(C, mean_degree=6, metric="precomputed")
    least = int(graph.degrees.min())
    assert graph.to_knn(least).indices.shape == (30, least)
    with pytest.raises(ValueError, match=f"at most {least}, the smallest degree"):
        graph.to_knn(least + 1)
