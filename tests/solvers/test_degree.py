"""A wanted mean degree finds its eps."""

from __future__ import annotations

import numpy as np
import pytest

import otgraph
import problems
from otgraph._kernels.restricted import row_excess
from otgraph.solvers import Goal, Screener, Wish, rounds, solve_for_degree
from otgraph.solvers import degree as degree_search
from otgraph.solvers.degree import DegreeSearch
from otgraph.solvers.laws import degree_at, law_of_all_pairs, row_law


def solved(cost, degree, *, n_candidates):
    goal = Goal(eps=1.0, mass=np.ones(cost.n), self_loops=False, tol=1e-6, max_iter=200)
    return solve_for_degree(Screener(cost), degree, goal, Wish(), n_candidates=n_candidates)


@pytest.mark.parametrize("name", ["random", "clustered", "line", "many_dimensions", "heavy_tails"])
@pytest.mark.parametrize("degree", [4.0, 15.0])
def test_degree_is_reached(rng, name, degree):
    cost = problems.cost_of(problems.CLOUDS[name](rng, 400))
    solution = solved(cost, degree, n_candidates=30)
    assert solution.certificate.status == "exact"
    assert solution.mean_degree == pytest.approx(degree, rel=0.02)


@pytest.mark.parametrize("power", [0.2, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("goal", [0.5, 15.0, 500.0])
def test_search_follows_a_power_law(power, goal):
    """degree = 7 eps^power: found from far away within a few proposals."""
    search, eps = DegreeSearch(goal), 1.0
    for _ in range(12):
        degree = 7.0 * eps**power
        if search.miss(degree) < 0.01:
            break
        eps = search.propose(eps, degree)
    assert degree == pytest.approx(goal, rel=0.011)


def test_search_of_a_staircase_ends():
    """Few points have few possible degrees: no proposal, rather than the same for ever."""
    search, eps = DegreeSearch(5.0), 1.0
    for _ in range(200):
        eps = search.propose(eps, 4.0 if eps < 2.0 else 6.0)
        if eps is None:
            break
    assert eps is None


def test_proposals_stay_within_what_is_known():
    search = DegreeSearch(5.0)
    low, high = 1.0, 3.0
    search.propose(low, 2.0)
    eps = search.propose(high, 9.0)
    for _ in range(20):
        assert low < eps < high
        degree = 2.0 + 7.0 * (eps - 1.0) ** 3 / 8.0
        low, high = (eps, high) if degree < 5.0 else (low, eps)
        eps = search.propose(eps, degree)
        if eps is None:
            break


def test_a_plateau_at_large_eps_does_not_end_the_scan():
    """Uneven masses limit the degree at large eps; the largest degree may be at smaller ones."""
    search, eps = DegreeSearch(3.0, limits=(1e-9, 1e9), scan=True), 10.0
    for _ in range(120):
        degree = 2.8 if eps > 1.0 else 3.0 if eps > 0.5 else 2.6
        eps = search.propose(eps, degree)
        if eps is None:
            break
    assert 0.5 < search.best_eps <= 1.0


@pytest.mark.parametrize("seed", range(4))
def test_a_degree_below_all_others_still_gives_a_proved_graph(seed):
    """Plans with fewer edges need eps that double precision does not allow."""
    X = np.random.default_rng(seed).normal(size=(20, 3))
    X[0] = 100.0
    with pytest.warns(otgraph.exceptions.ConvergenceWarning, match="No `eps` was found"):
        graph = otgraph.quadratic_ot_graph(X, mean_degree=1.07, tol=1e-6, outlier_cost=35.0)
    assert graph.certificate.status == "exact"


def test_very_many_pairs_are_not_kept_for_another_trial(rng, monkeypatch):
    X = rng.normal(size=(9000, 8))  # few candidates: the first eps is too large
    expected = otgraph.quadratic_ot_graph(X, mean_degree=12)
    monkeypatch.setattr(degree_search, "MANY_PAIRS", 0)
    spare = []

    def approach(screener, goal, state, effort):
        spare.append(state.spare)
        after = rounds.approach(screener, goal, state, effort)
        if state.spare and after.problem.pairs is not kept(state):
            assert kept(state) is None  # freed, whoever has the state
        return after

    def kept(state):
        return state.problem._candidates.pairs

    monkeypatch.setattr(degree_search, "approach", approach)
    found = otgraph.quadratic_ot_graph(X, mean_degree=12)
    assert spare[:2] == [True, True]
    np.testing.assert_array_equal(found.weights.data, expected.weights.data)


def test_row_excess():
    """The second row has fewer costs than asked for, the third none."""
    costs = np.array([3.0, 1.0, 2.0, 7.0, 5.0, 4.0])
    most, least = found = np.empty((2, 3))
    row_excess(np.array([4, 2, 0]), costs, (3, 1), found)
    np.testing.assert_allclose(most, [4.0 + 5.0 + 6.0, 1.0, 0.0])
    np.testing.assert_allclose(least, [1.0, 1.0, 0.0])


def test_row_law_is_right_for_equal_rows():
    """Points on a circle: all rows are alike, and each by itself has the wanted degree."""
    angle = np.arange(60) * 2 * np.pi / 60
    cost = problems.cost_of(np.column_stack([np.cos(angle), np.sin(angle)]))
    pairs = cost.neighbors(20)
    eps, slope = row_law(cost, pairs, 6.0, np.ones(60))
    assert slope == pytest.approx(1 / 3, rel=0.2)  # d/(d + 2) in one dimension
    solution = solved(cost, 6.0, n_candidates=20)
    assert eps == pytest.approx(solution.certificate.eps, rel=0.5)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_rows_with_all_pairs_tell_the_degree(rng, power):
    cost = problems.cost_of(rng.normal(size=(600, 5)), power=power)
    for degree in (8.0, 40.0):
        solution = solved(cost, degree, n_candidates=80)
        about = degree_at(cost, solution.certificate.eps, np.ones(600))
        assert about == pytest.approx(solution.mean_degree, rel=0.5)


def test_row_law_of_identical_points():
    cost = problems.cost_of(np.zeros((5, 2)))
    eps, slope = row_law(cost, cost.neighbors(4), 3.0, np.ones(5))
    assert eps > 0
    assert slope > 0


def test_rows_with_all_pairs_tell_eps_where_candidates_saturate(rng):
    """Points of narrow clusters have more neighbors than candidates."""
    width = np.repeat([0.02, 1.0], 300)
    X = 10.0 * (np.arange(600) % 2)[:, None] + width[:, None] * rng.normal(size=(600, 10))
    cost = problems.cost_of(X)
    eps = solved(cost, 15.0, n_candidates=15).certificate.eps
    law = law_of_all_pairs(cost, 15.0, np.ones(600))
    assert law is not None
    assert law[0] == pytest.approx(eps, rel=0.3)
    assert 0.5 < law[1] < 1.2  # d/(d + 2) in ten dimensions, with clusters of different widths
    assert row_law(cost, cost.neighbors(15), 15.0, np.ones(600))[0] > 2.0 * eps


def test_rows_with_all_pairs_tell_nothing_about_identical_points():
    cost = problems.cost_of(np.zeros((40, 3)))
    assert law_of_all_pairs(cost, 5.0, np.ones(40)) is None
