"""The MAGIC kernel, against the package that MAGIC itself uses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from otgraph.exceptions import DisconnectedWarning
from otgraph.graphs import magic_graph

# graphtools keeps bandwidths in float32 when it computes them itself. A relative error of 2^-24
# there changes exp(-r^a) by a r^a 2^-24, and r^a <= log(1/thresh) where the weight is kept.
FLOAT32_UNIT = 2.0**-24


def graphtools_graph(X, k, *, knn_max=None, decay=1, thresh=1e-4, n_pca=None, **options):
    """graphtools' graph with the settings of MAGIC, on a copy: it may change its input."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import graphtools

        return graphtools.Graph(
            X.copy(),
            knn=k,
            knn_max=3 * k if knn_max is None else knn_max,
            decay=decay,
            thresh=thresh,
            n_pca=n_pca,
            n_jobs=1,
            verbose=0,
            **options,
        )


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((150, 12)) * np.geomspace(0.1, 10, 150)[:, None]


@pytest.mark.parametrize(
    ("k", "options"),
    [
        (5, {}),
        (1, {}),
        (12, {"decay": 2.0}),
        (5, {"decay": 15.0}),
        (5, {"knn_max": 5}),
        (4, {"thresh": 0.2}),
        (3, {"knn_max": 149}),
    ],
)
def test_kernel_and_diffusion_operator(X, k, options):
    graph = magic_graph(X, k, **options)
    # Bandwidths given in double precision: equal to rounding.
    bandwidth = np.sort(cdist(X, X), axis=1)[:, k]
    oracle = graphtools_graph(X, k, bandwidth=bandwidth, **options)
    weights, expected = graph.weights.toarray(), oracle.K.toarray()
    # Where it searches by products of matrices, graphtools has a point at up to the root of the
    # rounding error from itself, on some machines.
    np.testing.assert_allclose(expected.diagonal(), 1.0, rtol=1e-6)
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(weights, expected, rtol=1e-10, atol=0)
    np.testing.assert_array_equal(weights > 0, expected > 0)
    transition = graph.transition().toarray()
    np.testing.assert_allclose(transition, expected / expected.sum(axis=1)[:, None], rtol=1e-10)
    np.testing.assert_allclose(transition, oracle.diff_op.toarray(), rtol=1e-6)
    # Bandwidths as graphtools rounds them.
    oracle = graphtools_graph(X, k, **options)
    largest = np.log(1 / options.get("thresh", 1e-4))
    rtol = 2 * options.get("decay", 1.0) * largest * FLOAT32_UNIT
    np.testing.assert_allclose(weights, oracle.K.toarray(), rtol=rtol)
    np.testing.assert_allclose(
        graph.transition().toarray(), oracle.diff_op.toarray(), rtol=2 * rtol
    )


def test_formula_by_hand():
    # Distances 1, 2, 3 on a line; with k = 1 the bandwidths are 1, 1, 2.
    weights = magic_graph([[0.0], [1.0], [3.0]], n_neighbors=1, knn_max=2).weights.toarray()
    e = np.exp
    expected = np.array(
        [
            [1.0, e(-1), (e(-3) + e(-1.5)) / 2],
            [e(-1), 1.0, (e(-2) + e(-1)) / 2],
            [(e(-3) + e(-1.5)) / 2, (e(-2) + e(-1)) / 2, 1.0],
        ]
    )
    np.testing.assert_allclose(weights, expected, rtol=1e-14)


def test_principal_components(X):
    oracle = graphtools_graph(X, 5, n_pca=4, random_state=0)
    graph = magic_graph(X, 5, n_pca=4, random_state=0)
    np.testing.assert_allclose(graph.weights.toarray(), oracle.K.toarray(), rtol=1e-5)
    assert graph.points.shape == X.shape


def test_sparse_points(X):
    X = np.where(np.abs(X) < 0.05, 0.0, X)
    dense, sparse = magic_graph(X), magic_graph(sp.csr_matrix(X))
    np.testing.assert_allclose(sparse.weights.toarray(), dense.weights.toarray(), rtol=1e-10)
    pca = [magic_graph(Y, n_pca=3).weights.toarray() for Y in (X, sp.csr_matrix(X))]
    np.testing.assert_allclose(pca[0], pca[1], rtol=1e-3, atol=1e-3)


def test_precomputed_distances(X):
    given = magic_graph(cdist(X, X), metric="precomputed")
    np.testing.assert_allclose(given.weights.toarray(), magic_graph(X).weights.toarray(), rtol=1e-9)


def test_few_duplicates_against_graphtools(X):
    X[10] = X[20]
    # All neighbors are kept: which of two duplicates is the last one is a matter of choice.
    oracle = graphtools_graph(X, 5, knn_max=149).K.toarray()
    np.testing.assert_allclose(magic_graph(X, knn_max=149).weights.toarray(), oracle, rtol=1e-6)


def test_bandwidth_zero(X):
    X[:8] = X[0]  # more than k = 5 copies, fewer than the 15 neighbors with a weight
    with pytest.warns(DisconnectedWarning, match=r"8 point\(s\) have only duplicates"):
        graph = magic_graph(X, knn_max=149)
    weights = graph.weights.toarray()
    assert np.all(np.isfinite(weights))
    np.testing.assert_array_equal(weights[:8, :8], 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = graphtools_graph(X, 5, knn_max=149).K.toarray()
    np.testing.assert_allclose(weights, oracle, rtol=1e-6)


def test_all_points_identical():
    graph = magic_graph(np.ones((30, 3)))
    assert np.all(np.isfinite(graph.weights.data))
    assert np.all(graph.weights.diagonal() == 1.0)
    np.testing.assert_allclose(graph.transition().sum(axis=1), 1.0)


@pytest.mark.parametrize("scale", [1e-160, 1e150])
def test_scale_does_not_matter(X, scale):
    np.testing.assert_allclose(
        magic_graph(X * scale).weights.toarray(), magic_graph(X).weights.toarray(), rtol=1e-9
    )


def test_parameters_are_checked(X):
    with pytest.raises(ValueError, match="`knn_max` must be an integer >= 5"):
        magic_graph(X, 5, knn_max=4)
    with pytest.raises(ValueError, match="`n_pca` must be less than both"):
        magic_graph(X, n_pca=12)
    with pytest.raises(ValueError, match="`n_pca` must be None with metric='precomputed'"):
        magic_graph(cdist(X, X), metric="precomputed", n_pca=3)
    with pytest.warns(UserWarning, match="`n_neighbors`=500 is more than the 149"):
        assert magic_graph(X, 500).params["knn_max"] == 149
