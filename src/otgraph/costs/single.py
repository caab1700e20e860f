"""Points in float32, at half the size: they are centered when they are read.

A centered point is no float32 number any more, so the rows stay as they came, but for a power of
two. Blocks of rows are converted to float64 and centered; kernels that need only differences of two
points read the rows themselves. Nothing is computed in float32 because of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._parallel import row_blocks
from otgraph.costs.squares import row_squares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph.typing import Float32Array, FloatArray, LongArray

# Rows that are converted and summed at once: 1 MB in 64 dimensions. On a cluster, blocks of points
# are made of these (`scaling.FEWEST_SUM_ROWS`).
BLOCK_ROWS = 1 << 11
# Lengths whose float32 values can be scaled to about 1: all factors and products stay far from the
# ends of the range.
USUAL_LENGTHS = (2.0**-60, 2.0**60)


@dataclass(frozen=True)
class SinglePoints:
    """Rows ``scale * values[i] - center`` in float64.

    Parameters
    ----------
    values
        The rows in float32.
    scale
        A power of two.
    center
        Mean of the scaled rows.
    """

    values: Float32Array
    scale: float
    center: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points and of coordinates."""
        return self.values.shape

    def __len__(self) -> int:
        """Number of points."""
        return len(self.values)

    def __getitem__(self, rows: Any) -> FloatArray:
        """Some points, in float64."""
        points = self.values[rows].astype(np.float64)
        if self.scale != 1.0:
            points *= self.scale
        points -= self.center
        return points

    def ordered(self, order: LongArray) -> SinglePoints:
        """The points in another order, scaled; a product with a power of two is exact."""
        values = np.empty(self.shape, dtype=np.float32)
        for a, b in row_blocks(len(self), BLOCK_ROWS):
            np.multiply(self.values[order[a:b]], np.float32(self.scale), out=values[a:b])
        return SinglePoints(values, 1.0, self.center)

    def squares(self) -> FloatArray:
        """Squared norms of the points."""
        return np.concatenate([row_squares(block) for block in self.blocks()])

    def blocks(self) -> Iterator[FloatArray]:
        """All points, a block at a time."""
        return (self[slice(*rows)] for rows in row_blocks(len(self), BLOCK_ROWS))


def in_order(points: Any, order: LongArray | None) -> Any:
    """The points in another order, if one is given."""
    if order is None:
        return points
    return points.ordered(order) if isinstance(points, SinglePoints) else points[order]


def squares_of(points: Any) -> FloatArray:
    """Squared norms of the points, whatever holds them."""
    return points.squares() if isinstance(points, SinglePoints) else row_squares(points)
