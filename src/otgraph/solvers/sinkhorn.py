"""Symmetric entropic optimal transport, on a cost matrix or on a list of pairs.

    dual   max  2⟨u, m⟩ − ε Σ exp((u_i + u_j − c_ij)/ε)
    plan   π_ij = exp((u_i + u_j − c_ij)/ε),   π1 = m

The averaged step is u ← (u + T(u))/2, where T fits each row to its mass. It at least halves the
error in every direction in which the plan, as an operator, is not negative. With self-loops and
a Gaussian kernel these are all directions. Without self-loops and with small ε, near points
exchange almost all of their mass, the plan has eigenvalues close to −1, and the averaged step
converges slowly. Newton steps are used there. Applying their Hessian diag(π1) + π costs no more
than one Sinkhorn step. Where points exchange all of their mass but for a tiny share, it is nearly
singular and its systems need thousands of products, so coarser systems precondition them
(`costs/coarse.py`). Both kinds of steps start from the solution for a larger ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph.solvers.cg import residual_weights, solve
from otgraph.solvers.passes import DensePasses, ListedCosts, ListedPasses

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph._parallel import Workers
    from otgraph.solvers.passes import Passes
    from otgraph.typing import FloatArray

STAGE_FACTOR = 4.0  # ratio of successive eps; each then takes a few steps
STAGE_TOL = 0.1  # marginal error at which the next stage may start
STAGE_STEPS = 100  # limit of passes per stage
MAX_STAGES = 30  # 4^30 = 10^18: beyond that, costs are lost in rounding
# A step that leaves more than this share of the error is slow. Averaged steps halve it at best.
SLOW = 0.6
# Newton is used only where |log(row sum / mass)| is below this: its quadratic model is local.
NEWTON_LOG_RESIDUAL = 1.0
CG_RTOL = 0.1
CG_PRODUCTS = 200
ARMIJO = 1e-4
SMALLEST_STEP = 2.0**-20
# Largest change of a potential in one Newton step, in units of eps: a factor of 20 000 in a weight.
# Listed pairs alone may have no solution, and a direction without end.
MOST_CHANGE = 10.0
# Share of the diagonal that is added to a Newton system, as a multiple of the marginal error. Where
# two sets of points exchange all of their mass but for 1e-50, the change that a step wants has no
# end; with this it is at most 100 eps. A tenth of it takes as many steps, ten times as much more.
RIDGE = 0.01
# Largest change of a last Newton step, in units of eps. What is missing after it can be made up by
# small shares of the weights. Without this, points whose common weight is still falling to almost
# nothing would have the right sums, and no plan nearby with the exact ones.
SETTLED = 0.1
EXACT = 1e-11  # marginal error that needs no such plan


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
    cost: FloatArray | ListedCosts,
    mass: FloatArray,
    eps: float,
    *,
    tol: float,
    max_iter: int,
    workers: Workers,
    u0: FloatArray | None = None,
    settle: bool = True,
    report: Callable[[float, float], None] = lambda eps, error: None,
) -> Sinkhorn:
    """Solve to a marginal error of ``tol``, or stop after ``max_iter`` passes.

    Parameters
    ----------
    cost
        Exactly symmetric; infinite on the diagonal without self-loops. Or the pairs that may
        have a weight.
    u0
        Potentials to start from, instead of the solutions for larger eps.
    settle
        If Newton steps are used, go on until a plan with the exact row sums is near, which proves
        the duality gap. With ``u0`` they are used at once.
    report
        Called with the current eps and error at the start of each stage and after each step.
    """
    unit = float(mass.mean())  # with masses near 1, float32 products do not overflow
    log_mass = np.log(mass / unit)
    passes: Passes
    if isinstance(cost, ListedCosts):
        passes = ListedPasses(cost, log_mass, workers)
    else:
        passes = DensePasses(cost, log_mass, workers)
    with single_threaded_blas(), np.errstate(under="ignore"):  # weights that are zero
        if u0 is None:
            u, stages = np.zeros(len(mass)), _stages(eps, passes.mean_cost())
        else:
            u, stages = u0 - 0.5 * eps * np.log(unit), [eps]
        for stage_eps in stages:
            last = stage_eps == eps
            if not last and passes.count >= max_iter:
                continue
            limit = max_iter if last else min(max_iter, passes.count + STAGE_STEPS)
            goal = tol if last else max(tol, STAGE_TOL)
            u, residual = _solve_stage(
                passes, u, stage_eps, goal, limit, report,
                settle=last and settle, newton=settle and u0 is not None,
            )  # fmt: skip
    u += 0.5 * eps * np.log(unit)
    return Sinkhorn(u, _error(residual), passes.count)


def _stages(eps: float, mean_cost: float) -> list[float]:
    """Values of eps from about the mean cost down to the wanted one."""
    stages = [eps]
    while stages[-1] < mean_cost and len(stages) < MAX_STAGES:
        stages.append(stages[-1] * STAGE_FACTOR)
    return stages[::-1]


def _solve_stage(
    passes: Passes,
    u: FloatArray,
    eps: float,
    goal: float,
    max_iter: int,
    report: Callable[[float, float], None],
    *,
    settle: bool,
    newton: bool,
) -> tuple[FloatArray, FloatArray]:
    """Steps for one eps. After a slow step comes one of the other kind."""
    residual = passes.log_residual(u, eps)
    report(eps, _error(residual))
    previous, change = np.inf, np.inf if newton else 0.0
    while passes.count < max_iter:
        error = _error(residual)
        if error <= goal and (not settle or change <= SETTLED or error <= EXACT):
            break
        distance = float(np.abs(residual).max())
        if distance > SLOW * previous:
            newton = not newton
        previous = distance
        if newton and distance < NEWTON_LOG_RESIDUAL:
            u, residual, change = _newton_step(passes, u, residual, eps)
        else:
            u = u - 0.5 * eps * residual
            residual = passes.log_residual(u, eps)
        report(eps, _error(residual))
    return u, residual


def _newton_step(
    passes: Passes, u: FloatArray, residual: FloatArray, eps: float
) -> tuple[FloatArray, FloatArray, float]:
    """One damped Newton step on the dual; returns the largest change it wants, in units of eps."""
    mass = np.exp(passes.log_mass)
    sums = mass * np.exp(residual)
    missing = mass - sums
    error = _error(residual)
    direction, _ = solve(
        passes.system(u, eps, sums, ridge=RIDGE * error),
        missing,
        rtol=min(CG_RTOL, float(np.linalg.norm(missing / mass))),
        max_products=CG_PRODUCTS,
        weights=residual_weights(mass),
    )
    start = 2.0 * float(u @ mass) / eps - float(sums.sum())
    slope = 2.0 * float(direction @ missing)
    change = float(np.abs(direction).max())
    step = min(1.0, MOST_CHANGE / max(change, MOST_CHANGE))
    while True:
        moved = u + step * eps * direction
        new = passes.log_residual(moved, eps)
        with np.errstate(over="ignore"):
            dual = 2.0 * float(moved @ mass) / eps - float((mass * np.exp(new)).sum())
        # Near the optimum the dual no longer changes in its last digit; compare the errors instead.
        if dual >= start + ARMIJO * step * slope or _error(new) < error:
            return moved, new, change
        step *= 0.5
        if step < SMALLEST_STEP:
            return moved, new, change


def _error(residual: FloatArray) -> float:
    with np.errstate(over="ignore"):
        return float(np.abs(np.expm1(residual)).max())
