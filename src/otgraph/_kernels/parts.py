"""Steps of parts of a graph that no active pair connects, each of a length of its own."""

from __future__ import annotations

import numpy as np

from otgraph._numba import inner, njit

# Shares of the slope at the start that may be left at the end of a step: still falling, or rising.
LEAST_CHANGE = 0.9
OVERSHOOT = 0.5
EXPANSION = 8.0  # factor by which a step that is too short grows
TRIALS = 40  # slopes looked at for one part


@njit
def part_steps(
    begin, end, indices, cost, diagonal, target, start, direction, rows, members, firsts, trial
):  # fmt: skip
    """A step of each part along its direction, one after the other.

    The pairs of point k are those from ``begin[k]`` to ``end[k]`` of ``indices`` and ``cost``. All
    other arguments before ``members`` have one entry for each point of the parts; ``rows`` are
    their places in ``trial``, the potentials of all points, which gets new ones for them. The
    points of part k are ``members[firsts[k] : firsts[k + 1]]``. A part sees where those before it
    have gone, so that F decreases with every step that ends before its slope is zero.
    """
    for k in range(len(firsts) - 1):
        own = members[firsts[k] : firsts[k + 1]]
        source = (begin, end, indices, cost, diagonal, target, start, direction, rows, own, trial)
        first = _slope(source, 0.0)
        if first >= 0.0:
            continue  # it stays where it is
        low, low_slope, high, high_slope = 0.0, first, np.inf, np.inf
        step = 1.0
        found = False
        for _ in range(TRIALS):
            slope = _slope(source, step)
            if LEAST_CHANGE * first <= slope <= -OVERSHOOT * first:
                found = True
                break
            if slope <= 0.0:
                low, low_slope = step, slope
                if high == np.inf:
                    step *= EXPANSION
                    continue
            else:
                high, high_slope = step, slope
            share = -low_slope / (high_slope - low_slope)
            step = low + min(0.9, max(0.1, share)) * (high - low)
        if not found:
            _slope(source, low)


@inner
def _slope(source, step):
    """Change of F with the step of a part; writes its potentials."""
    begin, end, indices, cost, diagonal, target, start, direction, rows, own, trial = source
    for k in own:
        trial[rows[k]] = start[k] + step * direction[k]
    slope = 0.0
    for k in own:
        u = trial[rows[k]]
        total = max(2.0 * u - diagonal[k], 0.0)
        for p in range(begin[k], end[k]):
            total += max(u + trial[np.uint32(indices[p])] - cost[p], 0.0)
        slope += (total - target[k]) * direction[k]
    return slope
