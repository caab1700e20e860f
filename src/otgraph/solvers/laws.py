"""First guesses of the eps that gives a mean degree, from rows that are solved by themselves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels.restricted import row_excess, solve_row
from otgraph._parallel import row_blocks
from otgraph.solvers.state import middle

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.costs.interface import PairSet
    from otgraph.typing import FloatArray, LongArray

# Rows that give the first guess of eps: their median is known to a few percent. Up to ten thousand
# points a quarter of them leads to as many trials, and takes less than one.
LAW_ROWS = 256
FEW_LAW_ROWS = 64
# Rows with all their pairs tell it to some ten percent, also where points have more neighbors than
# first candidates; neighbors up to this multiple of the wanted degree are counted. Only so many
# digits are used, because the last digits of a product may be others on a cluster.
WHOLE_ROWS = 256
MOST_RANKS = 8.0
LAW_DIGITS = 3
SLOPE_RANGE = 1.3  # the slope is that between degrees lower and higher by this factor
# Rows that tell the degree at an eps, to some ten percent.
DEGREE_ROWS = 16
# From here on a trial takes longer than the second guess of eps, from the mean row.
MEAN_LAW_POINTS = 10_000
# Exponent of degree ~ eps^slope before a slope is measured. In theory it is d/(d + 2).
USUAL_SLOPE = 0.7
SMALLEST_SLOPE, LARGEST_SLOPE = 0.1, 2.0  # slopes outside come from jumps of the degree


def row_law(cost: Cost, pairs: PairSet, degree: float, mass: FloatArray) -> tuple[float, float]:
    """First guess of eps, and the slope d log degree / d log eps.

    The guess gives the median row, solved by itself, the wanted degree. The slope is measured
    between half the degree and the degree. In theory it is d/(d + 2), where d is the (unknown)
    intrinsic dimension.
    """
    problem = cost.restrict(pairs, np.full(cost.n, np.inf))
    n_rows = min(cost.n, LAW_ROWS if cost.n >= MEAN_LAW_POINTS else FEW_LAW_ROWS)
    rows = np.arange(n_rows) * (cost.n - 1) // max(n_rows - 1, 1)
    counts, _, costs = problem.entries_of(rows)
    rank = max(1, round(degree))
    half = max(1, rank // 2)
    row_excess(counts, costs, (rank, half), found := np.empty((2, n_rows)))
    full, part = found
    eps = _median_positive(full / mass[rows])
    rise = math.log(eps / _median_positive(part / mass[rows]))
    if cost.n >= MEAN_LAW_POINTS:
        eps = min(eps, _mean_law(counts, costs, mass[rows], degree))
    slope = math.log(rank / half) / rise if rise > 0.0 and rank > half else USUAL_SLOPE
    return eps, min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)


def law_of_all_pairs(cost: Cost, degree: float, mass: FloatArray) -> tuple[float, float] | None:
    """The eps that gives some points the wanted mean degree, each solved by itself with all pairs.

    Also the slope d log degree / d log eps. Where clusters have very different widths, points of
    narrow ones have many times the neighbors of the others, and more than first candidates. An
    approximate search looks for neighbors in near cells only. None if points coincide.
    """
    rows = np.linspace(0, cost.n - 1, min(WHOLE_ROWS, cost.n)).astype(np.int64)
    most = min(int(np.ceil(MOST_RANKS * degree)), cost.n - 2)
    ends, _, found = cost.nearest_pairs(rows, most + 1)
    near = np.full((len(rows), most + 1), np.inf)
    near[np.searchsorted(rows, ends), np.arange(len(ends)) - np.searchsorted(ends, ends)] = found
    steps = _targets(near)
    steps /= mass[rows, None]
    ratios = (1.0 / SLOPE_RANGE, 1.0, SLOPE_RANGE)
    ranks = [int((ratio * degree - 1.0) * len(rows)) for ratio in ratios]
    ranks = [min(max(rank, 0), steps.size - 1) for rank in ranks]
    steps = np.partition(steps.ravel(), sorted(set(ranks)))
    below, eps, above = (float(f"{steps[rank]:.{LAW_DIGITS}g}") for rank in ranks)
    if not 0.0 < below <= above < np.inf:
        return None
    rise = math.log(above / below)
    slope = 2.0 * math.log(SLOPE_RANGE) / rise if rise > 0.0 else USUAL_SLOPE
    return eps, min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)


def degree_at(cost: Cost, eps: float, mass: FloatArray) -> float:
    """About the mean degree for an eps: that of some rows, each solved by itself with all pairs."""
    rows = np.linspace(0, cost.n - 1, min(DEGREE_ROWS, cost.n)).astype(np.int64)
    count = 0
    for a, b in row_blocks(len(rows), cost.sample_rows):
        for row, costs in zip(rows[a:b], cost.sample(rows[a:b]), strict=True):
            costs[row] = np.inf
            count += int(np.count_nonzero(costs < solve_row(costs, eps * mass[row])))
    return count / len(rows)


def _mean_law(counts: LongArray, costs: FloatArray, mass: FloatArray, degree: float) -> float:
    """The eps that gives rows, each solved by itself, the wanted degree on average.

    Where density varies, dense rows have far more neighbors than the median row.
    """
    table = np.full((len(counts), int(counts.max(initial=0)) + 1), np.inf)
    table[np.arange(table.shape[1]) < counts[:, None]] = costs
    table.sort(axis=1)
    needed = _targets(table) / mass[:, None]
    needed = needed[needed < np.inf]
    place = int(degree * len(counts))
    return float(np.partition(needed, place)[place]) if place < len(needed) else np.inf


def _targets(costs: FloatArray) -> FloatArray:
    """The targets from which on rows of sorted costs, each by itself, have one neighbor more.

    The first is for the second neighbor, and so on. Costs that are missing are infinite.
    """
    sums = np.cumsum(np.where(costs < np.inf, costs, 0.0), axis=1)
    return np.arange(1, costs.shape[1]) * costs[:, 1:] - sums[:, :-1]


def _median_positive(values: FloatArray) -> float:
    positive = values[values > 0.0]
    return middle(positive) if len(positive) else 1.0
