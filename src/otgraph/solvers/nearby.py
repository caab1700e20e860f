"""Newton for the few points that miss their targets, and those around them.

Where few row sums are off, Newton steps for all points need as many products as steps for these
points alone, and each product goes through all active pairs.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from otgraph.costs.local import solved_locally
from otgraph.solvers.certificate import Reason
from otgraph.solvers.newton import newton

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.costs.interface import Restricted
    from otgraph.solvers.state import Effort
    from otgraph.typing import FloatArray

logger = logging.getLogger("otgraph")

# This share of the points, if the largest error is so many times that of the others and larger than
# so many times `LEAST_FAR`, is solved by itself, with its neighbors. With two edges instead of one
# most points would move.
WORST_SHARE = 0.01
STANDS_OUT = 10.0
LEAST_FAR = 1e-3
WORST_HOPS = 1
SOLVED = 0.1  # marginal error after the solve, relative to that of points that are looked at
NEARBY_STEPS = 100
# Of the points that were off, this share may miss that. They go on by themselves: the last steps of
# a hundred thousand points are often those of a few.
UNFINISHED_SHARE = 0.1
NEARBY_SWEEPS = 16  # repetitions, each around the points that the last one has put out,
LEFT_SHARE = 5e-4  # unless these are so few that the steps for all points may correct them
# Where a repetition leaves more than this share of the points that were off, errors only move to
# the points around, and one edge more is taken in, up to a share of all points.
FEWER = 0.5
WIDEST_SHARE = 0.1


def worst_solved(
    problem: Restricted,
    target: FloatArray,
    u: FloatArray,
    effort: Effort,
    workers: Workers,
    *,
    tol: float,
) -> FloatArray:
    """Potentials that are solved around the worst percent of the points, if these stand out.

    Their errors decide how many products a Newton system needs, and how far all points may go.
    Where all others are within the tolerance, nothing is left to do for these.
    """
    errors = np.abs(problem.evaluate(u).row_sums - target) / target
    place = len(errors) - 1 - int(WORST_SHARE * len(errors))
    usual = float(np.partition(errors, place)[place])
    others_are_solved = usual <= tol
    far = max(usual, min(LEAST_FAR, tol) if others_are_solved else LEAST_FAR)
    if not others_are_solved and errors.max() < STANDS_OUT * far:
        return u
    within = tol if others_are_solved else np.inf
    return solved_nearby(
        problem, target, u, effort, workers, far=far, hops=WORST_HOPS, within=within
    )  # fmt: skip


def solved_nearby(
    problem: Restricted,
    target: FloatArray,
    u: FloatArray,
    effort: Effort,
    workers: Workers,
    *,
    far: float,
    hops: int,
    within: float = np.inf,
) -> FloatArray:
    """Potentials that are solved around the points that miss their targets.

    These are off by more than ``far``. The points within ``hops`` edges of them, or some more, move
    with them, and all others stay. In the end all are ``within`` an error, if that can be reached.
    """
    tol, n = SOLVED * far, len(target)
    few, before, more = 0.0, float("inf"), 0
    last = np.empty(0, dtype=np.int64)
    for _ in range(NEARBY_SWEEPS):
        off = np.abs(problem.evaluate(u).row_sums - target)
        moving = off > far * target
        n_off = int(np.count_nonzero(moving))
        unfinished = last[off[last] > tol * target[last]]
        if n_off <= few and not len(unfinished) and np.all(off <= within * target):
            break
        moving[unfinished] = True
        more += int(n_off > FEWER * before)
        few, before = LEFT_SHARE * n, n_off
        hessian = problem.hessian(u)
        moving = hessian.reached(moving, hops)
        for _ in range(more):
            wider = hessian.reached(moving)
            if np.count_nonzero(wider) > WIDEST_SHARE * n:
                break
            moving = wider
        rows = np.flatnonzero(moving)
        left = int(UNFINISHED_SHARE * (n_off + len(unfinished)))
        solve = partial(newton, tol=tol, max_iter=NEARBY_STEPS, left=left)
        result = solved_locally(problem, rows, u, target, workers, solve)
        last = rows if result.reason == Reason.NONE else rows[:0]
        logger.debug(
            "%d points nearby: %d steps, %d products, marginal error %.1e",
            len(rows), result.n_steps, result.n_products, result.error,
        )  # fmt: skip
        effort.steps += result.n_steps
        effort.history.append(result.errors)
        u = u.copy()
        u[rows] = result.u
        if result.reason == Reason.ROUNDING:
            break
    return u
