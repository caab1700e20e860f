"""Sizes and thresholds of the searches for pairs, measured once (benchmarks/README.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchSizes:
    """When a search uses a tree or cells, and how much it processes at once.

    The result of an exact search does not depend on them. With small values, tests of few points
    use the methods for many points.

    Parameters
    ----------
    most_tree_dimensions, fewest_tree_points
        Up to this dimension, and from this size on, a k-d tree is fastest.
    fewest_cell_points
        With fewer points, one float32 pass over all pairs is cheaper than making cells.
    neighbor_cells
        Cells that are searched for the neighbors of a point, of those near its cell.
    nearest_cells
        Cells near that of a point where an approximate search, or a first bound, looks for the
        nearest points of a few.
    screen_cells
        Cells that an approximate screen searches for the pairs of a cell. They are more than for
        neighbors, because few pairs are missing then.
    many_cells
        With more cells, approximate screens search three times as many for each, but every point
        only those that it is near to. Where cells no longer grow with the points, more and more
        of them hold neighbors of a point: the noise around a manifold has many dimensions.
    auto_pairs_per_point
        search="auto" falls back to the approximate search above this many pairs per point. An
        exact screen would then look at about fifty times as many pairs as all other steps.
    near_share
        An approximate search becomes exact if near cells hold more than this share of all pairs: a
        pass over all of them takes at most about twice as long.
    plain_share
        If more than this share of the (point, cell) combinations remains, plain blocks of columns
        are faster, since each cell copies its points.
    plain_columns
        Columns of a plain block.
    block_rows
        Rows that are compared with a block of columns at once.
    block_entries
        Costs of one block where all pairs are computed in float64: 64 MB per thread.
    """

    most_tree_dimensions: int = 4
    fewest_tree_points: int = 4096
    fewest_cell_points: int = 8192
    neighbor_cells: int = 8
    nearest_cells: int = 16
    screen_cells: int = 48
    many_cells: int = 3000
    auto_pairs_per_point: int = 250_000
    near_share: float = 0.2
    plain_share: float = 0.55
    plain_columns: int = 512
    block_rows: int = 2048
    block_entries: int = 1 << 23


DEFAULT_SIZES = SearchSizes()
