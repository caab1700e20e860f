"""All pairs of few points from one product, which is kept for later looks at some points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._kernels import euclidean as kernels
from otgraph.costs.pairs import empty_chunk
from otgraph.costs.squares import product_error

if TYPE_CHECKING:
    from otgraph.costs.pairs import PairChunk
    from otgraph.typing import Float32Array, FloatArray, LongArray


class FewPoints:
    """Products of few points in float32, which select the pairs whose costs are computed.

    Parameters
    ----------
    points, squares
        The points in float32, and their squared norms.
    costs
        What gives a cost: the points as kernels read them, the factor, and half the power.
    """

    def __init__(
        self, points: Float32Array, squares: FloatArray, costs: tuple[Any, float, float]
    ) -> None:
        self._products = 2.0 * (points @ points.T)
        self._squares = squares
        self._costs = costs
        self._d = points.shape[1]

    def near(self, k: int) -> tuple[Float32Array, PairChunk]:
        """The pairs of the k nearest points of all points, each once and in order.

        Pairs that are left out have 2 x·y - |y|² up to the first result.
        """
        n = len(self._squares)
        beyond, (i, j, costs) = np.empty(n, dtype=np.float32), empty_chunk(n * (n - 1) // 2)
        count = kernels.near_pairs(
            self._products, self._squares.astype(np.float32), k, *self._costs, beyond, i, j, costs
        )
        return beyond, (i[:count], j[:count], costs[:count])

    def below(self, upper: FloatArray, reach: FloatArray, rows: LongArray) -> PairChunk:
        """The pairs of some points with c_ij < upper_i + upper_j.

        ``reach`` are numbers with |x_i - x_j|² < reach_i + reach_j for all these pairs.
        """
        squares = self._squares
        gap = reach - squares
        size = 2.0 * (squares + squares.max()) + np.abs(gap)
        gap += product_error(size + size.max(), self._d)
        i, j, costs = empty_chunk(len(rows) * len(squares))
        with np.errstate(over="ignore"):  # a reach beyond float32 is infinite: all pairs pass
            limits = gap.astype(np.float32)
        count = kernels.pairs_of_rows(
            self._products, limits, rows, *self._costs, upper, i, j, costs
        )  # fmt: skip
        return i[:count], j[:count], costs[:count]
