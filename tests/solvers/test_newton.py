"""Newton on fixed candidates reaches the marginals, and the optimum of a convex function."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components

import problems
import reference
from otgraph._parallel import Workers
from otgraph.costs import RestrictedProblem, restricted
from otgraph.costs.interface import marginal_error
from otgraph.costs.pairs import symmetric_pairs
from otgraph.costs.restricted import Hessian
from otgraph.solvers.newton import newton
from otgraph.solvers.state import start_potentials

N = 80


def problem_of(C):
    i, j = np.triu_indices(len(C), 1)
    allowed = np.isfinite(C[i, j])
    chunk = (i[allowed].astype(np.int32), j[allowed].astype(np.int32), C[i, j][allowed])
    workers = Workers(1)
    return RestrictedProblem(symmetric_pairs(len(C), [chunk], workers), np.diag(C).copy(), workers)


def test_marginal_error_is_relative():
    assert marginal_error(np.array([1.0, 2.1]), np.array([1.0, 2.0])) == pytest.approx(0.05)


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("eps", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("start", ["above", "zero", "far"])
def test_reaches_the_marginals_from_anywhere(rng, eps, self_loops, start):
    C = reference.with_diagonal(
        reference.cost_matrix(problems.random(rng, N)), self_loops=self_loops
    )
    problem, target = problem_of(C), eps * rng.uniform(0.5, 1.5, size=N)
    u0 = {
        "above": lambda: start_potentials(problem, target),
        "zero": lambda: np.zeros(N),
        "far": lambda: rng.normal(5.0, 3.0, size=N),
    }[start]()
    result = newton(problem, target, u0, tol=1e-9, max_iter=60)
    assert result.error <= 1e-9
    np.testing.assert_allclose(reference.row_sums(C, result.u), target, rtol=1e-8)
    assert 0 < result.n_steps <= 60
    assert result.n_products >= result.n_steps
    assert len(result.errors) == result.n_steps + 1
    start_error = marginal_error(reference.row_sums(C, u0), target)
    assert result.errors[0] == pytest.approx(start_error, rel=1e-9)
    assert result.errors[-1] == result.error


def test_minimizes_what_it_says(rng):
    """A quasi-Newton method of scipy on the same function finds no lower value."""
    C = reference.with_diagonal(reference.cost_matrix(problems.random(rng, 25)), self_loops=False)
    target = rng.uniform(0.2, 1.0, size=25)
    result = newton(problem_of(C), target, np.zeros(25), tol=1e-10, max_iter=60)
    theirs = minimize(
        lambda u: reference.newton_objective(C, u, target),
        np.zeros(25),
        jac=lambda u: reference.row_sums(C, u) - target,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    ours = reference.newton_objective(C, result.u, target)
    assert ours == pytest.approx(theirs.fun, abs=1e-9)
    np.testing.assert_allclose(
        reference.plan(C, result.u, 1.0), reference.plan(C, theirs.x, 1.0), atol=1e-6
    )


def test_converges_quadratically(rng):
    """From a loose solution a handful of steps reach the last digits."""
    C = reference.with_diagonal(reference.cost_matrix(problems.random(rng, N)), self_loops=False)
    problem, target = problem_of(C), np.ones(N)
    loose = newton(problem, target, start_potentials(problem, target), tol=0.05, max_iter=50)
    tight = newton(problem, target, loose.u, tol=1e-10, max_iter=50)
    assert tight.n_steps <= 5


def test_start_lies_above(rng):
    """Newton steps from above are full steps, which is why the start lies there."""
    C = reference.with_diagonal(reference.cost_matrix(problems.random(rng, N)), self_loops=False)
    target = rng.uniform(0.5, 1.5, size=N)
    u = start_potentials(problem_of(C), target)
    assert np.all(reference.row_sums(C, u) >= target * (1 - 1e-12))


@pytest.mark.parametrize("eps", [0.02, 0.3, 5.0])
def test_steps_in_one_call_are_the_same(rng, monkeypatch, eps):
    """With few points the first steps are one call of a kernel."""
    C = reference.cost_matrix(rng.normal(size=(40, 3)))
    np.fill_diagonal(C, np.inf)
    target, seen, found = np.full(40, eps), [], []
    start = rng.uniform(0.0, 1.0, size=40)
    calls = []
    together = restricted.full_steps
    monkeypatch.setattr(restricted, "full_steps", lambda *args: calls.append(1) or together(*args))
    for most in (restricted.FEWEST_ROWS, 0):
        monkeypatch.setattr(restricted, "FEWEST_ROWS", most)
        seen.append([])
        result = newton(
            problem_of(C), target, start, tol=1e-9, max_iter=60, on_step=seen[-1].append
        )
        found.append(result)
    assert len(calls) == 1
    one, other = found
    np.testing.assert_array_equal(one.u, other.u)
    assert one.errors == other.errors == (one.errors[0], *seen[0])
    assert seen[0] == seen[1]
    assert (one.n_steps, one.reason) == (other.n_steps, other.reason)


def test_stops_at_max_steps(rng):
    C = reference.with_diagonal(reference.cost_matrix(problems.random(rng, N)), self_loops=False)
    result = newton(problem_of(C), np.full(N, 0.01), np.full(N, 3.0), tol=1e-12, max_iter=2)
    assert result.n_steps == 2
    assert result.error > 1e-12


def test_solved_start_takes_no_step(rng):
    C = reference.with_diagonal(reference.cost_matrix(problems.random(rng, N)), self_loops=False)
    problem, target = problem_of(C), np.ones(N)
    u = newton(problem, target, np.zeros(N), tol=1e-9, max_iter=60).u
    again = newton(problem, target, u, tol=1e-8, max_iter=60)
    assert (again.n_steps, again.n_products) == (0, 0)
    np.testing.assert_array_equal(again.u, u)


def test_bipartite_candidates(rng):
    """The Hessian is singular at every u; the plan is unique all the same."""
    C = reference.cost_matrix(problems.random(rng, 40))
    C[:20, :20] = C[20:, 20:] = np.inf
    target = np.ones(40)
    results = [
        newton(problem_of(C), target, u0, tol=1e-9, max_iter=100)
        for u0 in (np.zeros(40), np.repeat([1.0, -1.0], 20), np.full(40, 2.0))
    ]
    for result in results:
        assert result.error <= 1e-9
        assert np.all(np.isfinite(result.u))
        np.testing.assert_allclose(
            reference.plan(C, result.u, 1.0), reference.plan(C, results[0].u, 1.0), atol=1e-7
        )


def test_infeasible_candidates_end(rng):
    """A star cannot carry unit masses: u would run off for ever."""
    C = np.full((6, 6), np.inf)
    C[0, 1:] = C[1:, 0] = 0.1
    result = newton(problem_of(C), np.ones(6), np.zeros(6), tol=1e-6, max_iter=40)
    assert result.error > 1e-6
    assert result.n_steps <= 40
    assert np.all(np.isfinite(result.u))


def far_pairs(n_pairs):
    """A ring of close points, and pairs of points whose partners elsewhere are far away."""
    n, n_ring = 2 * n_pairs + 20, 20
    C = np.full((n, n), np.inf)
    ring = np.arange(n_ring)
    for step in (1, 2):
        C[ring, (ring + step) % n_ring] = C[(ring + step) % n_ring, ring] = 0.1
    for k in range(n_pairs):
        a, b = n_ring + 2 * k, n_ring + 2 * k + 1
        C[a, b] = C[b, a] = 1.0
        for end, place, cost in ((a, k % n_ring, 40.0 + k), (b, (k + 7) % n_ring, 60.0 + k)):
            C[end, place] = C[place, end] = cost
    target = np.full(n, 0.5)
    target[n_ring::2] = 0.3  # unlike those of their only near partners
    return C, target


def test_parts_of_the_graph_do_not_wait_for_each_other(monkeypatch):
    C, target = far_pairs(12)
    start = np.where(np.arange(len(C)) < 20, 0.2, 0.75)
    result = newton(problem_of(C), target, start, tol=1e-9, max_iter=200)
    np.testing.assert_allclose(reference.row_sums(C, result.u), target, rtol=1e-8)
    monkeypatch.setattr(Hessian, "parts", lambda _: None)
    together = newton(problem_of(C), target, start, tol=1e-9, max_iter=200)
    np.testing.assert_allclose(result.u, together.u, atol=1e-6)
    assert 2 * result.n_steps < together.n_steps


def test_parts_are_those_that_no_active_pair_connects(rng):
    C = reference.with_diagonal(reference.cost_matrix(rng.normal(size=(N, 3))), self_loops=False)
    u = rng.uniform(0.0, 0.15, size=N)
    active = (u[:, None] + u > C) & ~np.eye(N, dtype=bool)
    count, labels = connected_components(active, directed=False)
    assert 1 < count < N
    np.testing.assert_array_equal(problem_of(C).hessian(u).parts(), labels)


def test_rows_that_are_left_do_not_hold_up_the_others(rng):
    C = reference.with_diagonal(reference.cost_matrix(problems.random(rng, N)), self_loops=False)
    problem, target = problem_of(C), 0.05 * rng.uniform(0.5, 1.5, size=N)
    problem.full_steps = lambda *_: None  # which goes on to the tolerance
    start = start_potentials(problem, target)
    whole = newton(problem, target, start, tol=1e-6, max_iter=100)
    most = newton(problem, target, start, tol=1e-6, max_iter=100, left=N - 1)
    off = np.abs(problem.evaluate(most.u).row_sums - target) > 1e-6 * target
    assert 0 < np.count_nonzero(off) <= N - 1
    assert most.n_steps < whole.n_steps
    assert whole.error <= 1e-6
