"""Eigenvectors of the random walk, against known spectra and LAPACK."""

from __future__ import annotations

import resource
import time

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee
from threadpoolctl import threadpool_limits

import otgraph
from otgraph import eigenmaps, subspace_angle
from otgraph.exceptions import ConvergenceWarning, DisconnectedWarning
from otgraph.methods._eigensolvers import DENSE_LIMIT, SHIFT, _band_solver, lanczos
from small_graphs import chain, random_graph, ring


def assert_eigenvectors(graph, embedding, rtol=1e-9):
    """Orthonormal under the stationary distribution, and P v = λ v."""
    W = graph if sp.issparse(graph) else graph.weights
    mass = np.asarray(W.sum(axis=1)).ravel()
    V, share = embedding.coordinates, mass / mass.sum()
    np.testing.assert_allclose(V.T @ (share[:, None] * V), np.eye(V.shape[1]), atol=1e-8)
    np.testing.assert_allclose(share @ V, 0.0, atol=1e-8)  # orthogonal to the constant
    np.testing.assert_allclose((W @ V) / mass[:, None], V * embedding.eigenvalues, atol=1e-6)
    assert np.all(np.diff(embedding.eigenvalues) <= rtol)


def symmetric_form(W):
    """D^(-1/2) W D^(-1/2), which has the eigenvalues of the random walk, and its first vector."""
    root = np.sqrt(np.asarray(W.sum(axis=1)).ravel())
    scale = sp.diags(1.0 / root)
    return (scale @ W @ scale).tocsr(), root / np.linalg.norm(root)


class TestKnownSpectra:
    def test_two_points(self):
        embedding = eigenmaps(sp.csr_matrix([[0, 2.0], [2.0, 0]]), 1)
        np.testing.assert_allclose(embedding.eigenvalues, [-1.0])
        np.testing.assert_allclose(embedding.coordinates, [[1.0], [-1.0]])

    def test_path_of_three_points(self):
        """P = [[0, 1, 0], [½, 0, ½], [0, 1, 0]] has 1, 0 and -1."""
        embedding = eigenmaps(chain(3), 2)
        np.testing.assert_allclose(embedding.eigenvalues, [0.0, -1.0], atol=1e-14)
        first = np.abs(embedding.coordinates[:, 0])
        np.testing.assert_allclose(first, [2**0.5, 0, 2**0.5], atol=1e-14)

    @pytest.mark.parametrize("n", [40, 900])  # dense and Lanczos
    def test_ring_is_a_circle(self, n):
        embedding = eigenmaps(ring(n), 6)
        frequencies = np.repeat([1, 2, 3], 2)
        np.testing.assert_allclose(embedding.eigenvalues, np.cos(2 * np.pi * frequencies / n))
        np.testing.assert_allclose(np.hypot(*embedding.coordinates[:, :2].T), 2**0.5)

    def test_long_ring(self):
        """A walk around it takes 10^9 steps; Lanczos alone would take 10^5 products."""
        n = 50_000
        embedding = eigenmaps(ring(n), 2)
        np.testing.assert_allclose(1 - embedding.eigenvalues, 1 - np.cos(2 * np.pi / n), rtol=1e-5)
        np.testing.assert_allclose(np.hypot(*embedding.coordinates.T), 2**0.5, rtol=1e-8)

    def test_complete_graph_of_many_points(self):
        """All non-trivial eigenvalues are equal, negative, and one Krylov step apart."""
        n = DENSE_LIMIT + 100
        embedding = eigenmaps(sp.csr_matrix(np.ones((n, n)) - np.eye(n)), 3)
        np.testing.assert_allclose(embedding.eigenvalues, -1 / (n - 1))


