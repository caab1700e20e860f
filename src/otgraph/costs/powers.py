"""What every cost made of Euclidean distances has in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._parallel import Workers, row_blocks, single_threaded_blas
from otgraph.costs.base import Cost

if TYPE_CHECKING:
    from otgraph.typing import FloatArray, LongArray

BLOCK_ROWS = 2048


class DistancePowers(Cost):
    """Cost c_ij = (|x_i - x_j| · unit)^p / scale.

    Parameters
    ----------
    points
        Centered points, scaled by a power of two to values about 1, in the order of the cost.
    order
        Place of each in the input.
    power
        Power of the distance.
    factor
        c = factor · (squared distance of the scaled points)^(p/2).
    scale
        What costs of the caller's points were divided by.
    """

    def __init__(
        self,
        points: FloatArray,
        order: LongArray,
        *,
        power: float,
        factor: float,
        scale: float,
        workers: Workers,
    ) -> None:
        self.n = len(points)
        self.order = order
        self.scale = scale
        self.workers = workers
        self.identical = not points.any()
        self._X = points
        self._factor = factor
        self._half_power = 0.5 * power
        farthest = float(np.max(np.einsum("ij,ij->i", points, points), initial=0.0))
        self.largest = factor * (4.0 * farthest) ** self._half_power

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points; products, so accurate to the norms only."""
        some = self._X[rows]
        out = np.empty((len(rows), self.n))

        def fill(block: tuple[int, int]) -> None:
            X = self._X[slice(*block)]
            squares = np.square(some).sum(axis=1)[:, None] + np.square(X).sum(axis=1)
            squares -= 2.0 * (some @ X.T)
            out[:, slice(*block)] = self._factor * np.maximum(squares, 0.0) ** self._half_power

        with single_threaded_blas():
            self.workers.run(fill, row_blocks(self.n, BLOCK_ROWS))
        return out

    def _reach(self, upper: FloatArray) -> FloatArray:
        """Numbers r with r_i + r_j >= |x_i - x_j|² wherever c_ij < upper_i + upper_j.

        For p = 2 this is the condition itself. Otherwise
        (a + b)^(2/p) <= max(1, 2^(2/p - 1)) (a^(2/p) + b^(2/p)) separates the two ends.
        """
        if self._half_power == 1.0:
            return upper / self._factor
        exponent = 1.0 / self._half_power
        convexity = max(1.0, 2.0 ** (exponent - 1.0))
        return convexity * (np.maximum(upper, 0.0) / self._factor) ** exponent
