"""Algorithm 1 of Matsumoto, Zhang and Schiebinger (2022), as it is printed.

Two things in the print cannot be meant and are set right here. The linear system gives a descent
direction, and the line search follows it (``u + t du``), so that the last line of the loop must add
it, too: the print subtracts it and moves uphill. And the Φ and d of the line search are not
defined: they are the function whose Newton step this is, and its slope along the step.
"""

from __future__ import annotations

import numpy as np

# The print leaves the Armijo parameters open; these are the defaults of OptimalTransport.jl, which
# the authors' scripts call.
THETA, KAPPA = 0.1, 0.5
DELTA = 1e-5
MAX_STEPS = 200


def algorithm1(c, eps, *, tol=1e-10):
    """The plan for a cost matrix, infinite on its diagonal for a graph without self-loops."""
    n = len(c)
    u = np.ones(n)

    def phi(u):
        return 0.25 * np.square(np.maximum(u[:, None] + u - c, 0)).sum() - eps * u.sum()

    for _ in range(MAX_STEPS):
        P = u[:, None] + u - c
        sigma = (P >= 0).astype(float)
        pi = np.maximum(P, 0) / eps
        gradient = eps * (pi.sum(axis=1) - 1)
        if np.abs(gradient).max() <= tol * eps:
            return pi
        du = np.linalg.solve(sigma + np.diag(sigma.sum(axis=1)) + DELTA * np.eye(n), -gradient)
        d = gradient @ du
        t = 1.0
        while phi(u + t * du) >= phi(u) + t * THETA * d:
            t *= KAPPA
            if t * np.abs(du).max() <= np.finfo(float).eps * np.abs(u).max():
                return pi  # the step is lost in rounding: no better u can be told apart
        u = u + t * du
    msg = f"algorithm 1 did not converge in {MAX_STEPS} steps"
    raise AssertionError(msg)
