"""Label spreading, against dense solutions and far from all labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import otgraph
from otgraph import spread_labels
from otgraph.exceptions import ConvergenceWarning, DisconnectedWarning
from small_graphs import chain, random_graph, ring

TOL = 1e-4  # the default


def transition(W):
    return W.toarray() / W.toarray().sum(axis=1, keepdims=True)


def objective(W, Q, P, mu):
    """As the paper writes it, over ordered pairs."""
    T = transition(W)
    distances = ((Q[:, None, :] - Q[None, :, :]) ** 2).sum(axis=2)
    return (T * distances).sum() + mu * ((Q - P) ** 2).sum()


def dense_solution(W, P, mu):
    T = transition(W)
    M = T + T.T
    return np.linalg.solve(np.diag(M.sum(axis=1)) - M + mu * np.eye(len(P)), mu * P)


def some_labels(n, n_classes, rng):
    y = np.full(n, -1)
    y[rng.choice(n, 3 * n_classes, replace=False)] = np.repeat(np.arange(n_classes), 3)
    return y


class TestMinimizer:
    @pytest.mark.parametrize("mu", [100.0, 1.0, 0.01, 1e-6])
    def test_against_dense_solution(self, rng, mu):
        W, y = random_graph(120, rng), some_labels(120, 4, rng)
        P = (y[:, None] == np.arange(4)).astype(float)
        Q = dense_solution(W, P, mu)
        spread = spread_labels(W, y, mu)
        np.testing.assert_allclose(spread.probabilities, Q / Q.sum(axis=1, keepdims=True), atol=TOL)
        np.testing.assert_allclose(spread.log_mass, np.log(Q.sum(axis=1)), atol=TOL)
        assert spread.error <= TOL

    def test_the_reference_minimizes_the_objective_of_the_paper(self, rng):
        """W is row-stochastic and not symmetric: both directions of an edge count."""
        W, y = random_graph(15, rng, density=0.3), some_labels(15, 2, rng)
        P = (y[:, None] == np.arange(2)).astype(float)
        Q = dense_solution(W, P, 0.7)
        best = objective(W, Q, P, 0.7)
        for _ in range(20):
            assert objective(W, Q + 1e-3 * rng.standard_normal(Q.shape), P, 0.7) > best

    def test_mu_two_is_the_published_alpha_of_one_half(self, rng):
        """F = β (I - α S)⁻¹ Y with α = 1/2, on a doubly stochastic S."""
        graph = otgraph.quadratic_ot_graph(rng.standard_normal((60, 3)), eps=1.0, tol=1e-10)
        y = some_labels(60, 3, rng)
        Y = (y[:, None] == np.arange(3)).astype(float)
        for mu, alpha in ((2.0, 1 / 2), (1.0, 2 / 3)):
            F = np.linalg.solve(np.eye(60) - alpha * graph.weights.toarray(), Y)
            spread = spread_labels(graph, y, mu)
            expected = F / F.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(spread.probabilities, expected, atol=TOL)

    def test_doubly_stochastic(self, rng):
        graph = otgraph.quadratic_ot_graph(rng.standard_normal((60, 3)), eps=1.0, tol=1e-10)
        y = some_labels(60, 3, rng)
        P = (y[:, None] == np.arange(3)).astype(float)
        W = graph.weights.toarray()
        Q = np.linalg.solve(2 * (np.eye(60) - W) + 0.5 * np.eye(60), 0.5 * P)
        np.testing.assert_allclose(
            spread_labels(graph, y, 0.5).probabilities, Q / Q.sum(axis=1, keepdims=True), atol=TOL
        )

    def test_three_points(self):
        """A path: (2 + μ) q₁ = q₀ + q₂ shifts nothing, by symmetry the middle is even."""
        spread = spread_labels(chain(3), [0, -1, 1])
        np.testing.assert_allclose(spread.probabilities[1], [0.5, 0.5])
        assert spread.probabilities[0, 0] == spread.probabilities[2, 1] > 0.5

    def test_one_class(self):
        spread = spread_labels(ring(8), [5] + 7 * [-1])
        np.testing.assert_array_equal(spread.labels, 5)
        np.testing.assert_allclose(spread.probabilities, 1.0)

    def test_all_known_can_be_outvoted(self):
        """With small μ a point follows its surroundings, with large μ its label."""
        W = sp.csr_matrix(np.ones((6, 6)) - np.eye(6))
        y = [1, 0, 0, 0, 0, 0]
        assert spread_labels(W, y, 0.01).labels[0] == 0
        assert spread_labels(W, y, 100.0).labels[0] == 1


class TestFarFromLabels:
    """What an iteration accurate to sixteen digits of the largest value would get wrong."""

    def test_long_chain(self):
        """(2 + μ) q_i = q_{i-1} + q_{i+1} gives q ~ r^i with r + 1/r = 2 + μ, for μ = 1."""
        n = 1200
        spread = spread_labels(chain(n), [0] + (n - 2) * [-1] + [1])
        np.testing.assert_array_equal(spread.labels[: n // 2], 0)
        np.testing.assert_array_equal(spread.labels[n // 2 :], 1)
        rate = np.log((3 - 5**0.5) / 2)
        np.testing.assert_allclose(np.diff(spread.log_mass)[2:590], rate, rtol=1e-5)
        assert spread.log_mass.min() < np.log(1e-200)
        assert spread.error <= TOL
        assert not spread.unreachable.any()

    def test_proportions_where_nothing_is_left_of_the_mass(self):
        """Two labels side by side keep their proportion, however far away one stands."""
        n = 500
        spread = spread_labels(chain(n), [0, 1] + (n - 2) * [-1])
        np.testing.assert_allclose(np.diff(spread.probabilities[2:, 0]), 0.0, atol=1e-8)
        assert 0 < spread.probabilities[-1, 0] < spread.probabilities[-1, 1]

    def test_new_points_there(self):
        n = 1200
        spread = spread_labels(chain(n), [0] + (n - 2) * [-1] + [1])
        rows = sp.csr_matrix(([1.0, 1.0], ([0, 0], [500, 501])), shape=(1, n))
        new = spread.extend(rows)
        np.testing.assert_allclose(new.probabilities, [[1.0, 0.0]], atol=1e-10)
        assert spread.log_mass[501] < new.log_mass[0] < spread.log_mass[500]


class TestUnreachable:
    @pytest.fixture
    def W(self):
        return sp.block_diag([ring(5), ring(4), sp.csr_matrix((1, 1))], format="csr")

    def test_marked_and_uniform(self, W):
        with pytest.warns(DisconnectedWarning, match=r"No label reaches 5 of 10 point\(s\)"):
            spread = spread_labels(W, [0, -1, -1, 1, -1] + 5 * [-1])
        np.testing.assert_array_equal(spread.unreachable, [False] * 5 + [True] * 5)
        np.testing.assert_array_equal(spread.labels[5:], -1)
        np.testing.assert_array_equal(spread.probabilities[5:], 0.5)
        assert np.all(np.isneginf(spread.log_mass[5:]))

    def test_isolated_but_labeled(self, W):
        spread = spread_labels(W, [0, -1, -1, -1, -1, 1, -1, -1, -1, 2])
        assert spread.labels.tolist() == 5 * [0] + 4 * [1] + [2]

    @pytest.mark.parametrize(
        ("labels", "mark"),
        [
            (np.array(["a", None, "b", -1, -1] + 5 * [-1], dtype=object), None),
            (np.array([0.0, -1, 1, -1, -1] + 5 * [-1]), -1.0),
        ],
    )
    def test_mark_suits_the_labels(self, W, labels, mark):
        with pytest.warns(DisconnectedWarning):
            spread = spread_labels(W, labels)
        assert spread.labels[-1] == mark
        assert set(spread.labels[:5]) == set(spread.classes)

    def test_new_points(self, W):
        with pytest.warns(DisconnectedWarning):
            spread = spread_labels(W, np.array(["a", "b"] + 8 * [None], dtype=object))
        rows = np.zeros((3, 10))
        rows[0, [0, 7]], rows[1, 7] = 0.5, 1.0
        with pytest.warns(DisconnectedWarning, match=r"2 of 3 new point\(s\)"):
            new = spread.extend(rows)
        assert new.labels.tolist() == ["a", None, None]
        np.testing.assert_array_equal(new.probabilities[1:], 0.5)


class TestNewPoints:
    def test_rows_of_unlabeled_points_give_their_labels_again(self, rng):
        """With self-loops, for doubly stochastic W: Σ W_ij Q_j = (1 + μ/2) Q_i."""
        X = rng.standard_normal((80, 2))
        graph = otgraph.quadratic_ot_graph(X, eps=1.0, self_loops=True, tol=1e-10)
        y = some_labels(80, 3, rng)
        spread = spread_labels(graph, y, tol=1e-8)
        new = spread.extend(graph.extend(X))
        unknown = y < 0
        np.testing.assert_allclose(
            new.probabilities[unknown], spread.probabilities[unknown], atol=1e-6
        )

    def test_mean_of_neighbors(self):
        spread = spread_labels(chain(3), [0, -1, 1])
        new = spread.extend([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
        np.testing.assert_allclose(new.probabilities, [[0.5, 0.5], spread.probabilities[0]])


class TestLabels:
    @pytest.mark.parametrize(
        ("labels", "expected"),
        [
            ([3, -1, -1, 7], [3, 3, 7, 7]),
            ([3.0, -1.0, -1.0, 7.0], [3.0, 3.0, 7.0, 7.0]),
            (np.array(["b", -1, None, "a"], dtype=object), ["b", "b", "a", "a"]),
            (np.array(["b", "b", "a", "a"]), ["b", "b", "a", "a"]),
            (np.array([3, -1, -1, 7], dtype=object), [3, 3, 7, 7]),
            (np.array([1, 1, 2, 2], dtype=np.uint8), [1, 1, 2, 2]),
            ([True, True, False, False], [True, True, False, False]),
        ],
    )
    def test_kinds(self, labels, expected):
        assert spread_labels(chain(4), labels).labels.tolist() == expected

    @pytest.mark.parametrize(
        ("labels", "error", "match"),
        [
            ([-1, -1, -1, -1], ValueError, "at least one known label"),
            (np.array([None] * 4), ValueError, "at least one known label"),
            (["a", "-1", "-1", "b"], ValueError, "strings and some are '-1'.*dtype object"),
            (np.array(["a", "-1", -1, "b"], dtype=object), ValueError, "the string '-1'"),
            ([0.0, np.nan, np.nan, 1.0], ValueError, "2 NaN or infinite.*with -1"),
            (np.array(["a", np.nan, "b", -1], dtype=object), ValueError, "NaN or missing"),
            (np.array(["a", pd.NA, "b", -1], dtype=object), ValueError, "NaN or missing"),
            (np.array(["a", 1, "b", -1], dtype=object), TypeError, "all strings or all numbers"),
            ([0, 1, -1], ValueError, r"one label per point, shape \(4,\), got shape \(3,\)"),
            ([[0], [1], [-1], [-1]], ValueError, r"got shape \(4, 1\)"),
            ([0.5, -1, -1, 1.25], ValueError, "Unknown label type"),
            ([1j, 0, 0, 0], TypeError, "numbers or strings, got dtype complex"),
        ],
    )
    def test_faults(self, labels, error, match):
        with pytest.raises(error, match=match):
            spread_labels(chain(4), labels)


class TestIterations:
    @pytest.mark.parametrize(("mu", "limit"), [(1.0, 50), (0.1, 110), (0.01, 300)])
    def test_number_does_not_grow_with_the_points(self, mu, limit):
        """Condition number at most 1 + 4/μ, whatever the size of the graph."""
        X = otgraph.datasets.noisy_manifold(4000).X
        for n in (1000, 4000):
            graph = otgraph.quadratic_ot_graph(X[:n], mean_degree=15)
            y = np.full(n, -1)
            y[::100] = np.arange(n // 100) % 10
            spread = spread_labels(graph, y, mu)
            assert 5 < spread.n_iter < limit
            assert spread.error <= TOL

    def test_stopping_short_is_said(self, rng):
        W = random_graph(200, rng)
        with pytest.warns(ConvergenceWarning, match="after 3 iterations"):
            spread = spread_labels(W, some_labels(200, 3, rng), 1e-3, max_iter=3)
        assert spread.error > TOL
        np.testing.assert_allclose(spread.probabilities.sum(axis=1), 1.0)

    def test_same_bits_for_any_number_of_threads(self, rng):
        W, y = random_graph(3000, rng, density=0.005), some_labels(3000, 5, rng)
        with threadpool_limits(1):
            one = spread_labels(W, y).probabilities
        with threadpool_limits(2):
            two = spread_labels(W, y).probabilities
        np.testing.assert_array_equal(one, two)

    @pytest.mark.parametrize(
        ("options", "match"),
        [({"mu": 0.0}, "`mu` must be a positive"), ({"tol": -1.0}, "`tol` must be a positive")],
    )
    def test_bad_options(self, options, match):
        with pytest.raises(ValueError, match=match):
            spread_labels(chain(4), [0, -1, -1, 1], **options)
