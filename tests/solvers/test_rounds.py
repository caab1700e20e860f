"""The rounds of a solve: candidates, Newton, screen, certificate."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import problems
import reference
from otgraph.exceptions import InfeasibleError
from otgraph.solvers import Goal, Screener, first_state, solve
from otgraph.solvers.certify import duality_gap

N = 150


def goal_of(cost, eps=1.0, *, mass=None, self_loops=False, tol=1e-8, max_iter=200):
    mass = np.ones(cost.n) if mass is None else mass
    return Goal(eps=eps, mass=mass, self_loops=self_loops, tol=tol, max_iter=max_iter)


def solved(cost, eps=1.0, *, k=10, start=None, **options):
    goal = goal_of(cost, eps, **options)
    if start is None:
        start = first_state(cost, cost.neighbors(k), goal)
    return solve(Screener(cost), goal, start)


def dense_plan(solution):
    plan, n = solution.plan, len(solution.u)
    W = sp.csr_matrix((plan.weights, plan.indices, plan.indptr), shape=(n, n)).toarray()
    return W + np.diag(plan.loops)


@pytest.mark.parametrize("name", problems.CLOUDS)
@pytest.mark.parametrize("self_loops", [False, True])
def test_optimal_whatever_the_cloud(rng, name, self_loops):
    X = problems.CLOUDS[name](rng, N)
    C = reference.with_diagonal(reference.cost_matrix(X), self_loops=self_loops)
    solution = solved(problems.cost_of(X), self_loops=self_loops)
    assert solution.certificate.status == "exact"
    W = dense_plan(solution)
    np.testing.assert_allclose(W.sum(axis=1), 1.0, atol=1e-7)
    np.testing.assert_allclose(W, reference.plan(C, solution.u, 1.0), atol=1e-9)
    dual = reference.dual_value(C, solution.u, 1.0, np.ones(N))
    assert reference.primal_value(C, W, 1.0) == pytest.approx(dual, rel=1e-7)


def test_first_candidates_do_not_matter(rng):
    """One neighbor each cannot carry the plan: the loop finds what is missing."""
    cost = problems.cost_of(problems.many_dimensions(rng, N))
    few, many = solved(cost, k=1), solved(cost, k=N - 1)
    np.testing.assert_allclose(dense_plan(few), dense_plan(many), atol=1e-7)
    assert few.certificate.status == many.certificate.status == "exact"
    assert few.certificate.n_screens >= 1


def test_hostile_first_candidates(rng):
    """A star and a lonely point to begin with: infeasible as they stand."""
    cost = problems.cost_of(problems.random(rng, N))
    star = np.zeros((N, N))
    star[0, 1 : N - 1] = star[1 : N - 1, 0] = 1.0
    pairs = problems.cost_of(sp.csr_matrix(star), metric="precomputed").neighbors(1)
    start = first_state(cost, pairs, goal_of(cost))
    solution = solved(cost, start=start)
    assert solution.certificate.status == "exact"
    np.testing.assert_allclose(dense_plan(solution), dense_plan(solved(cost)), atol=1e-7)


@pytest.mark.parametrize("start_value", [0.0, 100.0, -100.0])
def test_start_does_not_matter(rng, start_value):
    cost = problems.cost_of(problems.random(rng, N))
    start = first_state(cost, cost.neighbors(10), goal_of(cost), u0=np.full(N, start_value))
    solution = solved(cost, start=start)
    assert solution.certificate.status == "exact"
    np.testing.assert_allclose(dense_plan(solution), dense_plan(solved(cost)), atol=1e-7)


def test_warm_start_saves_steps(rng):
    cost = problems.cost_of(problems.random(rng, N))
    cold = solved(cost, 1.0)
    warm = solved(cost, 1.01, start=cold.state)
    assert warm.certificate.n_steps <= 4
    assert warm.certificate.status == "exact"


def test_certificate_counts(rng):
    cost = problems.cost_of(problems.random(rng, N))
    screener, goal = Screener(cost), goal_of(cost)
    first = solve(screener, goal, first_state(cost, cost.neighbors(10), goal))
    second = solve(screener, goal.at(0.5), first.state)
    assert first.certificate.n_screens >= 1
    assert second.certificate.n_screens == 0  # the pairs of the larger eps contain these
    assert second.certificate.status == "exact"
    for solution, eps in ((first, 1.0), (second, 0.5)):
        assert solution.certificate.eps == eps
        assert solution.certificate.pairs_checked == cost.n_pairs
        assert solution.certificate.violations == 0
        row_sums = dense_plan(solution).sum(axis=1)
        error = np.abs(row_sums - 1.0).max()
        assert solution.certificate.marginal_error == pytest.approx(error, abs=1e-12)


def test_violations_are_counted_when_time_runs_out(rng):
    """One step from poor candidates: what the potentials would use and lack is counted."""
    X = problems.many_dimensions(rng, N)
    cost, C = problems.cost_of(X), reference.cost_matrix(X)
    solution = solved(cost, 5.0, k=2, max_iter=1)
    assert solution.certificate.status == "not_converged"
    assert solution.certificate.n_steps == 1
    used = dense_plan(solution) > 0
    np.fill_diagonal(used, False)
    wanted = reference.pairs_below(C, solution.u)
    assert solution.certificate.violations == (wanted & ~used).sum() // 2 > 0
    assert solution.certificate.pairs_checked == cost.n_pairs


def test_gap_bounds_the_distance_to_the_optimum(rng):
    """Away from the solution the gap is positive and above the true distance in value."""
    X = problems.random(rng, N)
    cost, C = (
        problems.cost_of(X),
        reference.with_diagonal(reference.cost_matrix(X), self_loops=False),
    )
    solution, mass = solved(cost, tol=1e-12), np.ones(N)
    best = reference.dual_value(C, solution.u, 1.0, mass)
    assert abs(solution.certificate.duality_gap) <= 1e-12
    for size in (1e-6, 1e-4, 1e-3):
        u = solution.u + size * rng.normal(size=N)
        gap = duality_gap(solution.state.problem.plan(u, 1.0), u, goal_of(cost))
        lost = (best - reference.dual_value(C, u, 1.0, mass)) / best
        assert lost > 0
        assert gap >= 0.99 * lost - 1e-13


def test_gap_is_infinite_without_a_feasible_plan(rng):
    cost = problems.cost_of(problems.random(rng, N))
    solution = solved(cost)
    u = solution.u - 10.0
    assert duality_gap(solution.state.problem.plan(u, 1.0), u, goal_of(cost)) == np.inf


def candidates(pairs, n, cost=1.0):
    i, j = np.array(pairs).T
    matrix = np.zeros((n, n))
    matrix[i, j] = matrix[j, i] = cost
    return problems.cost_of(sp.csr_matrix(matrix), metric="precomputed")


def test_star_names_its_points():
    """The leaves want to give more than the hub can take."""
    cost = candidates([(0, 1), (0, 2), (0, 3), (0, 4)], 5)
    with pytest.raises(InfeasibleError, match=r"points 1, 2, 3, 4\)"):
        solved(cost)


def test_lonely_point_is_named():
    cost = candidates([(0, 1), (1, 2), (0, 2)], 4)
    with pytest.raises(InfeasibleError, match=r"1 point\(s\).*points 3\)"):
        solved(cost)


def test_path_of_three_points_is_infeasible():
    """The middle one would have to take two units."""
    with pytest.raises(InfeasibleError, match="points 0, 2"):
        solved(candidates([(0, 1), (1, 2)], 3))


def test_masses_decide_whether_a_star_is_feasible():
    cost = candidates([(0, 1), (0, 2), (0, 3)], 4)
    W = dense_plan(solved(cost, mass=np.array([3.0, 1.0, 1.0, 1.0])))
    np.testing.assert_allclose(W[0], [0.0, 1.0, 1.0, 1.0], atol=1e-7)
    with pytest.raises(InfeasibleError, match="points"):
        solved(cost, mass=np.array([2.0, 1.0, 1.0, 1.0]))
    with pytest.raises(InfeasibleError, match=r"points 0\)"):
        solved(cost, mass=np.array([4.0, 1.0, 1.0, 1.0]))


def test_random_masses_on_a_sparse_graph(rng):
    """A cycle of even length carries only masses that alternate to the same sum."""
    cost = candidates([(i, (i + 1) % 6) for i in range(6)], 6)
    with pytest.raises(InfeasibleError):
        solved(cost, mass=rng.uniform(0.5, 1.5, size=6))
    x = rng.uniform(0.2, 1.0, size=6)  # weights of the edges: masses made from them are fine
    solution = solved(cost, mass=x + np.roll(x, 1))
    assert solution.certificate.status == "exact_on_candidates"
    np.testing.assert_allclose(dense_plan(solution).sum(axis=1), x + np.roll(x, 1), rtol=1e-6)


def test_self_loops_make_everything_feasible():
    cost = candidates([(0, 1), (0, 2), (0, 3)], 5)
    solution = solved(cost, self_loops=True)
    np.testing.assert_allclose(dense_plan(solution).sum(axis=1), 1.0, atol=1e-7)


def test_many_points_are_not_all_named():
    cost = candidates([(0, j) for j in range(1, 40)], 40)
    with pytest.raises(InfeasibleError, match=r"39 point\(s\).* and 29 more\)"):
        solved(cost)
