"""Rows of new points."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from otgraph.graphs import (
    Graph,
    entropic_ot_graph,
    gaussian_graph,
    knn_gaussian_graph,
    load_graph,
    magic_graph,
    quadratic_ot_graph,
)
from otgraph.graphs.extension import BLOCK_ENTRIES

BUILDERS = {
    "quadratic": lambda X, **options: quadratic_ot_graph(X, 0.8, **options),
    "entropic": lambda X, **options: entropic_ot_graph(X, 0.2, **options),
    "gaussian": lambda X, **options: gaussian_graph(X, 0.2, **options),
    "knn": lambda X, **options: knn_gaussian_graph(X, 7, 0.2, **options),
    "magic": lambda X, **options: magic_graph(X, 4, **options),
}
TRANSPORT = ("quadratic", "entropic")


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((70, 4))


@pytest.fixture
def new(rng) -> np.ndarray:
    return rng.standard_normal((9, 4))


def bisected_row(costs, u, eps, mass):
    """The defining equation solved by bisection: slow, and without sorting."""
    low, high = (costs - u).min(), (costs - u).min() + eps * mass
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(middle + u - costs, 0).sum() < eps * mass:
            low = middle
        else:
            high = middle
    return np.maximum(high + u - costs, 0) / eps


class TestTransport:
    @pytest.mark.parametrize("build", [quadratic_ot_graph, entropic_ot_graph])
    @given(seed=st.integers(0, 500))
    def test_own_points_get_their_own_rows_with_self_loops(self, build, seed):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((25, 3)) * rng.uniform(0.1, 100) + rng.uniform(-50, 50)
        mass = rng.random(25) + 0.3
        graph = build(X, float(rng.uniform(0.2, 5)), self_loops=True, tol=1e-11, mass=mass)
        rows = graph.extend(X, mass=mass)
        np.testing.assert_allclose(rows.toarray(), graph.weights.toarray(), atol=1e-9)

    def test_quadratic_against_bisection(self, X, new):
        graph = quadratic_ot_graph(X, 0.8)
        rows = graph.extend(new)
        C = cdist(new, X, "sqeuclidean") / cdist(X, X, "sqeuclidean").mean()
        expected = [bisected_row(c, graph.potentials, 0.8, 1.0) for c in C]
        np.testing.assert_allclose(rows.toarray(), expected, atol=1e-12)
        assert rows.format == "csr"
        assert rows.indices.dtype == np.int32
        assert rows.nnz < rows.shape[0] * rows.shape[1]

    @pytest.mark.parametrize("eps", [1e-3, 1e3])
    def test_quadratic_extremes(self, X, new, eps):
        graph = quadratic_ot_graph(X, 1.0)
        graph = replace(graph, certificate=replace(graph.certificate, eps=eps))
        rows = graph.extend(new).toarray()
        C = cdist(new, X, "sqeuclidean") / cdist(X, X, "sqeuclidean").mean()
        expected = [bisected_row(c, graph.potentials, eps, 1.0) for c in C]
        np.testing.assert_allclose(rows, expected, atol=1e-11)

    def test_entropic_formula(self, X, new):
        graph = entropic_ot_graph(X, 0.2)
        C = cdist(new, X, "sqeuclidean") / cdist(X, X, "sqeuclidean").mean()
        kernel = np.exp((graph.potentials - C) / 0.2)
        expected = kernel / kernel.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(graph.extend(new).toarray(), expected, rtol=1e-10)

    @pytest.mark.parametrize("method", TRANSPORT)
    def test_rows_sum_to_the_mass(self, X, new, method):
        graph = BUILDERS[method](X)
        for mass in (None, 2.5, np.arange(1.0, 10.0)):
            sums = np.asarray(graph.extend(new, mass=mass).sum(axis=1)).ravel()
            np.testing.assert_allclose(sums, 1.0 if mass is None else mass, rtol=1e-12)

    @pytest.mark.parametrize("method", TRANSPORT)
    @pytest.mark.parametrize("distance", [1e3, 1e8, 1e100])
    def test_far_points(self, X, method, distance):
        far = np.full((2, 4), distance)
        rows = BUILDERS[method](X).extend(far)
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)

    def test_points_beyond_the_range_are_named(self, X):
        far = np.zeros((3, 4))
        far[1] = 1e200
        with pytest.raises(ValueError, match=r"overflow \(row 1\)"):
            quadratic_ot_graph(X, 1.0).extend(far)

    @pytest.mark.parametrize("mass", [0.0, -1.0, np.nan, [1.0, 2.0], np.zeros(9)])
    def test_bad_mass(self, X, new, mass):
        with pytest.raises(ValueError, match="`mass` must"):
            quadratic_ot_graph(X, 1.0).extend(new, mass=mass)


class TestKernels:
    def test_gaussian(self, X, new):
        C = cdist(new, X, "sqeuclidean") / cdist(X, X, "sqeuclidean").mean()
        rows = gaussian_graph(X, 0.2).extend(new).toarray()
        np.testing.assert_allclose(rows, np.exp(-C / 0.2), rtol=1e-10)

    @pytest.mark.parametrize("eps", [None, 0.2])
    def test_nearest_neighbors(self, X, new, eps):
        C = cdist(new, X, "sqeuclidean") / cdist(X, X, "sqeuclidean").mean()
        expected = np.zeros_like(C)
        nearest = np.argsort(C, axis=1)[:, :7]
        weights = np.ones_like(C) if eps is None else np.exp(-C / eps)
        np.put_along_axis(expected, nearest, np.take_along_axis(weights, nearest, 1), 1)
        rows = knn_gaussian_graph(X, 7, eps).extend(new)
        np.testing.assert_allclose(rows.toarray(), expected, rtol=1e-10)

    @pytest.mark.parametrize("thresh", [1e-4, 0.1])
    def test_magic_against_graphtools(self, X, new, thresh):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import graphtools

            graph = graphtools.Graph(
                X.copy(), knn=4, knn_max=12, decay=1, thresh=thresh, n_jobs=1, verbose=0
            )
            kernel, operator = graph.build_kernel_to_data(new), graph.extend_to_data(new)
        rows = magic_graph(X, 4, thresh=thresh).extend(new)
        assert rows.nnz == kernel.nnz
        assert np.diff(rows.indptr).max() > 12  # knn_max is for the points of the graph
        np.testing.assert_allclose(rows.toarray(), kernel.toarray(), rtol=1e-5)
        P = rows.toarray() / rows.sum(axis=1)
        np.testing.assert_allclose(P, operator.toarray(), rtol=1e-5)

    def test_magic_with_principal_components(self, X, new):
        graph = magic_graph(X, 4, n_pca=2)
        rows = graph.extend(X)
        assert rows.shape == (70, 70)
        np.testing.assert_allclose(rows.diagonal(), 1.0)  # nearest to itself, at distance zero
        assert graph.extend(new).shape == (9, 70)

    @pytest.mark.parametrize("method", ["gaussian", "knn", "magic"])
    def test_have_no_mass(self, X, new, method):
        with pytest.raises(ValueError, match="`mass` must be None"):
            BUILDERS[method](X).extend(new, mass=1.0)


@pytest.mark.parametrize("method", BUILDERS)
class TestAll:
    def test_loaded_graphs_extend_alike(self, X, new, method, tmp_path):
        graph = BUILDERS[method](X)
        graph.save(tmp_path / "graph")
        expected = graph.extend(new)
        rows = load_graph(tmp_path / "graph").extend(new)
        assert (rows != expected).nnz == 0
        graph.save(tmp_path / "graph", include_points=False)
        with pytest.raises(ValueError, match="include_points=True"):
            load_graph(tmp_path / "graph").extend(new)

    def test_precomputed(self, X, new, method):
        C, D = cdist(X, X), cdist(new, X)
        graph = BUILDERS[method](C, metric="precomputed")
        rows = graph.extend(D)
        options = {} if method == "magic" else {"power": 1.0}
        direct = BUILDERS[method](X, **options).extend(new)
        atol = 1e-5 if method in TRANSPORT else 1e-10  # two solutions, each within tol
        np.testing.assert_allclose(rows.toarray(), direct.toarray(), atol=atol)
        with pytest.raises(ValueError, match=r"costs to all 70 points.*got shape \(9, 4\)"):
            graph.extend(new)
        with pytest.raises(ValueError, match="costs >= 0"):
            graph.extend(-D)

    @pytest.mark.parametrize("metric", ["cityblock", "cosine"])
    def test_other_metrics(self, X, new, method, metric):
        graph = BUILDERS[method](X, metric=metric)
        C, D = cdist(X, X, metric), cdist(new, X, metric)
        np.fill_diagonal(C, 0.0)
        if method != "magic":
            C, D = C**2, D**2
        given = BUILDERS[method](C, metric="precomputed")
        np.testing.assert_allclose(
            graph.extend(new).toarray(), given.extend(D).toarray(), atol=2e-5
        )

    def test_sparse_points(self, X, new, method):
        graph = BUILDERS[method](sp.csr_matrix(X))
        rows = graph.extend(sp.csr_matrix(new))
        np.testing.assert_allclose(
            rows.toarray(), BUILDERS[method](X).extend(new).toarray(), atol=1e-5
        )
        np.testing.assert_allclose(graph.extend(new).toarray(), rows.toarray(), atol=1e-12)

    def test_function_as_metric(self, X, new, method):
        def chessboard(x, y):
            return np.abs(x - y).max()

        graph = BUILDERS[method](X, metric=chessboard)
        expected = BUILDERS[method](X, metric="chebyshev").extend(new)
        rows = graph.extend(new, metric=chessboard)
        np.testing.assert_allclose(rows.toarray(), expected.toarray(), atol=1e-5)
        with pytest.raises(ValueError, match=r"`metric` must be the function.*chessboard"):
            graph.extend(new)

    def test_metric_is_not_for_others(self, X, new, method):
        with pytest.raises(ValueError, match="`metric` must be None"):
            BUILDERS[method](X).extend(new, metric=lambda x, y: 0.0)

    @pytest.mark.parametrize("scale", [1e-160, 1e155])
    def test_scale_of_the_points(self, X, new, method, scale):
        rows = BUILDERS[method](X * scale).extend(new * scale)
        expected = BUILDERS[method](X).extend(new)
        np.testing.assert_allclose(rows.toarray(), expected.toarray(), atol=1e-5)

    def test_bad_new_points(self, X, new, method):
        graph = BUILDERS[method](X)
        with pytest.raises(ValueError, match=r"`X_new` must have the 4 features.*got 3"):
            graph.extend(new[:, :3])
        with pytest.raises(ValueError, match="0 sample"):
            graph.extend(new[:0])
        new[2, 1] = np.nan
        with pytest.raises(ValueError, match=r"`X_new` contains NaN: 1 value.*row 2"):
            graph.extend(new)

    def test_new_points_are_left_alone(self, X, new, method):
        kept = new.copy()
        new.flags.writeable = False
        BUILDERS[method](X).extend(new)
        np.testing.assert_array_equal(new, kept)

    def test_blocks_change_nothing(self, rng, method):
        X, new = rng.standard_normal((2, 2100, 4))
        assert X.shape[0] * new.shape[0] > BLOCK_ENTRIES
        graph = BUILDERS[method](X)
        rows = graph.extend(new)
        for some in (slice(0, 5), slice(-5, None)):  # in the first block, in the last
            alone = graph.extend(new[some]).toarray()
            np.testing.assert_allclose(rows[some].toarray(), alone, rtol=1e-10, atol=1e-14)


def test_weights_of_unknown_origin_cannot_be_extended():
    with pytest.raises(ValueError, match="Only graphs built by one of quadratic"):
        Graph.from_weights([[0.0, 1.0], [1.0, 0.0]]).extend([[0.0]])
