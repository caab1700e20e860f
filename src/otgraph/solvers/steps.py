"""How far Newton goes along its direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels.newton import ARMIJO, CURVATURE, ROUNDING
from otgraph._kernels.parts import EXPANSION, LEAST_CHANGE, OVERSHOOT
from otgraph.costs.parts import Move

if TYPE_CHECKING:
    from otgraph.costs.interface import Evaluation, Marginals
    from otgraph.typing import FloatArray

MAX_TRIALS = 20  # steps tried before the line search fails
PART_ROUNDS = 4  # times that more parts of the graph get steps of their own length


@dataclass(frozen=True)
class Step:
    """Where a step leads: the potentials, the problem there, the step's length, the value of F."""

    u: FloatArray
    now: Evaluation
    length: float
    value: float


def line_search(
    problem: Marginals,
    target: FloatArray,
    u: FloatArray,
    now: Evaluation,
    direction: FloatArray,
) -> Step | None:
    """A step that decreases F enough and reduces the slope; the full step is tried first.

    F is convex. A slope <= 0 at the end of a step therefore proves a decrease, without comparing
    values of F that agree to the last digit. Steps longer than 1 occur where F is linear: in a
    bipartite component whose two sides have different total mass. If the full step goes too far,
    parts of the graph get steps of their own.
    """
    slope = float(((now.row_sums - target) * direction).sum())
    low, low_slope, high, high_slope = 0.0, slope, np.inf, np.inf
    length = 1.0
    best: Step | None = None
    for trials in range(MAX_TRIALS):
        trial = u + length * direction
        after = problem.evaluate(trial)
        end_slope = float(((after.row_sums - target) * direction).sum())
        if end_slope <= 0.0:
            best = Step(trial, after, length, _objective(after, trial, target))
            if end_slope >= CURVATURE * slope:
                return best
            low, low_slope = length, end_slope
            if high == np.inf:
                length *= EXPANSION
                continue
        else:
            end_value = _objective(after, trial, target)
            noise = ROUNDING * (0.25 * now.square_sum + float((np.abs(u) * target).sum()))
            decrease = _objective(now, u, target) - end_value
            if decrease >= -ARMIJO * length * slope - noise:
                return Step(trial, after, length, end_value)
            if trials == 0 and (step := _step_of_parts(problem, target, u, now, direction)):
                return step
            high, high_slope = length, end_slope
        # The zero of the slope by linear interpolation, kept away from the ends.
        rise = high_slope - low_slope
        share = -low_slope / rise if 0.0 < rise < np.inf else 0.5  # bisection beyond the range
        length = low + min(0.9, max(0.1, share)) * (high - low)
    return best


def common_step(
    problem: Marginals, target: FloatArray, u: FloatArray, now: Evaluation, direction: FloatArray
) -> tuple[FloatArray, Evaluation]:
    """Go on along what the last two steps have in common, if F decreases there."""
    if float(((now.row_sums - target) * direction).sum()) >= 0.0:
        return u, now
    advanced = line_search(problem, target, u, now, direction)
    return (u, now) if advanced is None else (advanced.u, advanced.now)


def _step_of_parts(
    problem: Marginals, target: FloatArray, u: FloatArray, now: Evaluation, direction: FloatArray
) -> Step | None:
    """A step with another length for each part of the graph, if it decreases F enough.

    A point and its only neighbor, with different targets, travel far until they meet others. All
    points would wait for them in a common line search, a hundredth of a step at a time. Parts
    whose slope is good after a full step take it. The others look for a step one after the other.
    """
    parts = problem.hessian(u).parts()
    if parts is None:
        return None
    move = Move(u, direction, target, parts)
    first = move.slopes(now.row_sums)
    chosen = first > 0.0
    trial, after = u + direction, None
    for _ in range(PART_ROUNDS):
        if chosen.any():
            trial = problem.moved(move, chosen)
        after = problem.evaluate(trial)
        slopes = move.slopes(after.row_sums)
        more = ((slopes > -OVERSHOOT * first) | (slopes < LEAST_CHANGE * first)) & ~chosen
        if not more.any():
            break
        chosen |= more
    assert after is not None
    value = _objective(after, trial, target)
    predicted = float(((target - now.row_sums) * (trial - u)).sum())
    decrease = _objective(now, u, target) - value
    return Step(trial, after, 1.0, value) if decrease > ARMIJO * max(predicted, 0.0) else None


def _objective(at: Evaluation, u: FloatArray, target: FloatArray) -> float:
    return 0.25 * at.square_sum - float((u * target).sum())
