"""The outlier cost that suits a data set, chosen from its potentials.

A point that is far from all others has a high potential: it must pay for distant partners. On the
logarithmic scale, where units do not matter, potentials above the upper quartile by more than the
distance of the quartiles belong to outliers. Many outliers raise the quartiles, so the rule is
applied once more to the rest. At half the outlier cost a point holds all its mass back: outliers
are let go, and all others keep most of their mass.

The potentials are those at several times the chosen cost, where all but outliers share nearly all
their mass. Hard marginals give nearly the same choice. But they take long where many outliers are
far, because these need partners: 22 s against 5 s for 250 among 5000 points in 50 dimensions, on a
busy machine. So the cost is the fixed point of the rule, found by a few solves, each from the one
before.

`python -m benchmarks.soft_marginals rule` compares this rule with others; see docs/outliers.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph.solvers import approach

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.solvers import Effort, Goal, Screener, State
    from otgraph.typing import FloatArray

# Largest quotient of the quartiles that is believed. With many copies the lower one is nearly zero.
LARGEST_QUOTIENT = 10.0
# Least quotient; real sets have 1.2 and more. Potentials that are all alike have no outliers.
LEAST_QUOTIENT = 1.2
PASSES = 2
# Significant digits of the choice: it must not depend on rounding errors.
DIGITS = 3
# The rule looks at potentials at this multiple of the outlier cost. There a point at the upper
# quartile holds back 7 % of its mass if the quartiles differ by a factor of 1.7, which is usual.
HIGHER = 8.0
MOST_SOLVES = 10  # two or three are usual
# If the cost grows by more than this, it has no end: with hard marginals the masses or the allowed
# pairs would be infeasible, and potentials follow the cost. Then the first guess is taken.
MOST_GROWTH = 10.0
GUESS_ROWS = 256  # rows whose neighbors give a first guess


def with_chosen_cost(
    screener: Screener, goal: Goal, state: State, guess: float, effort: Effort
) -> tuple[Goal, State]:
    """The goal with the outlier cost that suits its eps, and potentials to start from."""
    first = guess
    for _ in range(MOST_SOLVES):
        before, goal = guess, replace(goal, outlier_cost=HIGHER * guess)
        state = approach(screener, goal, state, effort)
        guess = chosen_outlier_cost(state.u)
        if guess > MOST_GROWTH * first:
            guess = first
            break
        if guess == before:
            break
    return replace(goal, outlier_cost=guess), state


def chosen_outlier_cost(u: FloatArray) -> float:
    """Twice the potential above which points are outliers; infinite if none are positive."""
    highest = np.inf
    for _ in range(PASSES):
        low, high = np.quantile(u[u < highest], (0.25, 0.75))
        if not high > 0.0:
            break
        quotient = high / low if low > high / LARGEST_QUOTIENT else LARGEST_QUOTIENT
        highest = high * max(quotient, LEAST_QUOTIENT)
    return float(f"{2.0 * highest:.{DIGITS}g}")


def guessed_outlier_cost(cost: Cost, degree: float) -> float:
    """A first guess for a wanted mean degree, from the distances of a few points.

    A row by itself has so many neighbors if its potential is half the cost of the next one.
    """
    rows = np.unique(np.linspace(0, cost.n - 1, min(GUESS_ROWS, cost.n)).astype(np.int64))
    i, _, costs = cost.nearest_pairs(rows, min(int(degree) + 1, cost.n - 1))
    farthest = np.zeros(cost.n)
    np.maximum.at(farthest, i, costs)
    found = farthest[np.unique(i)]
    return chosen_outlier_cost(0.5 * found) if len(found) else np.inf
