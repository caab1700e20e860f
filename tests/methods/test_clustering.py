from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import otgraph
from otgraph import cluster
from otgraph.exceptions import ConvergenceWarning, DisconnectedWarning
from otgraph.methods._eigensolvers import DENSE_LIMIT
from small_graphs import chain, random_graph, ring


def complete(n):
    return sp.csr_matrix(np.ones((n, n)) - np.eye(n))


def joined(parts, *edges):
    """Parts side by side, with weak edges between points."""
    W = sp.block_diag(parts, format="lil")
    for i, j, weight in edges:
        W[i, j] = W[j, i] = weight
    return W.tocsr()


class TestClearGroups:
    @pytest.fixture
    def three(self):
        """Groups of 30, 20 and 10 points, joined by weak edges."""
        return joined([complete(10), complete(30), complete(20)], (0, 10, 0.1), (39, 40, 0.1))

    @pytest.mark.parametrize("k", [3, None])
    def test_numbered_by_size(self, three, k):
        found = cluster(three, k)
        assert found.n_clusters == 3
        np.testing.assert_array_equal(found.labels, np.repeat([2, 0, 1], [10, 30, 20]))

    def test_any_order_of_the_points(self, three, rng):
        order = rng.permutation(60)
        moved = cluster(three[order][:, order], 3)
        np.testing.assert_array_equal(moved.labels, cluster(three, 3).labels[order])

    def test_any_seed(self, three):
        labels = [cluster(three, 3, random_state=seed).labels for seed in range(5)]
        assert all(np.array_equal(labels[0], other) for other in labels)

    def test_equal_sizes_are_numbered_by_appearance(self):
        found = cluster(joined([complete(8)] * 3, (0, 8, 0.1), (15, 16, 0.1)), 3)
        np.testing.assert_array_equal(found.labels, np.repeat([0, 1, 2], 8))

    def test_eigenvalues_fall_and_show_the_gap(self, three):
        values = cluster(three).eigenvalues
        assert np.all(np.diff(values) <= 1e-12)
        assert values[0] == 1.0
        assert values[2] > 0.98
        assert values[3] < 0.1

    def test_rows_have_norm_one(self, three):
        np.testing.assert_allclose(np.linalg.norm(cluster(three, 3).coordinates, axis=1), 1.0)

    def test_two_half_moons(self):
        from sklearn.datasets import make_moons

        X, y = make_moons(400, noise=0.05, random_state=0)
        found = cluster(otgraph.quadratic_ot_graph(X))
        assert found.n_clusters == 2
        assert adjusted_rand_score(y, found.labels) > 0.95

    def test_lanczos_agrees_with_dense(self, rng):
        sizes = (180, 250, 220)
        assert sum(sizes) > DENSE_LIMIT
        W = joined([random_graph(n, rng) for n in sizes], (0, 180, 0.1), (200, 640, 0.1))
        found = cluster(W, 3)
        root = np.sqrt(W.toarray().sum(axis=1))
        dense = np.linalg.eigvalsh(W.toarray() / np.outer(root, root))[::-1]
        np.testing.assert_allclose(found.eigenvalues[:3], dense[:3], atol=1e-10)
        order = np.argsort([-size for size in sizes])  # clusters are numbered by size
        truth = np.repeat(np.argsort(order), sizes)
        np.testing.assert_array_equal(found.labels, truth)

    def test_same_bits_for_any_number_of_threads(self, rng):
        W = random_graph(2000, rng, density=0.01)
        with threadpool_limits(1):
            one = cluster(W, 4)
        with threadpool_limits(2):
            two = cluster(W, 4)
        np.testing.assert_array_equal(one.labels, two.labels)
        np.testing.assert_array_equal(one.coordinates, two.coordinates)


