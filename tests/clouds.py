"""An independent solver for plans between two clouds: dense, for small problems."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

STEPS = 400
TOL = 1e-10


def dense_plan(costs, eps, mass_x, mass_y):
    """The plan by a damped Newton method on the dual, with all pairs in a dense Hessian.

    Decreasing eps, because Newton's method is poor from afar when the plan is nearly a matching.
    """
    n, m = costs.shape
    f, g = np.zeros(n), costs.min(axis=0)
    top = max(eps, 10.0 * costs.max() * (n + m))
    for value in np.geomspace(top, eps, max(2, int(np.log2(top / eps)) + 1)):
        f, g = _newton(costs, value, mass_x, mass_y, f, g)
    return np.maximum(f[:, None] + g - costs, 0.0) / eps


def _newton(costs, eps, mass_x, mass_y, f, g):
    n = len(f)
    target = eps * np.r_[mass_x, mass_y]

    def value(u):
        excess = np.maximum(u[:n, None] + u[n:] - costs, 0.0)
        return 0.5 * np.sum(excess**2) - u @ target, excess

    u = np.r_[f, g]
    now, excess = value(u)
    for _ in range(STEPS):
        gradient = np.r_[excess.sum(axis=1), excess.sum(axis=0)] - target
        error = np.max(np.abs(gradient) / target)
        if error < TOL:
            break
        active = (excess > 0.0).astype(float)
        hessian = np.block([[np.diag(active.sum(axis=1)), active],
                            [active.T, np.diag(active.sum(axis=0))]])  # fmt: skip
        hessian += min(1e-2 * error, 1e-4) * np.eye(len(u))
        step, length = np.linalg.solve(hessian, -gradient), 1.0
        for _ in range(60):
            after, excess = value(u + length * step)
            slope = np.r_[excess.sum(axis=1), excess.sum(axis=0)] - target
            if after <= now + 1e-4 * length * (gradient @ step) or (
                np.max(np.abs(slope) / target) < 0.5 * error
            ):
                break
            length *= 0.5
        u, now = u + length * step, after
    return u[:n], u[n:]


def soft_plan(costs, eps, mass_x, mass_y, outlier_cost):
    """The plan in which points hold mass back, from a minimizer that knows only the dual value."""
    n, mass = len(mass_x), np.r_[mass_x, mass_y]

    def value(u):
        excess = np.maximum(u[:n, None] + u[n:] - costs, 0.0)
        above = np.maximum(u, 0.0)
        held = eps * mass * above / outlier_cost
        gradient = np.r_[excess.sum(axis=1), excess.sum(axis=0)] + 2.0 * held - eps * mass
        return 0.5 * np.sum(excess**2) + held @ above - eps * u @ mass, gradient

    options = {"maxiter": 20_000, "maxfun": 20_000, "ftol": 0.0, "gtol": 1e-12 * eps}
    found = minimize(value, np.zeros(len(mass)), jac=True, method="L-BFGS-B", options=options)
    return np.maximum(found.x[:n, None] + found.x[n:] - costs, 0.0) / eps
