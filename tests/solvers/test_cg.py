"""Conjugate gradients against scipy's, also where the matrix is singular."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

import problems
from otgraph.solvers.cg import conjugate_gradients, residual_weights


def signless_laplacian(rng, n, *, bipartite=False):
    """diag(sigma 1) + sigma, as the Newton systems have it."""
    sigma = np.triu(rng.uniform(size=(n, n)) < 0.2, 1)
    if bipartite:
        sigma[: n // 2, : n // 2] = sigma[n // 2 :, n // 2 :] = False
    sigma = (sigma | sigma.T).astype(float)
    return sp.csr_matrix(np.diag(sigma.sum(axis=1)) + sigma)


@pytest.mark.parametrize("rtol", [1e-2, 1e-5, 1e-10])
def test_agrees_with_scipy(rng, rtol):
    A = signless_laplacian(rng, 80)
    b = rng.normal(size=80)
    x, products = conjugate_gradients(A.dot, A.diagonal(), b, rtol=rtol, max_products=500)
    residual = np.linalg.norm(A @ x - b) / np.linalg.norm(b)
    assert residual <= 1.1 * rtol  # the recurrence of the residual drifts by rounding
    theirs, _ = scipy.sparse.linalg.cg(A, b, rtol=rtol, M=sp.diags(1 / A.diagonal()))
    np.testing.assert_allclose(x, theirs, atol=1e-9)  # the same iterates, step for step
    assert 0 < products < 80


def test_singular_but_consistent(rng):
    """A bipartite component: constant on one side, minus that on the other, costs nothing."""
    A = signless_laplacian(rng, 60, bipartite=True)
    kernel = np.repeat([1.0, -1.0], 30)
    assert np.abs(A @ kernel).max() == 0
    b = A @ rng.normal(size=60)
    x, _ = conjugate_gradients(A.dot, A.diagonal(), b, rtol=1e-10, max_products=500)
    np.testing.assert_allclose(A @ x, b, atol=1e-8)


def test_inconsistent_ends_with_finite_numbers(rng):
    A = signless_laplacian(rng, 60, bipartite=True)
    b = np.repeat([1.0, -1.0], 30)  # in the kernel: there is no solution
    x, products = conjugate_gradients(A.dot, A.diagonal(), b, rtol=1e-10, max_products=200)
    assert np.all(np.isfinite(x))
    assert products <= 200


def test_nothing_to_do():
    x, products = conjugate_gradients(
        lambda v: v, np.ones(4), np.zeros(4), rtol=0.1, max_products=9
    )
    assert products == 0
    np.testing.assert_array_equal(x, 0.0)


def test_stops_at_the_limit(rng):
    A = signless_laplacian(rng, 80)
    _, products = conjugate_gradients(
        A.dot, A.diagonal(), rng.normal(size=80), rtol=1e-14, max_products=3
    )
    assert products == 3


def test_units_make_a_small_row_count(rng):
    """A row a million times lighter than the others is solved to the same relative residual."""
    A = signless_laplacian(rng, 80)
    units = np.ones(80)
    units[7] = 1e-6
    b = units * rng.normal(size=80)
    options = {"rtol": 1e-3, "max_products": 500}
    plain, few = conjugate_gradients(A.dot, A.diagonal(), b, **options)
    scaled, more = conjugate_gradients(
        A.dot, A.diagonal(), b, weights=residual_weights(units), **options
    )
    residual = np.abs(A @ scaled - b) / units
    assert np.linalg.norm(residual) <= 1.01e-3 * np.linalg.norm(b / units)
    assert np.abs(A @ plain - b)[7] / units[7] > residual[7]
    assert more > few


@pytest.mark.parametrize("rtol", [0.1, 1e-8])
def test_one_call_gives_the_same_bits(rng, rtol):
    """Small problems are solved in one call, large ones step by step, with the same result."""
    cost = problems.cost_of(rng.normal(size=(70, 4)))
    problem = cost.restrict(cost.neighbors(12), np.full(70, np.inf))
    hessian = problem.hessian(np.full(70, 0.3))
    rhs, units, shift = rng.normal(size=70), rng.uniform(0.1, 1.0, size=70), np.full(70, 0.01)
    x, products = conjugate_gradients(
        lambda v: hessian.product(v) + shift * v,
        hessian.diagonal + shift, rhs, rtol=rtol, max_products=99,
        weights=residual_weights(units),
    )  # fmt: skip
    again, count = hessian.solve(shift, rhs, residual_weights(units), rtol, 99)
    assert count == products > 0
    np.testing.assert_array_equal(again, x)
