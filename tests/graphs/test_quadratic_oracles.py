"""The plan against independent solvers of the same problem.

RegOT and POT solve the transport problem between two copies of the points, without symmetry;
their eps is ours (half of eps times the sum of squares). A forbidden diagonal is a huge one.
"""

from __future__ import annotations

import numpy as np
import ot
import pytest
import regot

import reference
from algorithm1 import algorithm1
from otgraph import quadratic_ot_graph

FORBIDDEN = 1e3  # costs have mean 1
TOL = 1e-9


def problem(rng, n, *, masses):
    X = rng.normal(size=(n, 3)) * np.array([1.0, 2.0, 0.2])
    mass = rng.uniform(0.5, 1.5, size=n) if masses == "random" else np.ones(n)
    return X, reference.cost_matrix(X), mass


def ours(X, C, eps, mass, self_loops):
    graph = quadratic_ot_graph(X, eps, mass=mass, self_loops=self_loops, tol=TOL)
    reference.assert_optimal(graph, C, eps, mass=mass, self_loops=self_loops, tol=TOL)
    return graph.weights.toarray()


@pytest.fixture(params=[False, True], ids=["hollow", "loops"])
def self_loops(request):
    return request.param


@pytest.fixture(params=["uniform", "random"])
def masses(request):
    return request.param


@pytest.mark.parametrize(
    ("n", "method"), [(60, "qrot_grssn"), (60, "qrot_assn"), (300, "qrot_assn")]
)
@pytest.mark.parametrize("eps", [0.01, 0.1, 1.0, 10.0, 100.0])
def test_regot(rng, n, eps, method, self_loops, masses):
    X, C, mass = problem(rng, n, masses=masses)
    M = C if self_loops else C + FORBIDDEN * np.eye(n)
    theirs = getattr(regot, method)(M, mass, mass, eps, tol=1e-10, max_iter=2000).plan
    accuracy = np.abs(theirs.sum(axis=1) - mass).max()
    assert accuracy < 1e-6  # or the oracle has failed
    W = ours(X, C, eps, mass, self_loops)
    assert np.abs(W - theirs).max() <= 10 * (TOL + accuracy) + 1e-8


@pytest.mark.filterwarnings(
    "ignore:scipy.optimize:DeprecationWarning",  # options that POT passes,
    "ignore:Unknown solver options:scipy.optimize.OptimizeWarning",  # unknown since scipy 1.18
)
@pytest.mark.parametrize("eps", [0.1, 1.0, 10.0])
def test_pot(rng, eps, self_loops, masses):
    X, C, mass = problem(rng, 150, masses=masses)
    M = C if self_loops else C + FORBIDDEN * np.eye(len(C))
    theirs = ot.smooth.smooth_ot_dual(
        mass, mass, M, eps, reg_type="l2", stopThr=1e-12, numItermax=20_000
    )
    accuracy = np.abs(theirs.sum(axis=1) - mass).max()
    assert accuracy < 1e-3  # a first-order method
    W = ours(X, C, eps, mass, self_loops)
    assert np.abs(W - theirs).max() <= 10 * (TOL + accuracy)


@pytest.mark.parametrize("n", [4, 5, 12, 30])
@pytest.mark.parametrize("eps", [0.05, 0.5, 5.0, 50.0])
def test_generic_quadratic_program(rng, n, eps, self_loops, masses):
    X, C, mass = problem(rng, n, masses=masses)
    theirs = reference.optimal_plan(C, eps, mass, self_loops=self_loops)
    np.testing.assert_allclose(theirs.sum(axis=1), mass, rtol=1e-8)
    W = ours(X, C, eps, mass, self_loops)
    assert np.abs(W - theirs).max() <= 1e-7


@pytest.mark.parametrize("n", [3, 8, 40, 90])
@pytest.mark.parametrize("eps", [0.02, 0.3, 1.0, 20.0])
def test_algorithm_of_the_paper(rng, n, eps, self_loops):
    X, C, mass = problem(rng, n, masses="uniform")
    theirs = algorithm1(reference.with_diagonal(C, self_loops=self_loops), eps)
    accuracy = np.abs(theirs.sum(axis=1) - 1).max()
    assert accuracy < 1e-7  # or the oracle has failed
    W = ours(X, C, eps, mass, self_loops)
    assert np.abs(W - theirs).max() <= 10 * (TOL + accuracy) + 1e-8


def test_first_term_of_the_objective_alone(rng):
    """As eps vanishes the plan becomes an optimal assignment of unregularized transport."""
    X = rng.normal(size=(40, 2))
    C = reference.cost_matrix(X)
    cheapest = ot.emd2(np.ones(40) / 40, np.ones(40) / 40, C + FORBIDDEN * np.eye(40)) * 40
    W = quadratic_ot_graph(X, 1e-4).weights.toarray()
    assert (C * W).sum() == pytest.approx(cheapest, rel=1e-2)
    assert (C * W).sum() >= cheapest * (1 - 1e-6)