class TestComponents:
    def test_components_are_clusters(self):
        found = cluster(joined([ring(20), ring(30)]))
        assert found.n_clusters == 2
        np.testing.assert_array_equal(found.labels, np.repeat([1, 0], [20, 30]))

    def test_equal_components_are_not_on_top_of_each_other(self):
        """Eigenmaps places equal components at the same coordinates; clusters differ."""
        W = joined([complete(12)] * 4)
        with pytest.warns(DisconnectedWarning):
            V = otgraph.eigenmaps(W, 2).coordinates
        np.testing.assert_allclose(V[:12], V[12:24])
        found = cluster(W)
        assert found.n_clusters == 4
        np.testing.assert_array_equal(found.labels, np.repeat(np.arange(4), 12))

    def test_a_component_is_divided_if_there_are_more_clusters(self):
        W = joined([complete(30), complete(20), complete(25)], (0, 30, 0.1))
        np.testing.assert_array_equal(cluster(W, 3).labels, np.repeat([0, 2, 1], [30, 20, 25]))

    def test_fewer_clusters_than_components(self):
        with pytest.warns(DisconnectedWarning, match=r"12 point\(s\) have the label -1: they are "):
            found = cluster(joined([ring(12), ring(20), ring(30)]), 2)
        np.testing.assert_array_equal(found.labels, np.repeat([-1, 1, 0], [12, 20, 30]))
        assert not found.coordinates[:12].any()

    def test_fragments_use_up_no_clusters(self):
        """Two groups joined by an edge, and two fragments: the groups are the clusters."""
        W = joined([complete(60), complete(50), ring(3), sp.csr_matrix((1, 1))], (0, 60, 0.1))
        with pytest.warns(
            DisconnectedWarning, match=r"4 point\(s\).* 2 component\(s\) of at most 3"
        ):
            found = cluster(W, 2)
        np.testing.assert_array_equal(found.labels, np.repeat([0, 1, -1], [60, 50, 4]))

    def test_fragments_held_by_an_edge_follow_it(self):
        """The edge to the triangle is weaker than the one between the groups."""
        W = joined([complete(60), complete(50), ring(3)], (0, 60, 1.0), (70, 110, 1e-3))
        assert np.sort(otgraph.eigenmaps(W, 2).coordinates[:, 0])[-3] > 5  # its mode is the slowest
        np.testing.assert_array_equal(cluster(W, 2).labels, np.repeat([0, 1], [60, 53]))

    def test_sizes_are_those_with_fragments(self):
        """The smaller group becomes the larger one by its fragment."""
        W = joined([complete(51), complete(50), ring(3)], (0, 51, 1.0), (70, 101, 1e-3))
        np.testing.assert_array_equal(cluster(W, 2).labels, np.repeat([1, 0], [51, 53]))

    def test_isolated_points_can_be_clusters(self):
        assert cluster(sp.csr_matrix((3, 3)), 3).labels.tolist() == [0, 1, 2]

    def test_only_fragments(self):
        """Hundred components of three points: the first two are clusters."""
        with pytest.warns(DisconnectedWarning, match=r"294 point\(s\) have the label -1"):
            labels = cluster(joined([ring(3)] * 100), 2).labels
        np.testing.assert_array_equal(labels, np.repeat([0, 1, -1], [3, 3, 294]))


class TestLimits:
    def test_one_cluster(self):
        assert not cluster(joined([ring(5), ring(4)]), 1).labels.any()

    @pytest.mark.parametrize("n", [1, 2, 5])
    def test_every_point_a_cluster(self, n):
        assert sorted(cluster(chain(n) if n > 1 else sp.csr_matrix((1, 1)), n).labels) == [
            *range(n)
        ]

    @pytest.mark.parametrize("n", [1, 2])
    def test_too_few_points_for_a_gap(self, n):
        assert cluster(complete(n)).n_clusters == 1

    def test_gap_is_limited(self):
        W = joined([complete(5)] * 8, *((5 * i, 5 * i + 5, 0.01) for i in range(7)))
        assert cluster(W).n_clusters == 8
        assert cluster(W, max_clusters=4).n_clusters <= 4

    def test_stopping_short_is_said(self, rng):
        W = random_graph(2000, rng, density=0.01)  # no narrow band, and eigenvalues close together
        with pytest.warns(ConvergenceWarning, match="did not converge in 1 restarts"):
            cluster(W, 1, max_restarts=1)

    @pytest.mark.parametrize(
        ("options", "error", "match"),
        [
            ({"n_clusters": 11}, ValueError, "`n_clusters` must be at most .* points, 10, got 11"),
            ({"n_clusters": 0}, ValueError, "`n_clusters` must be an integer >= 1"),
            ({"n_clusters": 2.0}, TypeError, "`n_clusters` must be an integer, got 2.0"),
            ({"max_clusters": 0}, ValueError, "`max_clusters` must be an integer >= 1"),
            ({"tol": 0}, ValueError, "`tol` must be a positive"),
            ({"random_state": "a"}, TypeError, "`random_state` must be an integer"),
        ],
    )
    def test_bad_options(self, options, error, match):
        with pytest.raises(error, match=match):
            cluster(ring(10), **options)

    def test_bad_graph(self):
        with pytest.raises(TypeError, match="must be a Graph or a symmetric scipy sparse matrix"):
            cluster(np.ones((3, 3)))

    @pytest.mark.slow
    def test_hundred_thousand_points(self):
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(5), 20_000)
        X = rng.normal(size=(100_000, 10)) + 6.0 * rng.normal(size=(5, 10))[y]
        graph = otgraph.quadratic_ot_graph(X)
        began = time.perf_counter()
        found = cluster(graph, 5)
        assert time.perf_counter() - began < 60.0
        assert adjusted_rand_score(y, found.labels) > 0.95
