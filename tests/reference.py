"""Slow, readable twins of the compiled code, and what it means to be optimal.

Everything here is dense numpy and follows the mathematics letter by letter:

    plan  W_ij = (u_i + u_j - C_ij)_+ / eps,   C_ii = 0 with self-loops, infinite without.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.distance import cdist

# float64 rounding of a cost that is summed from up to a few hundred squares in another order.
ROUNDING = 1e-12


def cost_matrix(X, *, metric="euclidean", power=2.0, normalize=True):
    """Costs of all pairs from differences in float64: no product trick, no cancellation."""
    X = np.asarray(X, dtype=np.float64)
    # No more digits are lost than by subtracting: offsets and scales stay harmless.
    X = X - X.mean(axis=0) if metric != "cosine" else X
    unit = 2.0 ** np.floor(np.log2(max(np.abs(X).max(), np.finfo(float).tiny)))
    C = cdist(X / unit, X / unit, metric) ** power
    np.fill_diagonal(C, 0.0)
    C = np.triu(C) + np.triu(C, 1).T
    if normalize:
        return C / C.mean() if C.any() else C
    homogeneity = {"cosine": 0.0, "sqeuclidean": 2.0}.get(metric, 1.0)
    return C * unit ** (homogeneity * power)


def with_diagonal(C, *, self_loops):
    """Costs with what keeping mass costs: nothing, or more than anything."""
    C = np.array(C, dtype=np.float64)
    np.fill_diagonal(C, 0.0 if self_loops else np.inf)
    return C


def excess(C, u):
    """(u_i + u_j - C_ij)_+ for all pairs."""
    return np.maximum(u[:, None] + u[None, :] - C, 0.0)


def row_sums(C, u):
    return excess(C, u).sum(axis=1)


def square_sum(C, u):
    return float((excess(C, u) ** 2).sum())


def plan(C, u, eps):
    return excess(C, u) / eps


def hessian(C, u):
    """diag(sigma 1) + sigma for sigma_ij = 1[u_i + u_j > C_ij]."""
    sigma = (u[:, None] + u[None, :] > C).astype(np.float64)
    return np.diag(sigma.sum(axis=1)) + sigma


def newton_objective(C, u, target):
    """F(u), whose gradient is the row sums minus the target."""
    return 0.25 * square_sum(C, u) - float(u @ target)


def dual_value(C, u, eps, mass):
    return 2.0 * float(u @ mass) - square_sum(C, u) / (2.0 * eps)


def primal_value(C, W, eps):
    used = W > 0
    return float((C[used] * W[used]).sum() + 0.5 * eps * (W**2).sum())


def pairs_below(C, upper):
    """Symmetric mask of the pairs with C_ij < upper_i + upper_j."""
    below = upper[:, None] + upper[None, :] > C
    np.fill_diagonal(below, False)
    return below


def solve_row(costs, target):
    """The t with sum_j (t - costs_j)_+ = target, by bisection to the last digit."""
    costs = np.asarray(costs, dtype=np.float64)
    costs = costs[np.isfinite(costs)]
    low, high = costs.min(), costs.min() + target
    for _ in range(2000):
        t = 0.5 * (low + high)
        if t in (low, high):
            break
        if np.maximum(t - costs, 0.0).sum() < target:
            low = t
        else:
            high = t
    return high


def optimal_plan(C, eps, mass, *, self_loops):
    """The plan from a generic quadratic program, for a few points.

    With one unknown per pair this is the projection of -C/eps onto a polytope. The equations
    are eliminated by a basis of their kernel; what is left, the point of least norm with
    G z >= h, is a non-negative least squares problem (Lawson and Hanson 1974, chapter 23).
    """
    n = len(mass)
    i, j = np.triu_indices(n, 0 if self_loops else 1)
    A = np.zeros((n, len(i)))
    A[i, np.arange(len(i))] = 1.0
    A[j, np.arange(len(i))] = 1.0
    c = C[i, j]
    # Off the diagonal an unknown counts twice in the objective; y = root (x + c / eps).
    root = np.sqrt(np.where(i == j, 1.0, 2.0))
    left, singular, right = np.linalg.svd(A / root)
    rank = int((singular > 1e-10 * singular[0]).sum())
    wanted = mass + A @ c / eps
    y0 = right[:rank].T @ ((left.T @ wanted)[:rank] / singular[:rank])
    kernel = right[rank:].T
    x = (y0 + kernel @ _least_norm(kernel / root[:, None], c / eps - y0 / root)) / root - c / eps
    W = np.zeros((n, n))
    W[i, j] = W[j, i] = x
    return W


def _least_norm(G, h):
    """The shortest z with G z >= h."""
    if G.shape[1] == 0:
        return np.zeros(0)
    E = np.vstack([G.T, h])
    f = np.zeros(len(E))
    f[-1] = 1.0
    weights, _ = nnls(E, f, maxiter=50 * E.shape[1])
    residual = E @ weights - f
    return -residual[:-1] / residual[-1]


def assert_optimal(graph, C, eps, *, mass=None, self_loops=False, tol=1e-6):
    """The graph is the solution: marginals, signs, support, values and gap, checked densely."""
    n = graph.n
    mass = np.ones(n) if mass is None else np.asarray(mass, dtype=np.float64)
    C, u, W = with_diagonal(C, self_loops=self_loops), graph.potentials, graph.weights.toarray()
    assert np.all(np.isfinite(u))
    assert np.array_equal(W, W.T)
    assert graph.weights.data.min() > 0
    assert np.max(np.abs(W.sum(axis=1) - mass) / mass) <= 10 * tol
    finite = np.where(np.isfinite(C), C, 0.0)
    noise = ROUNDING * (np.abs(u).max() + finite.max())
    margin = u[:, None] + u[None, :] - C
    assert np.all(W[margin > noise] > 0)
    assert np.all(W[margin < -noise] == 0)
    assert np.abs(W - np.maximum(margin, 0.0) / eps).max() <= noise / eps
    primal, dual = primal_value(C, W, eps), dual_value(C, u, eps, mass)
    assert abs(primal - dual) <= 10 * tol * max(abs(primal), abs(dual))
    certificate = graph.certificate
    assert certificate.status == "exact"
    assert certificate.violations == 0
    assert certificate.marginal_error <= tol
    assert abs(certificate.duality_gap) <= 1e-6
    assert certificate.pairs_checked == n * (n - 1) // 2


def assert_rows_optimal(graph, X, eps, rows):
    """Some rows of a large graph hold what the potentials say, no pair more or less."""
    X, u = X - X.mean(axis=0), graph.potentials
    scale = 2.0 * np.square(X).sum(axis=1).mean()
    floors = graph.weights * 0.0 if graph.floors is None else graph.floors
    for i in rows:
        margin = u[i] + u - np.square(X - X[i]).sum(axis=1) / scale
        margin[i] = 0.0
        row = graph.weights[[i]].toarray().ravel()
        floor = floors[[i]].toarray().ravel()
        np.testing.assert_allclose(row, np.maximum(margin / eps, floor), atol=ROUNDING / eps)