class TestRandomGraphs:
    @pytest.mark.parametrize("k", [1, 2, 12])
    def test_eigenvectors(self, rng, k):
        W = random_graph(150, rng)
        assert_eigenvectors(W, eigenmaps(W, k))

    def test_all_of_them(self, rng):
        W = random_graph(30, rng)
        P = W.toarray() / W.toarray().sum(axis=1, keepdims=True)
        expected = np.sort(scipy.linalg.eigvals(P).real)[::-1][1:]
        np.testing.assert_allclose(eigenmaps(W, 29).eigenvalues, expected, atol=1e-10)

    def test_lanczos_agrees_with_lapack(self, rng):
        S, known = symmetric_form(random_graph(300, rng))
        values, vectors = lanczos(lambda x: S @ x, known, 5, tol=1e-12, max_restarts=1000)
        expected = scipy.linalg.eigvalsh(S.toarray())[-1 - len(values) : -1]
        np.testing.assert_allclose(np.sort(values), expected, atol=1e-12)
        np.testing.assert_allclose(S @ vectors, vectors * values, atol=1e-7)

    def test_where_the_fast_driver_of_lapack_fails(self, rng, monkeypatch):
        eigh = scipy.linalg.eigh

        def failing(S, *, subset_by_index=None, **options):
            if subset_by_index is not None:
                raise np.linalg.LinAlgError
            return eigh(S, **options)

        W = random_graph(60, rng)
        expected = eigenmaps(W, 4)
        monkeypatch.setattr(scipy.linalg, "eigh", failing)
        found = eigenmaps(W, 4)
        np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, atol=1e-12)
        np.testing.assert_allclose(found.coordinates, expected.coordinates, atol=1e-9)

    def test_band_agrees_with_lapack(self, rng):
        n = DENSE_LIMIT + 100
        band = sp.diags([rng.random(n) for _ in range(8)], range(-8, 0), shape=(n, n))
        W, order = (band + band.T).tocsr(), rng.permutation(n)
        W = W[order][:, order]
        (S, _), b = symmetric_form(W), rng.normal(size=n)
        x = _band_solver(S, reverse_cuthill_mckee(S, symmetric_mode=True))(b)
        np.testing.assert_allclose((1.0 + SHIFT) * x - S @ x, b, atol=1e-14 * np.abs(x).max())
        embedding = eigenmaps(W, 5)
        expected = scipy.linalg.eigvalsh(S.toarray())[-2:-7:-1]
        np.testing.assert_allclose(embedding.eigenvalues, expected, atol=1e-12)
        assert_eigenvectors(W, embedding)

    def test_scale_of_the_weights_does_not_matter(self, rng):
        W = random_graph(60, rng)
        np.testing.assert_allclose(
            eigenmaps(W * 1e6).coordinates, eigenmaps(W).coordinates, atol=1e-9
        )

    def test_order_of_the_points_does_not_matter(self, rng):
        W = random_graph(700, rng)
        order = rng.permutation(700)
        moved = eigenmaps(W[order][:, order], 3)
        np.testing.assert_allclose(moved.coordinates, eigenmaps(W, 3).coordinates[order], atol=1e-7)

    def test_largest_entry_is_positive(self, rng):
        V = eigenmaps(random_graph(80, rng), 5).coordinates
        assert np.all(V[np.abs(V).argmax(axis=0), range(5)] > 0)

    def test_same_bits_for_any_number_of_threads(self, rng):
        W = random_graph(2000, rng, density=0.01)
        with threadpool_limits(1):
            one = eigenmaps(W, 4).coordinates
        with threadpool_limits(2):
            two = eigenmaps(W, 4).coordinates
        np.testing.assert_array_equal(one, two)

    def test_input_is_not_changed(self, rng):
        W = random_graph(40, rng)
        before = W.copy()
        eigenmaps(W)
        np.testing.assert_array_equal(W.data, before.data)


class TestComponents:
    @pytest.fixture
    def parts(self, rng):
        return [random_graph(40, rng), random_graph(25, rng), ring(3), sp.csr_matrix((1, 1))]

    def test_each_is_embedded_as_if_alone(self, parts, rng):
        order = rng.permutation(69)
        W = sp.block_diag(parts, format="csr")[order][:, order]
        with pytest.warns(DisconnectedWarning, match="4 connected components; the largest has 40"):
            embedding = eigenmaps(W, 4)
        back = np.argsort(order)
        labels, start = embedding.component_labels[back], 0
        for part in parts[:2]:
            own = slice(start, start + part.shape[0])
            alone = eigenmaps(part, 4)
            np.testing.assert_allclose(
                embedding.coordinates[back][own], alone.coordinates, atol=1e-9
            )
            np.testing.assert_allclose(
                embedding.component_eigenvalues[labels[start]], alone.eigenvalues, atol=1e-12
            )
            start += part.shape[0]

    def test_small_ones_are_padded_with_zeros(self, parts):
        with pytest.warns(DisconnectedWarning, match="2 of them have too few points for 4"):
            embedding = eigenmaps(sp.block_diag(parts, format="csr"), 4)
        triangle = embedding.coordinates[65:68]
        assert np.linalg.matrix_rank(triangle) == 2
        assert not triangle[:, 2:].any()
        assert not embedding.coordinates[68].any()
        np.testing.assert_allclose(embedding.component_eigenvalues[2], [-0.5, -0.5, 0, 0])

    def test_eigenvalues_are_those_of_the_largest(self, parts):
        with pytest.warns(DisconnectedWarning):
            embedding = eigenmaps(sp.block_diag(parts[::-1], format="csr"), 3)
        np.testing.assert_allclose(embedding.eigenvalues, eigenmaps(parts[0], 3).eigenvalues)

    def test_no_edge_at_all(self):
        with pytest.warns(DisconnectedWarning):
            embedding = eigenmaps(sp.csr_matrix((3, 3)), 2)
        np.testing.assert_array_equal(embedding.coordinates, np.zeros((3, 2)))


