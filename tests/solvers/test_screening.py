"""What is known about the pairs is used again; what is not known is looked up."""

from __future__ import annotations

import numpy as np
import pytest

import problems
import reference
from otgraph.costs import base
from otgraph.exceptions import MemoryLimitError
from otgraph.solvers import Screener, room, screening

N = 200


class CountingCost:
    """A cost that counts what it is asked."""

    def __init__(self, X):
        self._cost = problems.cost_of(X)
        self.calls = []
        self.can_widen = False

    def __getattr__(self, name):
        return getattr(self._cost, name)

    def widen(self):
        return self.can_widen

    def screen(self, upper, rows=None):
        self.calls.append(None if rows is None else len(rows))
        return self._cost.screen(upper, rows)


@pytest.fixture
def X(rng):
    return problems.random(rng, N)


@pytest.fixture
def cost(X):
    return CountingCost(X)


@pytest.fixture
def C(X):
    return reference.cost_matrix(X)


def assert_complete(C, screen):
    expected = reference.pairs_below(C, screen.upper)
    np.testing.assert_array_equal(problems.as_mask(screen.pairs), expected)
    assert screen.complete
    assert screen.pairs_checked == N * (N - 1) // 2


def test_first_screen_is_a_pass_over_all_pairs(cost, C, rng):
    u, slack = rng.uniform(0.05, 0.1, size=N), rng.uniform(0.0, 0.1, size=N)
    screener = Screener(cost)
    screen = screener.screen(u, slack)
    np.testing.assert_array_equal(screen.upper, u + slack)
    assert_complete(C, screen)
    assert screener.n_passes == 1


def test_lower_potentials_need_no_pass(cost, C, rng):
    screener = Screener(cost)
    u, slack = rng.uniform(0.1, 0.2, size=N), np.full(N, 0.05)
    known = screener.screen(u, slack).upper
    for factor in (1.0, 0.9, 0.5):
        screen = screener.screen(factor * u, np.full(N, 0.08))
        assert np.all(factor * u <= screen.upper)
        assert np.all(screen.upper <= known)
        assert_complete(C, screen)
    assert cost.calls == [None]
    assert screener.n_passes == 1


def test_few_points_above_the_bound_are_looked_up_alone(cost, C, rng):
    screener = Screener(cost)
    u, slack = rng.uniform(0.1, 0.2, size=N), np.full(N, 0.02)
    screener.screen(u, slack)
    u[[3, 77, 120]] += 0.3
    screen = screener.screen(u, slack)
    assert np.all(u <= screen.upper)
    assert_complete(C, screen)
    assert cost.calls == [None, 3]
    screen = screener.screen(u - 0.05, slack)
    assert_complete(C, screen)
    assert cost.calls == [None, 3]


def test_points_just_below_the_bound_are_looked_up_with_those_above(cost, C):
    screener = Screener(cost)
    u, slack = np.full(N, 0.1), np.full(N, 0.05)
    known = screener.screen(u, slack).upper.copy()
    share = screening.NEAR_BOUND
    near = u + slack - 0.5 * share * slack  # below the bound, but not by more than the share
    u[[3, 8]] = near[[3, 8]]
    screener.screen(u, slack, prune=False)
    assert cost.calls == [None]  # nobody is above
    u[5] = known[5] + 0.01
    screen = screener.screen(u, slack, prune=False)
    assert cost.calls == [None, 3]
    np.testing.assert_array_equal(np.flatnonzero(screen.upper > known), [3, 5, 8])
    assert_complete(C, screen)


def test_many_points_above_the_bound_need_a_pass(cost, C, rng):
    screener = Screener(cost)
    u = rng.uniform(0.1, 0.2, size=N)
    screener.screen(u, np.zeros(N))
    screen = screener.screen(u + 0.1, np.zeros(N))
    assert_complete(C, screen)
    assert cost.calls == [None, None]
    assert screener.n_passes == 2


def test_a_cost_that_looks_further_is_asked_again(cost):
    screener = Screener(cost)
    screener.screen(np.full(N, 0.1), np.zeros(N))
    assert not screener.widen()  # it looks at all pairs already
    cost.can_widen = True
    assert screener.widen()
    screener.screen(np.full(N, 0.1), np.zeros(N))
    assert screener.n_passes == 2


def test_memory_is_asked_for_before_it_is_taken(cost, monkeypatch):
    """The prediction says what is needed, and the error what to do."""
    monkeypatch.setattr(base, "available_bytes", lambda: 100_000)
    monkeypatch.setattr(room, "FEW_BYTES", 0)
    screener = Screener(cost)
    screener.screen(np.full(N, 0.005), np.zeros(N))  # few pairs fit
    with pytest.raises(MemoryLimitError, match=r"199 candidates per point.*Lower `eps`"):
        screener.screen(np.full(N, 1e3), np.zeros(N))
    assert cost.calls == [None]


def test_shortest_pairs_of_the_same_groups_are_looked_up_once(cost, rng, monkeypatch):
    asked = []
    shortest_pairs = cost._cost.shortest_pairs

    def counted(rows, labels, k):
        asked.append(k)
        return shortest_pairs(rows, labels, k)

    monkeypatch.setattr(cost._cost, "shortest_pairs", counted)
    screener = Screener(cost)
    labels = rng.integers(0, 4, size=N)
    rows = np.flatnonzero(labels > 0)
    first = screener.shortest(rows, labels, 3)
    for again, expected in zip(screener.shortest(rows, labels.copy(), 3), first, strict=True):
        np.testing.assert_array_equal(again, expected)
    assert asked == [3]
    others = np.where(labels == 1, 2, labels)
    for found, expected in zip(
        screener.shortest(rows, others, 3), shortest_pairs(rows, others, 3), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    screener.shortest(rows, labels, 2)
    assert asked == [3, 3, 2]


def test_many_pairs_are_not_kept_beside_those_left_after_pruning(cost, C, monkeypatch):
    """A bound above what is left needs another pass; the answer is the same."""
    monkeypatch.setattr(screening, "MANY_PAIRS", 10)
    screener, none = Screener(cost), np.zeros(N)
    high = np.full(N, np.quantile(C, 0.2) / 2.0)
    screener.screen(high, none)
    left = screener.screen(0.5 * high, none)
    assert left.pairs.n_pairs < np.count_nonzero(2.0 * high[0] > C) // 2
    assert cost.calls == [None]
    again = screener.screen(high, none)
    assert cost.calls == [None, None]
    np.testing.assert_array_equal(
        problems.as_mask(again.pairs), (2.0 * high[0] > C) & ~np.eye(N, dtype=bool)
    )
