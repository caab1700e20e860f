"""Thousands of points: every pair of a graph looked at by brute force."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.spatial.distance import cdist

import otgraph

from . import oracle

SMALLEST, LARGEST = 3000, 10_000
BLOCK_ROWS = 200
TOL = 1e-6


def large_problem(seed):
    """Points, keywords and a name; one seed gives one problem."""
    rng = np.random.default_rng([90_210, seed])
    n = int(np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST))))
    name = str(rng.choice(list(CLOUDS)))
    X = CLOUDS[name](rng, n)
    options = {"power": float(rng.choice([2.0, 2.0, 2.0, 0.5, 1.0, 3.0])), "n_jobs": 1}
    if rng.random() < 0.15:
        options |= {"metric": "cosine", "power": 1.0}
        X = X + 0.1 * rng.normal(size=X.shape)
    options["self_loops"] = bool(rng.random() < 0.3)
    kind = rng.random()
    if kind < 0.3:
        options["mass"] = rng.lognormal(size=n)
    elif kind < 0.45:
        options["mass"] = rng.pareto(1.5, size=n) + 1.0
    elif kind < 0.55:
        options["mass"] = 10 ** rng.uniform(-3, 3, size=n)
    if rng.random() < 0.3:
        options["mean_degree"] = float(rng.uniform(4, 25))
    else:
        options["eps"] = float(10 ** rng.uniform(-4, 0.3))
    return X, options, f"large seed {seed}: n={n} {name} d={X.shape[1]} {_told(options)}"


def _told(options):
    shown = {k: v for k, v in options.items() if k not in ("mass", "n_jobs")}
    return f"{shown} mass={'mass' in options}"


def judge_large(seed):
    X, options, told = large_problem(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = otgraph.quadratic_ot_graph(X, **options)
    certificate = graph.certificate
    mass = options.get("mass", np.ones(len(X)))
    sums = np.asarray(graph.weights.sum(axis=1)).ravel()
    error = float(np.max(np.abs(sums - mass) / mass))
    told += f" | {certificate.status} error {certificate.marginal_error:.1e} true {error:.1e}"
    if abs(error - certificate.marginal_error) > 1e-9 + 1e-2 * error:
        return [("marginal error misstated", told)]
    if certificate.status != "exact":
        return [(f"large {certificate.status}", f"{told} {certificate.reason}")]
    if error > 1.001 * TOL or not np.isfinite(certificate.duality_gap):
        return [("FALSE STATUS", told)]
    wrong = _wrong_pairs(X, graph, options)
    if wrong:
        return [("FALSE STATUS", f"{wrong} pairs: {told}")]
    return [("large exact", "")]


def _wrong_pairs(X, graph, options):
    """Pairs whose weight is not what the potentials say, among all of them."""
    u, eps, scale = graph.potentials, graph.certificate.eps, graph.params["scale"]
    power, cosine = options["power"], options.get("metric") == "cosine"
    Y = X / np.linalg.norm(X, axis=1, keepdims=True) if cosine else X - X[0]
    spread = np.abs(Y).max()
    wrong = 0
    for first in range(0, len(X), BLOCK_ROWS):
        rows = np.arange(first, min(first + BLOCK_ROWS, len(X)))
        distance = cdist(Y[rows], Y)
        shift = 32 * oracle.UNIT * Y.shape[1] * (spread + distance)
        if cosine:
            C, off = 0.5 * distance**2 / scale, distance * shift / scale
        else:
            C = distance**power / scale
            low = np.maximum(distance - shift, 0.0) ** power / scale
            off = np.maximum((distance + shift) ** power / scale - C, C - low)
        C[np.arange(len(rows)), rows] = 0.0 if options["self_loops"] else np.inf
        expected = oracle.excess_rows(C, u, rows) / eps
        if graph.floors is not None:
            expected = np.maximum(expected, graph.floors[rows].toarray())
        finite = np.where(np.isfinite(C), C, 0.0)
        size = np.abs(u[rows])[:, None] + np.abs(u) + finite
        allowed = (off + 16 * oracle.UNIT * size) / eps + 1e-12 * expected
        stored = graph.weights[rows].toarray()
        wrong += int(np.count_nonzero(np.abs(stored - expected) > allowed))
    return wrong


def _manifold(rng, n):
    t = rng.uniform(size=(n, 3))
    basis = rng.normal(size=(9, 20))
    lifted = np.concatenate([np.cos(2 * t), np.sin(3 * t), t], axis=1)
    return lifted @ basis + 0.05 * rng.normal(size=(n, 20))


def _isotropic(rng, n):
    return rng.normal(size=(n, 10))


def _clustered(rng, n):
    widths = 10 ** rng.uniform(-2, 0, size=20)
    own = rng.integers(20, size=n)
    return 5 * rng.normal(size=(20, 8))[own] + widths[own, None] * rng.normal(size=(n, 8))


def _plane(rng, n):
    return rng.uniform(size=(n, 2))


def _heavy_tails(rng, n):
    return rng.standard_t(2.0, size=(n, 6))


def _copies(rng, n):
    return rng.normal(size=(n // 3, 5))[rng.integers(n // 3, size=n)]


CLOUDS = {
    function.__name__.lstrip("_"): function
    for function in (_manifold, _isotropic, _clustered, _plane, _heavy_tails, _copies)
}
