"""One random problem between two clouds, judged by the same oracle as those of one cloud.

The points of a random problem are divided into two clouds, and one of them is moved and scaled. As
a problem of all points it has infinite costs within each cloud.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

import otgraph
from otgraph.exceptions import InfeasibleError

from . import oracle
from .problems import random_problem
from .solving import TOL, _judge_graph, _judge_refusal


def judge_clouds(seed):
    """A list of (verdict, detail) for one plan."""
    problem, n = two_clouds(seed)
    try:
        plan = _plan(problem, n)
    except InfeasibleError:
        return [_judge_refusal(replace(problem, candidates=_allowed(problem, n)))]
    as_graph = SimpleNamespace(
        weights=sp.bmat([[None, plan.weights], [plan.weights.T, None]], format="csr"),
        potentials=np.concatenate(plan.potentials),
        certificate=plan.certificate,
        n=problem.n,
        mean_degree=plan.mean_degree,
        floors=None,
        mass_kept=np.ones(problem.n) if problem.mass is None else problem.mass,
    )
    # Other degrees that an eps gives are not looked for: that is a matter of the search alone.
    return [
        _judge_graph(replace(problem, mode="eps", outlier_cost=None), _costs(problem, n), as_graph)
    ]


def two_clouds(seed):
    """A random problem whose first n points are one cloud and the others the second."""
    problem = random_problem(seed)
    rng = np.random.default_rng([20_262, seed])
    n = int(rng.integers(1, problem.n))
    X = problem.X.copy()
    if problem.metric != "precomputed":
        unit = np.abs(X).max() or 1.0
        X[n:] *= rng.choice([1.0, 1.0, 0.3, 5.0])
        X[n:] += unit * rng.choice([0.0, 0.0, 0.5, 100.0]) * rng.normal(size=X.shape[1])
    mass = np.ones(problem.n) if problem.mass is None else problem.mass.copy()
    mass[n:] *= mass[:n].sum() / mass[n:].sum()
    mode = "mean_degree" if problem.mode == "mean_degree" else "eps"
    most = 2.0 * n * (problem.n - n) / problem.n
    return replace(
        problem, X=X, mass=mass, mode=mode, self_loops=False,
        mean_degree=min(problem.mean_degree, most),
    ), n  # fmt: skip


def _plan(problem, n):
    X, Y = problem.X[:n], problem.X[n:]
    if problem.metric == "precomputed":
        X, Y = problem.X[:n, n:], None
        if problem.candidates is not None:
            rows, columns = np.nonzero(problem.candidates[:n, n:])
            X = sp.csr_matrix((X[rows, columns], (rows, columns)), shape=X.shape)
    goal = {"eps": problem.eps}
    if problem.mode == "mean_degree":
        goal = {"mean_degree": problem.mean_degree}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return otgraph.transport_graph(
            X, Y, **goal, metric=problem.metric, power=problem.power, normalize=problem.normalize,
            mass_x=problem.mass[:n], mass_y=problem.mass[n:], tol=TOL, n_jobs=1,
        )  # fmt: skip


def _allowed(problem, n):
    across = np.zeros((problem.n, problem.n), dtype=bool)
    across[:n, n:] = across[n:, :n] = True
    return across if problem.candidates is None else across & problem.candidates


def _costs(problem, n):
    C = oracle.cost_matrix(problem.X, metric=problem.metric, power=problem.power, normalize=False)
    allowed = _allowed(problem, n)
    if problem.normalize and allowed.any():
        C = C / (C[allowed].mean() or 1.0)
    return np.where(allowed, C, np.inf)
