"""The estimate of what approximate candidates lack, against the truth."""

from __future__ import annotations

import numpy as np
import pytest

import problems
import reference
from otgraph.solvers import Goal, Screener, first_state, solve
from otgraph.solvers.sampling import Missing, missing_pairs

N = 900


def goal_of(cost, seed=0):
    mass = np.ones(cost.n)
    return Goal(eps=1.0, mass=mass, self_loops=False, tol=1e-6, max_iter=100, seed=seed)


def solution_of(cost):
    goal = goal_of(cost)
    return solve(Screener(cost), goal, first_state(cost, cost.neighbors(10), goal))


def missing_of(cost, solution, seed, **options):
    goal = goal_of(cost, seed)
    return missing_pairs(cost, goal, solution.u, solution.plan, **options)


@pytest.fixture
def solved(rng):
    """A solution on near cells only, in a space where these do not suffice."""
    X = problems.many_dimensions(rng, N)
    cost = problems.cost_of(X, exact=False, sizes=problems.FEW_CELLS)
    solution = solution_of(cost)
    C = reference.cost_matrix(X[cost.order])
    wanted = reference.pairs_below(C, solution.u).sum() // 2
    return cost, solution, wanted - len(solution.plan.indices) // 2


def test_truth_from_all_rows(solved):
    cost, solution, truth = solved
    assert solution.certificate.status == "exact_on_candidates"
    assert truth > 100
    missing = missing_of(cost, solution, seed=0, n_rows=N)
    assert missing.estimate == pytest.approx(truth)
    assert missing.bound > missing.estimate
    assert missing.pairs_checked <= cost.n_pairs


def test_sample_estimates_and_bounds(solved):
    """The bound holds in at least 90 of 100 samples; the mean of the estimates is the truth."""
    cost, solution, truth = solved
    found = [missing_of(cost, solution, seed) for seed in range(100)]
    assert np.mean([missing.bound >= truth for missing in found]) >= 0.9
    mean = np.mean([missing.estimate for missing in found])
    assert mean == pytest.approx(truth, rel=0.05)


def test_nothing_missing(rng):
    """Low dimension, every pair looked at: the estimate is zero, the bound is not."""
    cost = problems.cost_of(problems.random(rng, 300))
    missing = missing_of(cost, solution_of(cost), seed=0)
    assert missing.estimate == 0.0
    assert 0.0 < missing.bound < 10.0


def test_same_seed_same_estimate(solved):
    cost, solution, _ = solved
    assert isinstance(missing_of(cost, solution, 3), Missing)
    assert missing_of(cost, solution, 3) == missing_of(cost, solution, 3)
    assert missing_of(cost, solution, 3) != missing_of(cost, solution, 4)
