"""Cells of points in shells, for exact screens; see `_kernels/shells.py`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels.euclidean import REACH_MARGIN
from otgraph._kernels.shells import FLOAT32_UNIT
from otgraph.costs.partition import RADIUS_MARGIN
from otgraph.costs.single import SinglePoints

if TYPE_CHECKING:
    from typing import Any

    from otgraph.costs.partition import Partition
    from otgraph.typing import BoolArray, Float32Array, FloatArray, IntArray, LongArray

SHELLS = 8  # most shells of a cell; twice as many exclude another tenth of the pairs
LANES = 16  # products that a vector instruction compares: widths of shells are multiples
PADDING = np.float32(-3e38)  # product of a column that is no point: below all limits
EMPTY = -1e38  # radius and reach of a shell without points, which nobody meets
# Products are relative to a common center of all cells, unless their rounding errors could exceed
# this share of what the points of a cell can reach: points of a cell far from it would all pass.
COMMON_ERROR = 0.01


@dataclass(frozen=True)
class Shells:
    """The points of some cells as `screen_cells` takes them, in the order of its arguments."""

    center: FloatArray
    table: Float32Array
    center_squares: Float32Array
    norms: FloatArray
    right: Float32Array
    columns: IntArray
    offsets: LongArray
    widths: LongArray
    radii: Float32Array
    reaches: Float32Array
    cell_radii: Float32Array
    cell_reach: Float32Array
    alone: BoolArray
    centers: FloatArray
    right_norms: FloatArray
    right_lasts: FloatArray

    @property
    def arguments(self) -> tuple[Any, ...]:
        """All of them."""
        return tuple(getattr(self, field.name) for field in fields(self))


def shells_of(points: Any, cells: Partition, some: tuple[int, int], reach: FloatArray) -> Shells:
    """Shells of the points in a range of cells, which have consecutive numbers."""
    a, b = some
    first, last = int(cells.offsets[a]), int(cells.offsets[b])
    centers, sizes = cells.centers[a:b], np.diff(cells.offsets[a : b + 1])
    X, reach = points[first:last], reach[first:last]
    owner = np.repeat(np.arange(b - a), sizes)
    center = centers.mean(axis=0)
    from_center = np.sqrt(np.square(X - centers[owner]).sum(axis=1)) * RADIUS_MARGIN
    largest = np.maximum.reduceat(reach, cells.offsets[a:b] - first)
    # A neighbor has about the same reach as the cell.
    extent = from_center + np.sqrt(np.maximum(reach + largest[owner], 0.0))
    order = np.lexsort((-extent, owner))

    n_vectors = -(-sizes // LANES)
    offsets = np.concatenate(([0], np.cumsum(LANES * n_vectors)))
    rank = np.arange(last - first) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = offsets[owner] + rank
    widths = LANES * -(-n_vectors // SHELLS)
    radii = np.full((b - a, SHELLS), EMPTY)
    reaches = radii.copy()
    shell = rank // widths[owner]
    np.maximum.at(radii, (owner, shell), from_center[order])
    np.maximum.at(reaches, (owner, shell), reach[order])

    relative = centers - center
    norms = np.sqrt(np.square(relative).sum(axis=1))
    farthest = norms + cells.radii[a:b] + np.sqrt(np.maximum(2.0 * largest, 0.0))
    error = 4.0 * X.shape[1] * FLOAT32_UNIT * np.square(farthest)
    usual = np.add.reduceat(np.maximum(reach, 0.0), cells.offsets[a:b] - first) / sizes
    alone = error > COMMON_ERROR * usual
    Z = X[order] - np.where(alone[:, None], centers, center)[owner]
    squares = np.square(Z).sum(axis=1)
    right = np.zeros((offsets[-1], X.shape[1] + 1), dtype=np.float32)
    right[:, -1] = PADDING
    columns = np.full(offsets[-1], -1, dtype=np.int32)
    columns[places] = first + order
    right[places, :-1] = Z
    with np.errstate(over="ignore"):  # a reach beyond float32 is infinite: all pairs pass
        right[places, -1] = reach[order] - squares
    lasts = np.abs(reach[order] - squares)
    origin = points.center if isinstance(points, SinglePoints) else np.zeros(X.shape[1])
    return Shells(
        center=center + origin,
        table=np.pad(0.5 * relative, ((0, 0), (0, 1))).astype(np.float32),
        center_squares=np.square(norms).astype(np.float32),
        norms=norms,
        right=right,
        columns=columns,
        offsets=offsets,
        widths=widths,
        radii=raised_radii(radii),
        reaches=raised_reach(reaches),
        cell_radii=raised_radii(cells.radii[a:b]),
        cell_reach=raised_reach(largest),
        alone=alone,
        centers=centers + origin,
        right_norms=np.sqrt(np.maximum.reduceat(squares, cells.offsets[a:b] - first)),
        right_lasts=np.maximum.reduceat(lasts, cells.offsets[a:b] - first),
    )


def raised_radii(radii: FloatArray) -> Float32Array:
    """Radii in float32, rounded in the direction that excludes less."""
    return (radii * (1.0 + 16 * FLOAT32_UNIT)).astype(np.float32)


def raised_reach(reach: FloatArray) -> Float32Array:
    """The same for reaches; one beyond float32 is infinite and excludes nothing."""
    with np.errstate(over="ignore"):
        return (reach + REACH_MARGIN * np.abs(reach)).astype(np.float32)
