"""A wanted mean degree with heavy-tailed masses: reached, or told that no eps gives it."""

from __future__ import annotations

import warnings

import numpy as np

import otgraph
from otgraph.exceptions import InfeasibleError

# Edges lighter than the tolerance come and go with it. So what is fainter than this share of the
# mean mass does not count as an edge.
TRUE_TOL = 1e-6
FAINT = 1e-8
NEAR = 0.0205  # two percent, and the rounding of that


def judge_degree(seed):
    rng = np.random.default_rng([1_500, seed])
    n, d = int(rng.integers(100, 400)), int(rng.integers(2, 12))
    X = rng.normal(size=(n, d))
    mass = rng.pareto(1.5, size=n) + (1.0 if rng.random() < 0.5 else 0.01)
    if mass.max() > mass.sum() - mass.max():
        mass[mass.argmax()] = 0.95 * (mass.sum() - mass.max())  # feasible, and hardly so
    goal = float(rng.uniform(3, 25))
    told = f"degree seed {seed}: n={n} d={d} goal {goal:.3f}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = otgraph.quadratic_ot_graph(X, mean_degree=goal, mass=mass, n_jobs=1)
        if graph.certificate.status != "exact":
            return [("degree not exact", f"{told}: {graph.certificate.reason}")]
        if abs(graph.mean_degree / goal - 1) <= NEAR:
            return [("heavy masses, degree reached", "")]
        values = graph.certificate.eps * np.geomspace(1e-4, 1e4, 81)
        degrees = possible_degrees(X, values, graph, mass=mass, n_jobs=1)
    possible = degrees[np.isfinite(degrees)]
    told += (
        f" reached {graph.mean_degree:.3f}, possible {possible.min():.2f} to {possible.max():.2f}"
    )
    nearest = np.min(np.abs(np.log(degrees / goal)))
    if abs(np.log(graph.mean_degree / goal)) <= nearest + NEAR:
        return [("heavy masses, nearest degree", "")]
    return [("DEGREE MISSED", told)]


def possible_degrees(X, values, graph, **options):
    """Mean degrees of the graphs for other eps, with the minimum flows that ``graph`` has.

    A graph that could not be solved has none of these flows, and an infinite degree here.
    """
    options["tol"] = TRUE_TOL
    wished = 0 if graph.floors is None else graph.params["min_degree"]
    try:
        path = otgraph.eps_path(X, values, min_degree=wished, **options)
    except InfeasibleError:  # there is no room for the flows at every eps
        path = otgraph.eps_path(X, values, min_degree=0, **options)
    faint = FAINT * graph.mass.mean()
    return np.array([degree_without_faint(other, faint) for other in path])


def degree_without_faint(graph, faint):
    if graph.certificate.status == "not_converged":
        return np.inf
    return 2.0 * np.sum(graph.edges().weight > faint) / graph.n
