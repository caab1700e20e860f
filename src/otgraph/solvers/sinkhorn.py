"""Symmetric entropic optimal transport on a dense cost matrix.

    dual   max  2⟨u, m⟩ − ε Σ exp((u_i + u_j − c_ij)/ε)
    plan   π_ij = exp((u_i + u_j − c_ij)/ε),   π1 = m

The averaged step is u ← (u + T(u))/2, where T fits each row to its mass. It at least halves the
error in every direction in which the plan, as an operator, is not negative. With self-loops and
a Gaussian kernel these are all directions. Without self-loops and with small ε, near points
exchange almost all of their mass, the plan has eigenvalues close to −1, and the averaged step
converges slowly. Newton steps are used there. Applying their Hessian diag(π1) + π costs no more
than one Sinkhorn step. Both kinds of steps start from the solution for a larger ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph._parallel import Workers, cache_blocks
from otgraph.solvers.cg import conjugate_gradients

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import Float32Array, FloatArray

STAGE_FACTOR = 4.0  # ratio of successive eps; each then takes a few steps
STAGE_TOL = 0.1  # marginal error at which the next stage may start
STAGE_STEPS = 100  # limit of passes per stage
MAX_STAGES = 30  # 4^30 = 10^18: beyond that, costs are lost in rounding
# Newton takes over if a step leaves more than this share of the error. Averaged steps halve it at
# best.
SLOW = 0.6
# Newton is used only where |log(row sum / mass)| is below this: its quadratic model is local.
NEWTON_LOG_RESIDUAL = 1.0
CG_RTOL = 0.1
CG_PRODUCTS = 200
ARMIJO = 1e-4
SMALLEST_STEP = 2.0**-20


@dataclass(frozen=True)
class Sinkhorn:
    """Potentials and how far their row sums are from the masses.

    Parameters
    ----------
    u
        Potentials.
    marginal_error
        Largest |row sum − mass| / mass.
    n_steps
        Passes over the matrix, in all stages together.
    """

    u: FloatArray
    marginal_error: float
    n_steps: int


def symmetric_sinkhorn(
    cost: FloatArray,
    mass: FloatArray,
    eps: float,
    *,
    tol: float,
    max_iter: int,
    workers: Workers,
    report: Callable[[float, float], None] = lambda eps, error: None,
) -> Sinkhorn:
    """Solve to a marginal error of ``tol``, or stop after ``max_iter`` passes.

    Parameters
    ----------
    cost
        Exactly symmetric; infinite on the diagonal without self-loops.
    report
        Called with the current eps and error at the start of each stage and after each step.
    """
    unit = float(mass.mean())  # with masses near 1, float32 products do not overflow
    passes = _Passes(cost, np.log(mass / unit), workers)
    u = np.zeros(len(mass))
    with single_threaded_blas():
        stages = _stages(eps, float(_mean_finite(cost)))
        for stage_eps in stages:
            last = stage_eps == eps
            if not last and passes.count >= max_iter:
                continue
            limit = max_iter if last else min(max_iter, passes.count + STAGE_STEPS)
            goal = tol if last else max(tol, STAGE_TOL)
            u, residual = _solve_stage(passes, u, stage_eps, goal, limit, report)
    u += 0.5 * eps * np.log(unit)
    return Sinkhorn(u, _error(residual), passes.count)


def _stages(eps: float, mean_cost: float) -> list[float]:
    """Values of eps from about the mean cost down to the wanted one."""
    stages = [eps]
    while stages[-1] < mean_cost and len(stages) < MAX_STAGES:
        stages.append(stages[-1] * STAGE_FACTOR)
    return stages[::-1]


def _solve_stage(
    passes: _Passes,
    u: FloatArray,
    eps: float,
    goal: float,
    max_iter: int,
    report: Callable[[float, float], None],
) -> tuple[FloatArray, FloatArray]:
    residual = passes.log_residual(u, eps)
    report(eps, _error(residual))
    previous = np.inf
    while _error(residual) > goal and passes.count < max_iter:
        distance = float(np.abs(residual).max())
        slow = distance > SLOW * previous and distance < NEWTON_LOG_RESIDUAL
        previous = distance
        if slow:
            u, residual = _newton_step(passes, u, residual, eps)
        else:
            u = u - 0.5 * eps * residual
            residual = passes.log_residual(u, eps)
        report(eps, _error(residual))
    return u, residual


def _newton_step(
    passes: _Passes, u: FloatArray, residual: FloatArray, eps: float
) -> tuple[FloatArray, FloatArray]:
    """One damped Newton step on the dual, in units of eps."""
    mass = np.exp(passes.log_mass)
    sums = mass * np.exp(residual)
    missing = mass - sums
    plan = passes.plan32(u, eps)
    direction, _ = conjugate_gradients(
        lambda v: sums * v + passes.product32(plan, v),
        sums + plan.diagonal(),
        missing,
        rtol=min(CG_RTOL, float(np.linalg.norm(missing / mass))),
        max_products=CG_PRODUCTS,
    )
    start, error = 2.0 * float(u @ mass) / eps - float(sums.sum()), _error(residual)
    slope = 2.0 * float(direction @ missing)
    step = 1.0
    while True:
        moved = u + step * eps * direction
        new = passes.log_residual(moved, eps)
        with np.errstate(over="ignore"):
            dual = 2.0 * float(moved @ mass) / eps - float((mass * np.exp(new)).sum())
        # Near the optimum the dual no longer changes in its last digit; compare the errors instead.
        if dual >= start + ARMIJO * step * slope or _error(new) < error:
            return moved, new
        step *= 0.5
        if step < SMALLEST_STEP:
            return moved, new


def _error(residual: FloatArray) -> float:
    with np.errstate(over="ignore"):
        return float(np.abs(np.expm1(residual)).max())


def _mean_finite(cost: FloatArray) -> float:
    n = len(cost)
    means = [np.mean(row, where=np.isfinite(row)) for row in cost[:: max(1, n // 64)]]
    return float(np.mean(means))  # only the scale is needed: about 64 rows suffice


class _Passes:
    """Passes over the matrix by threads, in blocks of rows; counts the passes."""

    def __init__(self, cost: FloatArray, log_mass: FloatArray, workers: Workers) -> None:
        self.log_mass = log_mass
        self.count = 0
        self._cost = cost
        self._workers = workers
        self._blocks = cache_blocks(len(cost), len(cost))
        self._plan: Float32Array | None = None

    def log_residual(self, u: FloatArray, eps: float) -> FloatArray:
        """log(row sums) − log(mass), without overflow for any u."""
        self.count += 1
        out = np.empty_like(u)

        def fill(rows: tuple[int, int]) -> None:
            a, b = rows
            exponent = u - self._cost[a:b]
            exponent /= eps
            top = exponent.max(axis=1)
            exponent -= top[:, None]
            np.exp(exponent, out=exponent)
            out[a:b] = top + np.log(exponent.sum(axis=1))

        self._workers.run(fill, self._blocks)
        return out + u / eps - self.log_mass

    def plan32(self, u: FloatArray, eps: float) -> Float32Array:
        """The plan in single precision: enough for a search direction, half the memory."""
        if self._plan is None:
            self._plan = np.empty(self._cost.shape, dtype=np.float32)
        plan = self._plan

        def fill(rows: tuple[int, int]) -> None:
            a, b = rows
            exponent = (u[a:b, None] + u) - self._cost[a:b]
            exponent /= eps
            plan[a:b] = np.exp(exponent, out=exponent)

        self._workers.run(fill, self._blocks)
        return plan

    def product32(self, plan: Float32Array, v: FloatArray) -> FloatArray:
        """Plan times vector."""
        out, v32 = np.empty_like(v), v.astype(np.float32)

        def fill(rows: tuple[int, int]) -> None:
            a, b = rows
            out[a:b] = plan[a:b] @ v32

        self._workers.run(fill, self._blocks)
        return out
