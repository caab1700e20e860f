"""A dense solver and dense judges: slow, plain numpy, nothing from the package.

    F(u) = 1/4 sum (u_i + u_j - C_ij)_+² - <u, target>,   target = eps · mass

is convex and piecewise quadratic. Its gradient is row sums minus target. Where points may hold mass
back, target · u_+² / (2 highest) is added: at the highest potential a point holds back everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

UNIT = np.finfo(np.float64).eps / 2
SUM_UNITS = 128  # the mean cost that all costs are divided by is a sum in another order
RIDGE = 1e-3  # relative to the Hessian's diagonal and to the misplaced mass
LEVEL_TOL = 1e-3  # relative error of row sums at larger eps, which only give a start
CONTINUATION = 4.0  # ratio of successive eps when a direct attempt fails


def cost_matrix(X, *, metric, power, normalize):
    """Costs of all pairs from float64 differences, zero on the diagonal, exactly symmetric."""
    if metric == "precomputed":
        C = np.array(X, dtype=np.float64)
    else:
        X = np.asarray(X, dtype=np.float64)
        X = X if metric == "cosine" else X - X.mean(axis=0)
        unit = np.abs(X).max() or 1.0
        C = cdist(X / unit, X / unit, metric)
        if metric == "cosine":
            # Half the squared chord keeps digits that 1 - cos loses for near directions.
            Y = X / np.linalg.norm(X, axis=1, keepdims=True)
            C = 0.5 * cdist(Y, Y, "sqeuclidean")
            unit = 1.0
        C = (C * unit) ** power
    np.fill_diagonal(C, 0.0)
    C = np.triu(C) + np.triu(C, 1).T
    return C / C.mean() if normalize and C.any() else C


def cost_error(X, C, *, metric, power):
    """Bound of the rounding errors of a cost whose points were centered before they were used."""
    if metric == "precomputed":
        return 8 * UNIT * C
    X = np.asarray(X, dtype=np.float64)
    if metric == "cosine":
        # Half the squared chord of directions. Each is off by the rounding of its norm and of
        # centering it twice.
        d = X.shape[1]
        chord_off = 2 * UNIT * (0.5 * d + 2 + 4 * np.sqrt(d))
        raw = cost_matrix(X, metric=metric, power=1.0, normalize=False)
        off = np.sqrt(2 * raw) * chord_off + 8 * UNIT * raw
        return _scale(C, raw) * off + SUM_UNITS * UNIT * C
    spread = np.abs(X - X[0]).max() + np.abs(X).max()
    distance = cdist(X, X, metric)
    shift = 16 * UNIT * X.shape[1] * (spread + distance)
    raw = distance**power
    scale = _scale(C, raw)
    below = np.maximum(distance - shift, 0.0) ** power
    return scale * np.maximum((distance + shift) ** power - raw, raw - below) + SUM_UNITS * UNIT * C


def _scale(C, raw):
    """What raw costs were multiplied by; pairs that are not allowed have infinite ones."""
    allowed = (raw > 0) & np.isfinite(C)
    return np.divide(C, raw, out=np.zeros_like(C), where=allowed).max() or 1.0


def excess(C, u):
    return np.maximum(u[:, None] + u[None, :] - C, 0.0)


def excess_rows(C, u, rows):
    """The same for some rows of costs."""
    return np.maximum(u[rows][:, None] + u - C, 0.0)


def rounding_error(C, u, mass, eps):
    """Largest error of a row sum, relative to its mass, that rounding u and C can cause."""
    size = np.abs(u)[:, None] + np.abs(u)[None, :]
    active = u[:, None] + u[None, :] > C
    return float(np.max(4 * UNIT * np.where(active, size, 0.0).sum(axis=1) / (eps * mass)))


@dataclass(frozen=True)
class Dense:
    """A dense solution: potentials, plan, and how well its marginals hold."""

    u: np.ndarray
    plan: np.ndarray
    error: float


def held_back(u, mass, highest):
    """Mass that points hold back; none if the highest potential is infinite."""
    return mass * np.maximum(u, 0.0) / highest


def solve(C, eps, mass, *, highest=np.inf, tol=1e-9, max_iter=400):
    """The plan by dense Newton with an exact line search, from larger eps where that fails."""
    u = np.minimum(_rowwise(C, eps * mass), highest)
    u, error = _newton(C, eps * mass, u, tol, max_iter, highest)
    if error > max(tol, 10 * rounding_error(C, u, mass, eps)):
        finite = C[np.isfinite(C)]
        top = max(float(finite.max()) * 10, eps)
        steps = int(np.ceil(np.log(top / eps) / np.log(CONTINUATION)))
        v = np.minimum(_rowwise(C, top * mass), highest)
        for level in np.geomspace(top, eps, steps + 1)[:-1]:
            v, _ = _newton(C, level * mass, v, max(tol, LEVEL_TOL), max_iter, highest)
        v, v_error = _newton(C, eps * mass, v, tol, max_iter, highest)
        if v_error < error:
            u, error = v, v_error
    return Dense(u, excess(C, u) / eps, error)


def _rowwise(C, target):
    """2 u_i - C_ij summed over row i equals its target."""
    u = np.empty(len(C))
    for i, row in enumerate(C):
        costs = np.sort(row[np.isfinite(row)])
        if not len(costs):
            u[i] = np.inf
            continue
        sums = np.cumsum(costs)
        counts = np.arange(1, len(costs) + 1)
        level = (target[i] + sums) / counts
        above = np.flatnonzero(level > costs)  # none where the target drowns in rounding
        u[i] = 0.5 * level[above[-1] if len(above) else 0]
    return u


def _newton(C, target, u, tol, max_iter, highest):
    best, best_error, since = u, np.inf, 0
    for _ in range(max_iter):
        E = excess(C, u)
        gradient = E.sum(axis=1) + held_back(u, target, highest) - target
        error = float(np.max(np.abs(gradient) / target))
        if error < best_error:
            best, best_error, since = u, error, 0
        else:
            since += 1
        if error <= tol or since > 100:
            break
        S = (E > 0).astype(np.float64)
        degrees = S.sum(axis=1)
        ridge = max(RIDGE * min(1.0, np.abs(gradient).sum() / target.sum()), 1e-13)
        H = S
        degrees = degrees + np.where(u > 0.0, target / highest, 0.0)
        H[np.diag_indices_from(H)] += degrees + ridge * np.maximum(degrees, 1.0)
        try:
            direction = np.linalg.solve(H, -gradient)
        except np.linalg.LinAlgError:
            direction = np.linalg.lstsq(H, -gradient, rcond=None)[0]
        u = u + _line_minimum(C, target, u, direction, highest) * direction
    return best, best_error


def _line_minimum(C, target, u, direction, highest):
    """Step at which the slope of F along the direction vanishes, by bracketing and secants."""

    def slope(step):
        v = u + step * direction
        sums = excess(C, v).sum(axis=1) + held_back(v, target, highest)
        return float((sums - target) @ direction)

    low, high = 0.0, 1.0
    at_low, at_high = slope(0.0), slope(1.0)
    if at_low >= 0:
        return 0.0
    while at_high < 0 and high < 1e12:
        low, at_low, high = high, at_high, 4 * high
        at_high = slope(high)
    if abs(at_high) <= 0.1 * abs(at_low):
        return high
    for _ in range(40):
        if at_high <= at_low:  # both are rounding errors
            break
        share = min(0.9, max(0.1, -at_low / (at_high - at_low)))
        step = low + share * (high - low)
        value = slope(step)
        if value < 0:
            low, at_low = step, value
        else:
            high, at_high = step, value
        if high - low <= 1e-3 * high:
            break
    return low if low > 0 else high


def floors_of(graph):
    """Minimum flows of a graph, zeros if it has none."""
    return np.zeros((graph.n, graph.n)) if graph.floors is None else graph.floors.toarray()


def relative_gap(C, W, u, eps, mass, floors, highest=np.inf):
    """Primal value of W minus dual value of u, over the larger of the two.

    The dual value is that of the problem with W >= floors.

    W misses its marginals by a little; the terms that would cancel for an exact plan are
    written so that the miss enters the gap as <u, row sums - mass> and not as rounding.
    """
    used = W > 0
    primal = float((C[used] * W[used]).sum() + 0.5 * eps * (W**2).sum())
    best = np.maximum(excess(C, u) / eps, floors)  # minimizes the Lagrangian entry by entry
    used = best > 0
    slope = (u[:, None] + u - np.where(used, C, 0.0))[used]
    dual = 2.0 * float(u @ mass) - float((slope * best[used] - 0.5 * eps * best[used] ** 2).sum())
    if highest < np.inf:
        primal += highest * float(((mass - W.sum(axis=1)) ** 2 / mass).sum())
        dual -= highest * float((held_back(u, mass, highest) ** 2 / mass).sum())
    return (primal - dual) / max(abs(primal), abs(dual), np.finfo(float).tiny)


def feasible(allowed, mass, *, self_loops):
    """Whether some symmetric plan on the allowed pairs has these row sums (linear program)."""
    n = len(mass)
    i, j = np.nonzero(np.triu(allowed, 0 if self_loops else 1))
    if not len(i):
        return False
    A = np.zeros((n, len(i)))
    A[i, np.arange(len(i))] = 1.0
    A[j, np.arange(len(i))] = 1.0
    scaled = mass / mass.max()
    largest = linprog(-A.sum(axis=0), A_ub=A, b_ub=scaled, method="highs")
    return -largest.fun >= scaled.sum() * (1 - 1e-7)