class TestExtension:
    def test_own_rows_give_own_coordinates(self, rng):
        W = random_graph(90, rng)
        embedding = eigenmaps(W, 4)
        np.testing.assert_allclose(embedding.extend(W), embedding.coordinates, atol=1e-9)
        np.testing.assert_allclose(embedding.extend(W.toarray()), embedding.coordinates, atol=1e-9)

    def test_own_rows_of_several_components(self, rng):
        W = sp.block_diag([random_graph(30, rng), random_graph(20, rng)], format="csr")
        with pytest.warns(DisconnectedWarning):
            embedding = eigenmaps(W, 2)
        np.testing.assert_allclose(embedding.extend(W), embedding.coordinates, atol=1e-9)

    def test_new_points_land_between_their_neighbors(self):
        spiral = otgraph.datasets.noisy_spiral(400, dim=3, noise=0.0)
        graph = otgraph.quadratic_ot_graph(spiral.X[::2], mean_degree=10)
        embedding = eigenmaps(graph, 2)
        new = embedding.extend(graph.extend(spiral.X[1::2]))
        between = (embedding.coordinates + np.roll(embedding.coordinates, -1, axis=0)) / 2
        assert np.abs(new - between)[:-1].max() < 0.02

    def test_row_without_weight(self, rng):
        embedding = eigenmaps(ring(10), 2)
        with pytest.warns(UserWarning, match=r"1 new point\(s\) have no neighbor"):
            np.testing.assert_array_equal(embedding.extend(np.zeros((1, 10))), [[0.0, 0.0]])

    @pytest.mark.parametrize(
        ("rows", "match"),
        [
            (np.ones((2, 9)), r"one column for each of the 10 points .* got shape \(2, 9\)"),
            (-np.ones((1, 10)), "`rows` must hold weights >= 0, got -1"),
            (np.full((1, 10), np.nan), "`rows` contains NaN"),
        ],
    )
    def test_bad_rows(self, rows, match):
        with pytest.raises(ValueError, match=match):
            eigenmaps(ring(10)).extend(rows)


class TestPaper:
    def test_noisy_spiral(self):
        """The eigenvectors of the noisy spiral are nearly those of the clean one."""
        spiral = otgraph.datasets.noisy_spiral(1000)
        reference = eigenmaps(
            otgraph.knn_gaussian_graph(spiral.clean, n_neighbors=10, eps=0.025), 10
        )
        quadratic = otgraph.quadratic_ot_graph(spiral.X, eps=3.2, self_loops=True)
        nearest = otgraph.knn_gaussian_graph(spiral.X, n_neighbors=10, eps=0.3)
        assert subspace_angle(eigenmaps(quadratic, 10), reference) < 0.12
        assert subspace_angle(eigenmaps(nearest, 10), reference) > 0.3


class TestLimits:
    def test_stopping_short_is_said(self):
        """A large grid mixes slowly and fits into no narrow band."""
        side = sp.identity(330)
        grid = sp.kron(chain(330), side) + sp.kron(side, chain(330))
        with pytest.warns(ConvergenceWarning, match="did not converge in 1 restarts"):
            embedding = eigenmaps(grid.tocsr(), 3, max_restarts=1)
        assert np.isfinite(embedding.coordinates).all()

    @pytest.mark.parametrize(
        ("options", "error", "match"),
        [
            ({"n_components": 10}, ValueError, "`n_components` must be at most n - 1 = 9, got 10"),
            ({"n_components": 0}, ValueError, "`n_components` must be an integer >= 1"),
            ({"n_components": 2.0}, TypeError, "`n_components` must be an integer, got 2.0"),
            ({"tol": 0}, ValueError, "`tol` must be a positive"),
        ],
    )
    def test_bad_options(self, options, error, match):
        with pytest.raises(error, match=match):
            eigenmaps(ring(10), **options)

    @pytest.mark.parametrize(
        ("graph", "error", "match"),
        [
            (np.ones((3, 3)), TypeError, "must be a Graph or a symmetric scipy sparse matrix"),
            (sp.csr_matrix([[0, 1.0], [0, 0]]), ValueError, "must be symmetric"),
            (sp.csr_matrix([[0, -1.0], [-1.0, 0]]), ValueError, "must be finite and >= 0"),
            (sp.csr_matrix((2, 3)), ValueError, "must be a square matrix"),
        ],
    )
    def test_bad_graphs(self, graph, error, match):
        with pytest.raises(error, match=match):
            eigenmaps(graph, 1)

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
    def test_any_sparse_matrix(self, kind):
        expected = eigenmaps(ring(12)).coordinates
        np.testing.assert_allclose(eigenmaps(kind(ring(12))).coordinates, expected)

    @pytest.mark.slow
    def test_hundred_thousand_points(self):
        """Ten eigenvectors in less than a minute and a gigabyte, mostly the sixty vectors."""
        X = otgraph.datasets.noisy_manifold(100_000).X
        graph = otgraph.quadratic_ot_graph(X, mean_degree=15)
        del X
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        embedding = eigenmaps(graph, 10)
        assert time.perf_counter() - began < 60.0
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1e6  # kilobytes
        assert_eigenvectors(graph, embedding)
