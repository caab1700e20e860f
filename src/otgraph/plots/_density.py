"""Size of points and opacity of lines, from how crowded the picture is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels.lines import add_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from otgraph.typing import FloatArray, IndexArray

POINTS_PER_INCH = 72.0
# Points cover this share of the area where they lie. More would hide the lines beneath them, and
# with less their colors could not be seen.
COVERED_BY_POINTS = 0.3
# Least share of the picture that points cover: if all lie in a few places, these must be visible.
LEAST_COVERED = 0.04
POINT_AREA_RANGE = (0.3, 24.0)  # in square points (1/72 inch)
POINTS_PER_CELL = 4.0  # of the grid that measures where points lie
# Opacity of the lines together where they are densest. Beneath light lines of this opacity paper
# still shines through, and points stand out.
COVERED_BY_LINES = 0.5
DENSEST_QUANTILE = 0.75  # which cells are the densest
STRENGTH_RANGE = (0.002, 0.7)  # of the heaviest lines; the faintest printers can show, together
RASTER = 160  # cells along the longer side, for the density of lines


def scale_of(ax: Axes, positions: FloatArray) -> float:
    """Points (1/72 inch) per unit of the data, with equal axes."""
    box = ax.get_window_extent()
    sides = np.array([box.width, box.height]) / ax.figure.dpi * POINTS_PER_INCH
    extent = np.ptp(positions, axis=0) if len(positions) else np.zeros(2)
    with np.errstate(divide="ignore"):
        scale = float(np.min(sides / extent))
    return scale if np.isfinite(scale) else 1.0


def point_area(positions: FloatArray, scale: float) -> float:
    """Area of a point in square points, so that all together cover a share of where they lie."""
    n = len(positions)
    if n < 2:
        return POINT_AREA_RANGE[1]
    side = max(1, round(np.sqrt(n / POINTS_PER_CELL)))
    low, extent = positions.min(axis=0), np.ptp(positions, axis=0)
    longest = extent.max() or 1.0
    cells = np.floor((positions - low) / longest * side).astype(np.int64).clip(0, side - 1)
    occupied = len(np.unique(cells[:, 0] * side + cells[:, 1]))
    share = max(COVERED_BY_POINTS * occupied / side**2, LEAST_COVERED)
    return float(np.clip(share * (longest * scale) ** 2 / n, *POINT_AREA_RANGE))


def line_strength(
    positions: FloatArray,
    i: IndexArray,
    j: IndexArray,
    opacity: FloatArray,
    width: float,
    scale: float,
) -> float:
    """Opacity of the heaviest lines, so that paper shines through where lines are densest.

    Lines connect rows i and j of the positions, with opacities relative to the heaviest. Their
    width is in points; the scale is points per unit of the data.
    """
    if not len(i):
        return STRENGTH_RANGE[1]
    low, extent = positions.min(axis=0), np.ptp(positions, axis=0)
    cell = (extent.max() or 1.0) / RASTER
    x, y = np.ascontiguousarray((positions - low).T / cell)
    crowd = np.zeros(tuple(np.ceil(extent[::-1] / cell).astype(np.int64) + 1))
    add_lines(x, y, i, j, opacity, 0.5 * width / (cell * scale), crowd)
    covered = crowd[crowd > 0.0]
    if not len(covered):  # all ends of a line are at the same place
        return STRENGTH_RANGE[1]
    densest = float(np.quantile(covered, DENSEST_QUANTILE))
    # Lines of small opacities a_e together have the opacity 1 - exp(-sum a_e).
    return float(np.clip(-np.log1p(-COVERED_BY_LINES) / densest, *STRENGTH_RANGE))
