"""One random problem: solved by the package, judged by the oracle."""

from __future__ import annotations

import warnings

import numpy as np

import otgraph
from otgraph.exceptions import InfeasibleError
from otgraph.solvers.certificate import Reason

from . import oracle
from .degrees import FAINT, degree_without_faint, possible_degrees
from .problems import given

TOL = 1e-6
# The plan of a strongly convex problem is as accurate as its marginals, up to the condition of
# the active pairs; a true fault is off by factors, not by this.
PLAN_RTOL = 1e-3
GAP_LIMIT = 1e-5
# Where points may hold mass back, row sums within the tolerance are no proof, but this gap is.
SOFT_GAP = 1e-6


def judge(problem):
    """A list of (verdict, detail): one for each graph that the problem asks for."""
    try:
        graphs = _graphs(problem)
    except InfeasibleError:
        return [_judge_refusal(problem)]
    C = _costs(problem)
    return [_judge_graph(problem, C, graph) for graph in graphs]


def _options(problem):
    return {
        "metric": problem.metric,
        "power": problem.power,
        "normalize": problem.normalize,
        "mass": problem.mass,
        "self_loops": problem.self_loops,
        "outlier_cost": problem.outlier_cost,
        "tol": TOL,
        "n_jobs": 1,
    }


def _graphs(problem):
    options, X = _options(problem), given(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match problem.mode:
            case "path":
                values = problem.eps * np.geomspace(0.1, 10, 5)
                return list(otgraph.eps_path(X, values, **options))
            case "mean_degree":
                return [otgraph.quadratic_ot_graph(X, mean_degree=problem.mean_degree, **options)]
            case "poor_start":
                return [otgraph.quadratic_ot_graph(X, problem.eps, u0=problem.u0, **options)]
            case "few_steps":
                options |= {"max_iter": problem.max_iter}
                return [otgraph.quadratic_ot_graph(X, problem.eps, **options)]
            case _:
                return [otgraph.quadratic_ot_graph(X, problem.eps, **options)]


def _mass(problem):
    return np.ones(problem.n) if problem.mass is None else problem.mass


def _costs(problem):
    C = oracle.cost_matrix(
        problem.X, metric=problem.metric, power=problem.power,
        normalize=problem.normalize and problem.candidates is None,
    )  # fmt: skip
    if problem.candidates is not None:
        mask = problem.candidates
        if problem.normalize and mask.any():
            C = C / (C[mask].mean() or 1.0)
        C = np.where(mask, C, np.inf)
    np.fill_diagonal(C, 0.0 if problem.self_loops else np.inf)
    return C


def _judge_refusal(problem):
    mass = _mass(problem)
    allowed = np.ones((problem.n, problem.n), dtype=bool)
    # What cannot be shared is held back, but without any pair "auto" has nothing to go by.
    chosen = problem.outlier_cost == "auto" and problem.candidates is not None
    if problem.outlier_cost is not None and not (chosen and not problem.candidates.any()):
        return "refused wrongly", problem.describe()
    if problem.candidates is not None:
        allowed = problem.candidates.copy()
    np.fill_diagonal(allowed, problem.self_loops)
    if oracle.feasible(allowed, mass, self_loops=problem.self_loops):
        return "refused wrongly", problem.describe()
    return "infeasible", ""


def _judge_graph(problem, C, graph):
    certificate, mass, u = graph.certificate, _mass(problem), graph.potentials
    eps = certificate.eps
    W = graph.weights.toarray()
    highest = 0.5 * certificate.outlier_cost
    sums = W.sum(axis=1) + oracle.held_back(u, mass, highest)
    true_error = float(np.max(np.abs(sums - mass) / mass))
    noise = oracle.rounding_error(C, u, mass, eps)
    where = (
        f"{problem.describe()} | eps {eps:.4g} status {certificate.status} error "
        f"{certificate.marginal_error:.2e} true {true_error:.2e} noise {noise:.1e} "
        f"gap {certificate.duality_gap:.1e} steps {certificate.n_steps}"
    )
    if not np.isfinite(certificate.marginal_error) or not np.isfinite(W).all():
        return "not finite", where
    if abs(certificate.marginal_error - true_error) > 1e-9 + 1e-3 * true_error + 10 * noise:
        return "marginal error misstated", where
    converged = certificate.status in ("exact", "exact_on_candidates")
    if converged:
        if true_error > TOL * (1 + 1e-3) + 10 * noise:
            return "FALSE STATUS", where
        if not np.isfinite(certificate.duality_gap):
            return "gap not finite", where
        finite = np.where(np.isfinite(C), C, 0.0)
        size = 8 * oracle.UNIT * (np.abs(u)[:, None] + np.abs(u)[None, :] + finite)
        costs_off = oracle.cost_error(problem.X, finite, metric=problem.metric, power=problem.power)
        floors = oracle.floors_of(graph)
        expected = np.maximum(oracle.excess(C, u) / eps, floors)
        if np.any(np.abs(W - expected) > (size + costs_off) / eps + 1e-12 * expected):
            return "FALSE STATUS", "pairs or weights differ: " + where
        if np.any(floors.sum(axis=1) > mass):
            return "FALSE STATUS", "more minimum flow than mass: " + where
        if np.any((graph.mass_kept < 0) | (graph.mass_kept > mass)):
            return "FALSE STATUS", "more mass kept than there is: " + where
        gap = oracle.relative_gap(C, W, u, eps, mass, floors, highest)
        noise += float(np.max((costs_off * (W > 0)).sum(axis=1) / (eps * mass)))
        if abs(gap) > GAP_LIMIT + 1e3 * noise:
            return "FALSE STATUS", f"true gap {gap:.1e}: " + where
    if problem.mode == "few_steps":
        return ("few steps, solved" if converged else "few steps, said so"), ""
    # With rho = pi - floors it is an ordinary problem.
    floors = oracle.floors_of(graph)
    dense = oracle.solve(C + eps * floors, eps, mass - floors.sum(axis=1), highest=highest)
    if not converged:
        # Where rounding alone may move a row sum by more than the tolerance, success is luck.
        known = oracle.rounding_error(C, dense.u, mass, eps) <= TOL
        solved = dense.error <= TOL and known
        if certificate.reason == Reason.ROUNDING and np.isfinite(highest):
            gap = oracle.relative_gap(
                C, dense.plan + floors, dense.u, eps, mass, floors, highest
            )  # fmt: skip
            solved = solved and abs(gap) <= SOFT_GAP
        if solved:
            return "not converged, oracle did", f"oracle {dense.error:.1e}: " + where
        return "not converged, nor oracle", where
    if dense.error > TOL:
        return f"{certificate.status}, oracle failed", ""
    difference = np.abs(W - floors - dense.plan).max() / max(W.max(), 1e-300)
    if difference > PLAN_RTOL:
        return "plans differ", f"by {difference:.1e}: " + where
    if problem.mode == "mean_degree":
        return _judge_degree(problem, C, graph, where)
    return str(certificate.status), ""


def _judge_degree(problem, C, graph, where):
    """Within two percent, or in a jump of the degree, or beyond what any eps gives."""
    goal, eps = problem.mean_degree, graph.certificate.eps
    if abs(graph.mean_degree / goal - 1) <= 0.0205:
        return "degree reached", ""
    if abs(graph.mean_degree - goal) * problem.n <= 2.0:  # one edge more or less
        return "degree nearest", ""

    values, options = eps * np.geomspace(1e-3, 1e3, 61), _options(problem)
    if options["outlier_cost"] is not None:
        price = graph.certificate.outlier_cost
        options["outlier_cost"] = price if np.isfinite(price) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        degrees = possible_degrees(given(problem), values, graph, **options)
    miss = np.abs(np.log(np.maximum(degrees, 1e-3) / goal))
    # Whether faint edges count or not, the graph has to be the nearest in one way of counting.
    counts = graph.mean_degree, degree_without_faint(graph, FAINT * graph.mass.mean())
    reached = min(abs(np.log(max(count, 1e-3) / goal)) for count in counts)
    if reached <= miss.min() + 0.02:
        return "degree nearest", ""
    possible = degrees[np.isfinite(degrees)]
    if not len(possible) or not possible.min() / 1.02 <= goal <= possible.max() * 1.02:
        return "degree out of reach", ""
    nearer = [k for k in np.argsort(miss) if miss[k] + 0.02 < reached]
    if graph.floors is None:
        nearer = [k for k in nearer if _has_degree(problem, C, graph, values[k], degrees[k])]
        if not nearer:
            return "degree nearest of those that are certain", ""
    found = f"degree {graph.mean_degree:.3f}, {degrees[nearer[0]]:.3f} at eps "
    return "DEGREE MISSED", f"{found}{values[nearer[0]]:.4g}: {where}"


def _has_degree(problem, C, graph, eps, degree):
    """Whether the oracle finds the same degree, and rounding does not decide which pairs it has."""
    mass = _mass(problem)
    dense = oracle.solve(C, eps, mass, highest=0.5 * graph.certificate.outlier_cost)
    if dense.error > TOL or oracle.rounding_error(C, dense.u, mass, eps) > TOL:
        return False
    np.fill_diagonal(dense.plan, 0.0)
    edges = np.count_nonzero(dense.plan > FAINT * mass.mean())
    return abs(edges / problem.n - degree) * problem.n <= 2.0
