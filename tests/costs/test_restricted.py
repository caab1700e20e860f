"""A problem on candidates equals the dense problem in which all other pairs are forbidden."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import problems
import reference
from otgraph._parallel import Workers
from otgraph.costs import RestrictedProblem
from otgraph.costs.pairs import symmetric_pairs
from otgraph.costs.restricted import BLOCK_ROWS

N = 60


@pytest.fixture(params=["hollow", "loops", "priced"])
def dense(request, rng):
    """Costs of all pairs: infinite where there is no candidate, and a kind of diagonal."""
    C = reference.cost_matrix(rng.normal(size=(N, 2)))
    forbidden = np.triu(rng.uniform(size=C.shape) < 0.5, 1)
    C[forbidden | forbidden.T] = np.inf
    diagonal = {"hollow": np.inf, "loops": 0.0, "priced": rng.uniform(0.1, 1.0, size=N)}
    C[np.arange(N), np.arange(N)] = diagonal[request.param]
    return C


@pytest.fixture
def u(rng):
    return rng.normal(0.2, 0.1, size=N)


def test_evaluate(dense, u):
    problem = problems.restricted(dense)
    at = problem.evaluate(u)
    np.testing.assert_allclose(at.row_sums, reference.row_sums(dense, u), rtol=1e-13, atol=1e-15)
    assert at.square_sum == pytest.approx(reference.square_sum(dense, u), rel=1e-13)
    assert problem.n_pairs == np.isfinite(np.triu(dense, 1)).sum() - N * (N + 1) // 2


def test_hessian(dense, u, rng):
    hessian, v = problems.restricted(dense).hessian(u), rng.normal(size=N)
    H = reference.hessian(dense, u)
    np.testing.assert_allclose(hessian.product(v), H @ v, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(hessian.diagonal, np.diag(H))
    np.testing.assert_array_equal(hessian.degrees, (u[:, None] + u > dense).sum(axis=1))


def test_late_plan_has_the_same_bits(dense, u, rng):
    """Its sums, and its entries when they are asked for, also if candidates were added since."""
    problem, eps, w = problems.restricted(dense), 0.5, rng.normal(size=N)
    plan, late = problem.plan(u, eps), problem.late_plan(u, eps)
    np.testing.assert_array_equal(late.degrees, plan.degrees)
    np.testing.assert_array_equal(late.row_sums, plan.row_sums)
    assert late.n_entries == plan.n_entries
    assert late.positive == plan.positive
    assert late.primal_value(np.zeros(N), eps) == plan.primal_value(np.zeros(N), eps)
    assert late.primal_value(w, eps) == plan.primal_value(w, eps)
    assert late.square_sum == plan.square_sum
    i, j = np.triu_indices(N, 1)
    others = i.astype(np.int32), j.astype(np.int32), np.zeros(len(i))
    problem.pairs.overlaid(symmetric_pairs(N, [others], Workers(1)), Workers(1))
    problem.release()
    for name in ("indptr", "indices", "weights", "costs", "loops"):
        np.testing.assert_array_equal(getattr(late.recipe.made(), name), getattr(plan, name))
    np.testing.assert_array_equal(late.product(w, w), plan.product(w, w))
    np.testing.assert_array_equal(late.component_labels(), plan.component_labels())


def test_hessian_is_the_derivative_of_the_row_sums(dense, u, rng):
    problem, v, h = problems.restricted(dense), rng.normal(size=N), 1e-7
    difference = problem.evaluate(u + h * v).row_sums - problem.evaluate(u - h * v).row_sums
    np.testing.assert_allclose(difference / (2 * h), problem.hessian(u).product(v), atol=1e-5)


def test_plan(dense, u, rng):
    eps, plan = 0.5, problems.restricted(dense).plan(u, 0.5)
    W = reference.plan(dense, u, eps)
    off = W - np.diag(np.diag(W))
    rows = np.repeat(np.arange(N), np.diff(plan.indptr))
    assert np.all(plan.weights > 0)
    assert len(plan.weights) == np.count_nonzero(off)
    np.testing.assert_allclose(plan.weights, off[rows, plan.indices], rtol=1e-13)
    np.testing.assert_array_equal(plan.costs, dense[rows, plan.indices])
    np.testing.assert_allclose(plan.loops, np.diag(W), rtol=1e-13)
    np.testing.assert_allclose(plan.row_sums, W.sum(axis=1), rtol=1e-13)
    v = rng.normal(size=N)
    product = plan.product(v, plan.row_sums + plan.loops)
    np.testing.assert_allclose(product, W.sum(axis=1) * v + W @ v, rtol=1e-12, atol=1e-13)


def test_plan_is_symmetric_to_the_bit(dense, u):
    plan = problems.restricted(dense).plan(u, 0.3)
    W = np.zeros((N, N))
    W[np.repeat(np.arange(N), np.diff(plan.indptr)), plan.indices] = plan.weights
    assert np.array_equal(W, W.T)


def test_primal_value(dense, u, rng):
    eps, w = 0.5, rng.uniform(-0.2, 0.2, size=N)
    W = reference.plan(dense, u, eps) * (1.0 + w[:, None] + w)
    value = problems.restricted(dense).plan(u, eps).primal_value(w, eps)
    assert value == pytest.approx(reference.primal_value(dense, W, eps), rel=1e-12)


def test_start_solves_every_row_by_itself(dense, rng):
    target = rng.uniform(0.1, 1.0, size=N)
    u = problems.restricted(dense).start(target)
    for i in range(N):
        assert 2.0 * u[i] == pytest.approx(reference.solve_row(dense[i], target[i]), rel=1e-12)


def test_lift_meets_the_target_of_a_row_alone(rng):
    C = reference.with_diagonal(reference.cost_matrix(rng.normal(size=(N, 2))), self_loops=False)
    u, target = rng.normal(0.2, 0.1, size=N), rng.uniform(0.1, 1.0, size=N)
    rows = np.array([3, 17, 40])
    lifted = problems.restricted(C).lift(u, rows, target)
    for i, t in zip(rows, lifted, strict=True):
        assert np.maximum(t + u - C[i], 0.0).sum() == pytest.approx(target[i], rel=1e-12)


def test_largest_costs(dense):
    largest = problems.restricted(dense).largest_costs()
    for i in range(N):
        costs = np.delete(dense[i], i)
        assert largest[i] == costs[np.isfinite(costs)].max()


def test_rows_without_candidates():
    C = np.full((3, 3), np.inf)
    C[0, 1] = C[1, 0] = 0.5
    problem, u = problems.restricted(C), np.array([0.4, 0.3, 9.0])
    np.testing.assert_array_equal(problem.largest_costs(), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(problem.evaluate(u).row_sums, [0.2, 0.2, 0.0])
    np.testing.assert_allclose(problem.plan(u, 1.0).row_sums, [0.2, 0.2, 0.0])
    np.testing.assert_array_equal(problem.hessian(u).degrees, [1.0, 1.0, 0.0])


def test_threads_share_rows_without_changing_a_bit(rng):
    """Three blocks of rows, the last one shorter."""
    n = 2 * BLOCK_ROWS + 100
    cost = problems.cost_of(problems.random(rng, n))
    pairs, diagonal = cost.neighbors(8), rng.uniform(0.1, 1.0, size=n)
    u, v = rng.normal(0.2, 0.1, size=n), rng.normal(size=n)
    alone, shared = (RestrictedProblem(pairs, diagonal, Workers(jobs)) for jobs in (1, 3))
    np.testing.assert_array_equal(shared.evaluate(u).row_sums, alone.evaluate(u).row_sums)
    assert shared.evaluate(u).square_sum == alone.evaluate(u).square_sum
    np.testing.assert_array_equal(shared.hessian(u).product(v), alone.hessian(u).product(v))
    np.testing.assert_array_equal(shared.plan(u, 0.3).weights, alone.plan(u, 0.3).weights)


def test_hessian_and_plan_travel(dense, u):
    """A cluster keeps both on its workers, and moves them when it must."""
    problem = problems.restricted(dense, n_jobs=2)
    hessian, plan = problem.hessian(u), problem.plan(u, 0.5)
    copy = pickle.loads(pickle.dumps(hessian))
    np.testing.assert_array_equal(copy.product(u), hessian.product(u))
    copy = pickle.loads(pickle.dumps(plan))
    np.testing.assert_array_equal(copy.scaled_sums(u), plan.scaled_sums(u))


def test_problems_on_the_same_pairs_share_one_list(rng):
    """Evaluating one of them does not change what the other says."""
    C = reference.cost_matrix(rng.normal(size=(30, 2)))
    i, j = np.triu_indices(30, 1)
    chunk = (i.astype(np.int32), j.astype(np.int32), C[i, j])
    problem = symmetric_pairs(30, [chunk], Workers(1)).restricted(np.full(30, np.inf), Workers(1))
    other = problem.with_diagonal(np.zeros(30))
    low, high = np.full(30, 0.1), np.full(30, 0.4)
    expected = problem.evaluate(low).row_sums.copy(), problem.hessian(low).degrees.copy()
    assert np.all(other.evaluate(high).row_sums > expected[0])
    np.testing.assert_array_equal(problem.hessian(low).degrees, expected[1])
    problem.forget()
    np.testing.assert_array_equal(problem.evaluate(low).row_sums, expected[0])
    problem.release()
    with pytest.raises(AssertionError, match="released"):
        other.evaluate(low)


def test_entries_are_set_where_the_plan_has_room(rng):
    i, j = np.triu_indices(60, 1)
    there = rng.random(len(i)) < 0.5
    flows = np.flatnonzero(rng.random(len(i)) < 0.01)
    listed = [
        symmetric_pairs(60, [(i[at].astype(np.int32), j[at].astype(np.int32), values)], Workers(1))
        for at, values in (
            (there, np.ones(there.sum())),
            (flows, 5.0 + np.arange(len(flows))),
            (flows, 9.0 + np.arange(len(flows))),
        )
    ]
    pairs, weights, costs = listed
    plan = pairs.restricted(np.full(60, np.inf), Workers(1)).plan(np.ones(60), 0.5)
    # What travels has no room, and is merged into new arrays.
    expected = pickle.loads(pickle.dumps(plan)).with_entries(weights, costs)
    found = plan.with_entries(weights, costs)
    assert plan.room is not None
    assert np.shares_memory(found.weights, plan.room[1])
    for name in ("indptr", "indices", "weights", "costs"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert len(found.weights) > len(pairs.indices)
