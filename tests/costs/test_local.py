"""A problem for some points is the whole problem with all other potentials fixed."""

from __future__ import annotations

import numpy as np
import pytest

import problems
import reference
from otgraph._parallel import Workers
from otgraph.costs.local import LocalProblem
from otgraph.solvers.newton import newton

N = 50


@pytest.fixture
def C(rng):
    C = reference.cost_matrix(rng.normal(size=(N, 2)))
    np.fill_diagonal(C, 1.5)
    return C


@pytest.fixture
def u(rng):
    return rng.normal(0.3, 0.1, size=N)


@pytest.fixture
def rows(rng):
    return np.sort(rng.choice(N, size=20, replace=False))


def test_row_sums_and_hessian_are_those_of_the_rows(C, u, rows, rng):
    local = LocalProblem.of(problems.restricted(C), rows, u, Workers(1))
    at, v = local.evaluate(u[rows]), rng.normal(size=len(rows))
    np.testing.assert_allclose(at.row_sums, reference.row_sums(C, u)[rows], rtol=1e-13)
    H = reference.hessian(C, u)[np.ix_(rows, rows)]
    np.testing.assert_allclose(local.hessian(u[rows]).product(v), H @ v, rtol=1e-12, atol=1e-12)


def test_square_sum_changes_as_that_of_the_whole_problem(C, u, rows, rng):
    whole, local = (
        problems.restricted(C),
        LocalProblem.of(problems.restricted(C), rows, u, Workers(1)),
    )
    moved = u.copy()
    moved[rows] += rng.normal(0.0, 0.05, size=len(rows))
    change = whole.evaluate(moved).square_sum - whole.evaluate(u).square_sum
    mine = local.evaluate(moved[rows]).square_sum - local.evaluate(u[rows]).square_sum
    assert mine == pytest.approx(change, rel=1e-10)


def test_newton_meets_the_targets_of_the_rows(C, u, rows):
    target = np.full(N, 0.4)
    local = LocalProblem.of(problems.restricted(C), rows, u, Workers(1))
    result = newton(local, target[rows], u[rows], tol=1e-10, max_iter=100)
    moved = u.copy()
    moved[rows] = result.u
    np.testing.assert_allclose(reference.row_sums(C, moved)[rows], 0.4, rtol=1e-9)


def test_a_point_without_partners_is_lifted(C, u, rows):
    C[rows[0]] = C[:, rows[0]] = np.inf
    C[rows[0], rows[0]] = 3.0
    u[rows[0]] = -5.0
    local = LocalProblem.of(problems.restricted(C), rows, u, Workers(1))
    result = newton(local, np.full(len(rows), 0.4), u[rows], tol=1e-10, max_iter=100)
    assert 2.0 * result.u[0] - 3.0 == pytest.approx(0.4)
