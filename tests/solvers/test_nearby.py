"""Points that are left behind and solved by themselves."""

from __future__ import annotations

import numpy as np
import pytest

import problems
from otgraph import quadratic_ot_graph
from otgraph._parallel import Workers
from otgraph.costs import as_cost
from otgraph.solvers import rounds
from otgraph.solvers.nearby import solved_nearby, worst_solved
from otgraph.solvers.newton import nearly_met, newton
from otgraph.solvers.state import Effort


@pytest.fixture
def clusters():
    """Clusters of uneven width with some far points, enough for cells."""
    rng = np.random.default_rng(0)
    centers, widths = rng.normal(size=(8, 10)), np.exp(rng.uniform(-3.0, -0.5, size=8))
    labels = rng.integers(8, size=9000)
    X = centers[labels] + widths[labels, None] * rng.normal(size=(9000, 10))
    X[:50] *= 10.0
    return X


def test_the_graph_is_the_same_within_the_tolerance(clusters, monkeypatch):
    usual = quadratic_ot_graph(clusters, mean_degree=10)
    monkeypatch.setattr(rounds, "MANY_POINTS", 100)
    left = quadratic_ot_graph(clusters, mean_degree=10)
    assert left.certificate.status == usual.certificate.status == "exact"
    at_eps = quadratic_ot_graph(clusters, usual.certificate.eps, min_degree=0)
    monkeypatch.setattr(rounds, "MANY_POINTS", 10**9)
    again = quadratic_ot_graph(clusters, usual.certificate.eps, min_degree=0)
    assert abs(at_eps.weights - again.weights).max() < 1e-6


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_few_points_that_are_off_are_solved_until_all_are_within_the_tolerance(clusters, tol):
    cost, mass = problems.cost_of(clusters[:3000]), np.full(3000, 1.0 / 3000)
    target = 1e-2 * mass / mass.mean()
    problem = cost.neighbors(20).restricted(np.full(3000, np.inf), cost.workers)
    solution = newton(problem, target, problem.start(target), tol=1e-9, max_iter=100).u
    u = solution.copy()
    u[np.argmin(problem.hessian(solution).degrees)] += 1e-2  # it and its few neighbors are off

    def errors(u):
        return np.abs(problem.evaluate(u).row_sums - target) / target

    assert errors(u).max() > 0.1
    assert np.quantile(errors(u), 0.99) <= tol
    effort = Effort()
    solved = worst_solved(problem, target, u, effort, cost.workers, tol=tol)
    assert errors(solved).max() <= tol
    assert effort.steps > 0


def test_rows_are_left_only_if_they_misplace_little():
    target = np.ones(1000)
    sums = target.copy()
    sums[:5] = 1.1
    assert nearly_met(sums, target, 0.05, 10)
    assert not nearly_met(sums, target, 0.05, 4)
    sums[0] = 10.0
    assert not nearly_met(sums, target, 0.05, 10)


def test_points_that_are_far_fewer_than_those_around_them_are_solved():
    n, workers = 5000, Workers(1)
    cost = as_cost(np.random.default_rng(0).normal(size=(n, 5)), workers=workers)
    problem, target = cost.restrict(cost.neighbors(20), np.full(n, np.inf)), np.full(n, 0.3)
    u = newton(problem, target, problem.start(target), tol=1e-6, max_iter=60).u
    target[:5] *= 1.05
    effort = Effort()
    solved = solved_nearby(problem, target, u, effort, workers, far=0.01, hops=3)
    moved, off = solved != u, np.abs(problem.evaluate(solved).row_sums - target)
    assert 500 < np.count_nonzero(moved) < n
    assert np.all(off[moved] <= 0.001 * target[moved])
    assert 0 < effort.steps < 10
