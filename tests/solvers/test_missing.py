"""The estimate of what approximate candidates lack, against the truth."""

from __future__ import annotations

import numpy as np
import pytest

import problems
import reference
from otgraph.costs import points
from otgraph.solvers import Screener, missing, missing_pairs, solve, start_on

N = 900


def approximate_solution(X, monkeypatch):
    """A solution on near cells only, in a space where these do not suffice."""
    monkeypatch.setattr(points, "MIN_CELL_POINTS", 100)
    monkeypatch.setattr(points, "PROBES", 3)
    monkeypatch.setattr(points, "SCREEN_PROBES", 3)
    cost, mass = problems.cost_of(X, exact=False), np.ones(len(X))
    start = start_on(cost, cost.neighbors(10), mass, self_loops=False)
    return cost, solve(
        Screener(cost), 1.0, mass, self_loops=False, tol=1e-6, max_steps=100, start=start
    )


@pytest.fixture
def solved(rng, monkeypatch):
    X = problems.many_dimensions(rng, N)
    cost, solution = approximate_solution(X, monkeypatch)
    C = reference.cost_matrix(X[cost.order])
    wanted = reference.pairs_below(C, solution.u).sum() // 2
    return cost, solution, wanted - len(solution.plan.indices) // 2


def test_truth_from_all_rows(solved, monkeypatch):
    cost, solution, truth = solved
    assert solution.certificate.status == "exact_on_candidates"
    assert truth > 100
    monkeypatch.setattr(missing, "SAMPLE_ROWS", N)
    estimate, bound, checked = missing_pairs(cost, solution, seed=0)
    assert estimate == pytest.approx(truth)
    assert bound > estimate
    assert checked <= cost.n_pairs


def test_sample_estimates_and_bounds(solved):
    """The bound holds in at least 90 of 100 samples; the mean of the estimates is the truth."""
    cost, solution, truth = solved
    found = np.array([missing_pairs(cost, solution, seed)[:2] for seed in range(100)])
    assert np.mean(found[:, 1] >= truth) >= 0.9
    assert found[:, 0].mean() == pytest.approx(truth, rel=0.05)


def test_nothing_missing(rng):
    """Low dimension, every pair looked at: the estimate is zero, the bound is not."""
    X = problems.random(rng, 300)
    cost, mass = problems.cost_of(X), np.ones(300)
    start = start_on(cost, cost.neighbors(10), mass, self_loops=False)
    solution = solve(
        Screener(cost), 1.0, mass, self_loops=False, tol=1e-6, max_steps=100, start=start
    )
    estimate, bound, _ = missing_pairs(cost, solution, seed=0)
    assert estimate == 0.0
    assert 0.0 < bound < 10.0


def test_same_seed_same_estimate(solved):
    cost, solution, _ = solved
    assert missing_pairs(cost, solution, 3) == missing_pairs(cost, solution, 3)
    assert missing_pairs(cost, solution, 3) != missing_pairs(cost, solution, 4)
