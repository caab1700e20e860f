"""A partition of the points into compact cells, which allows excluding most pairs.

Any partition gives correct results; compact cells exclude more pairs. A few rounds of k-means on a
sample are compact enough, and take a small share of the time that they save.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph._kernels import euclidean as kernels
from otgraph._parallel import Workers, row_blocks

if TYPE_CHECKING:
    from otgraph.typing import Float32Array, FloatArray, IntArray, LongArray

# Sample size per cell and number of rounds of k-means. More of either changes the share of
# excluded pairs by less than a tenth.
SAMPLE_PER_CELL = 32
KMEANS_ROUNDS = 4
ASSIGN_ROWS = 2048  # points per task
# Cells that are not sorted further: they share a few pages of memory anyway.
LEAF_CELLS = 8
# From so many points on threads build trees of parts, halved so often. Any number gives compact
# leaves, but it must not depend on the threads.
FEWEST_DIVIDED = 1 << 15
HALVINGS = 3
AXIS_ROUNDS = 8  # of power iteration: the direction need not be exact
# With more centers, points are compared with groups of centers first, and then with the centers of
# the nearest groups. Eight groups find the nearest center of 99 % of the points (manifold, 50-d).
MANY_CENTERS = 2000
GROUP_CENTERS = 64
VISITED_GROUPS = 8
NEAR_BLOCK_CELLS = 32  # cells whose nearest cells are found at once
# Nearest cells that are sorted for each wanted one, and at least; mostly these have points enough.
SORTED_CELLS, LEAST_SORTED = 4, 64
# Cells near the mean of such a block, relative to the wanted ones, that tell how far to look.
TRIED_CELLS = 4
# Factor on radii, to cover their rounding errors.
RADIUS_MARGIN = 1.0 + 1e-12


@dataclass(frozen=True)
class Partition:
    """Cells of consecutive points; ``offsets[b]:offsets[b + 1]`` lie within a ball.

    Between two clouds, the cells from ``split`` on belong to the second one, and only cells of
    different clouds are near each other.
    """

    offsets: LongArray
    centers: FloatArray
    radii: FloatArray
    split: int | None = None
    _near: dict[tuple[int | str, int], list[LongArray]] = field(default_factory=dict, repr=False)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.radii)

    @property
    def owner(self) -> LongArray:
        """The cell of every point."""
        return np.repeat(np.arange(self.n_cells), np.diff(self.offsets))

    def divided(self, split: int) -> Partition:
        """The same cells as those of two clouds."""
        return replace(self, split=split, _near={})

    def members(self, cells: LongArray) -> IntArray:
        """The points of some cells."""
        starts = self.offsets[cells]
        sizes = self.offsets[cells + 1] - starts
        shifts = starts - (np.cumsum(sizes) - sizes)
        return np.arange(sizes.sum(), dtype=np.int32) + np.repeat(shifts, sizes).astype(np.int32)

    def blocks(self, n_points: int) -> list[tuple[int, int]]:
        """Ranges of consecutive cells, each with at least so many points if there are more."""
        bounds, first = [], 0
        while first < self.n_cells:
            enough = self.offsets[first] + n_points
            last = int(np.searchsorted(self.offsets, enough)) if enough < self.offsets[-1] else 0
            bounds.append((first, last or self.n_cells))
            first = bounds[-1][1]
        return bounds

    def others(self, cell: int) -> tuple[int, int]:
        """The range of the cells that have pairs with a cell."""
        if self.split is None:
            return 0, self.n_cells
        return (self.split, self.n_cells) if cell < self.split else (0, self.split)

    def nearest(self, count: int, n_points: int = 1) -> list[LongArray]:
        """For each cell the nearest cells, itself included: ``count``, or enough for n_points.

        The result is remembered, because a graph needs it for several searches. Cells that were
        enough for more points begin with those that are enough for fewer.
        """
        for (known, points), near_cells in self._near.items():
            if not isinstance(known, str) and known >= count and points >= n_points:
                return [near[: max(count, self._enough(near, n_points))] for near in near_cells]
        self._near[count, n_points] = self._nearest(count, n_points)
        return self._near[count, n_points]

    def _enough(self, near: LongArray, n_points: int) -> int:
        """How many of these cells have together that many points."""
        sizes = self.offsets[near + 1] - self.offsets[near]
        return int(np.searchsorted(np.cumsum(sizes), n_points)) + 1

    def partners(self, count: int, lift: FloatArray | None = None) -> list[LongArray]:
        """For each cell itself, its nearest cells, and those that have it among their nearest.

        ``lift`` is subtracted from the squared distances to each cell. The first result for a
        count is remembered.
        """
        if ("partners", count) not in self._near:
            near = self.nearest(count) if lift is None else self._nearest(count, 1, lift)
            every = np.arange(self.n_cells)
            itself = every if self.split is None else every[:0]  # a cell of one cloud has no pairs
            ends = np.concatenate([itself, np.repeat(every, [len(cells) for cells in near])])
            others = np.concatenate([itself, *near])
            both = np.concatenate([ends * self.n_cells + others, others * self.n_cells + ends])
            first, second = np.divmod(np.unique(both), self.n_cells)
            cuts = np.searchsorted(first, np.arange(1, self.n_cells))
            self._near["partners", count] = np.split(second, cuts)
        return self._near["partners", count]

    def _nearest(
        self, count: int, n_points: int, lift: FloatArray | None = None
    ) -> list[LongArray]:
        sizes = np.diff(self.offsets)
        squares = np.square(self.centers).sum(axis=1) - (0.0 if lift is None else lift)
        near_cells = []
        for a, b in self._near_blocks():
            first, last = self.others(a)
            few = min(max(SORTED_CELLS * count, LEAST_SORTED), last - first)
            others = self.centers[first:last]
            distances = self.centers[a:b] @ others.T
            distances *= -2.0
            distances += squares[first:last]
            # The wanted cells are not farther than as many of those near the mean of the block.
            from_mean = squares[first:last] - 2.0 * (others @ self.centers[a:b].mean(axis=0))
            n_tried = min(TRIED_CELLS * few, last - first)
            tried = np.argpartition(from_mean, n_tried - 1)[:n_tried]
            limits = np.partition(distances[:, tried], few - 1, axis=1)[:, few - 1]
            for distance, limit in zip(distances, limits, strict=True):
                near = np.flatnonzero(distance <= limit)
                near = near[np.lexsort((near, distance[near]))[:few]]
                if few < last - first and sizes[first + near].sum() < n_points:  # nearly empty ones
                    near = np.argsort(distance, kind="stable")
                near += first
                # A copy: a view would keep all that were sorted.
                near_cells.append(near[: max(count, self._enough(near, n_points))].copy())
        return near_cells

    def _near_blocks(self) -> list[tuple[int, int]]:
        """Ranges of cells of one cloud; consecutive cells are near each other."""
        middle = self.split or 0
        blocks = row_blocks(middle, NEAR_BLOCK_CELLS)
        rest = row_blocks(self.n_cells - middle, NEAR_BLOCK_CELLS)
        return blocks + [(middle + a, middle + b) for a, b in rest]


def consecutive_cells(X: FloatArray, size: int) -> Partition:
    """Cells of ``size`` consecutive rows each; they need not be compact."""
    n = len(X)
    offsets = np.append(np.arange(0, n, size), n)
    return enclosing_cells(X, offsets)


def one_cell(shape: tuple[int, int], largest: float) -> Partition:
    """All points, the largest of whose squared norms is given, in one cell around the origin."""
    n, d = shape
    radius = np.sqrt([largest]) * RADIUS_MARGIN
    return Partition(np.array([0, n]), np.zeros((1, d)), radius)


def cluster_order(
    X: FloatArray, n_cells: int, seed: int, workers: Workers
) -> tuple[LongArray, LongArray]:
    """Order of the points by cell, and the offsets of the cells in that order."""
    centers = cell_centers(X, n_cells, seed, workers)
    return label_order(nearest_center(X, centers, workers), n_cells)


def leaf_order(
    points: FloatArray | Float32Array, workers: Workers, leaf_points: int = 10
) -> LongArray:
    """Order of the points by the leaves of a k-d tree.

    Threads build the trees of eighths, which are halved like the nodes of a tree.
    """
    from scipy.spatial import KDTree  # when it is needed: it takes a tenth of a second

    def leaves(part: LongArray) -> LongArray:
        tree = KDTree(points[part], leafsize=leaf_points, copy_data=False)
        return part[np.asarray(tree.indices)]

    if len(points) < FEWEST_DIVIDED:
        return np.asarray(KDTree(points, leafsize=leaf_points, copy_data=False).indices)
    parts = [np.arange(len(points))]
    for _ in range(HALVINGS):
        halved = workers.map(lambda part: _halved(points, part), parts)
        parts = [half for both in halved for half in both]
    return np.concatenate(list(workers.map(leaves, parts)))


def _halved(points: FloatArray | Float32Array, part: LongArray) -> tuple[LongArray, LongArray]:
    """Both halves of some points, across the longest side of their box, each in order.

    Of points at the median the first ones belong to the first half.
    """
    some = points[part]
    # One axis after the other: numpy takes ten times as long for all of them.
    x = max(some.T, key=np.ptp)
    half = len(x) // 2
    median = np.partition(x, half)[half]
    first = x < median
    first[np.flatnonzero(x == median)[: half - np.count_nonzero(first)]] = True
    return part[np.flatnonzero(first)], part[np.flatnonzero(~first)]


def label_order(labels: LongArray, n_cells: int) -> tuple[LongArray, LongArray]:
    """Like `cluster_order`, for given cells of the points."""
    counts = np.bincount(labels, minlength=n_cells)
    order = np.argsort(labels, kind="stable")
    return order, np.concatenate(([0], np.cumsum(counts[counts > 0])))


def enclosing_cells(X: FloatArray, offsets: LongArray) -> Partition:
    """Cells of points that are already in the order of ``offsets``."""
    n_cells, d = len(offsets) - 1, X.shape[1]
    centers, radii = np.empty((n_cells, d)), np.empty(n_cells)
    for b in range(n_cells):
        members = X[offsets[b] : offsets[b + 1]]
        centers[b] = members.mean(axis=0)
        radii[b] = np.sqrt(np.square(members - centers[b]).sum(axis=1).max())
    return Partition(offsets, centers, radii * RADIUS_MARGIN)


def cell_centers(X: FloatArray, n_cells: int, seed: int, workers: Workers) -> Float32Array:
    """Centers of compact cells, from a sample."""
    return centers_of(X[sampled_rows(len(X), n_cells, seed)].astype(np.float32), n_cells, workers)


def sampled_rows(n: int, n_cells: int, seed: int) -> LongArray:
    """The points from which centers are computed."""
    rng = np.random.default_rng(seed)
    return rng.choice(n, min(n, SAMPLE_PER_CELL * n_cells), replace=False)


def centers_of(sample: Float32Array, n_cells: int, workers: Workers) -> Float32Array:
    """Centers of compact cells of sampled points, in the order of `spatial_order`."""
    centers = first_centers(sample, n_cells)
    for _ in range(KMEANS_ROUNDS):
        centers = moved_centers(sample, centers, nearest_center(sample, centers, workers))
    return centers[spatial_order(centers)]


def first_centers(sample: Float32Array, n_cells: int) -> Float32Array:
    """The first points of a sample; many are sorted, so that groups of centers are compact."""
    centers = sample[:n_cells].copy()
    return centers[spatial_order(centers)] if n_cells > MANY_CENTERS else centers


def moved_centers(sample: Float32Array, centers: Float32Array, labels: LongArray) -> Float32Array:
    """The means of the points of each cell; a cell without points keeps its center."""
    counts = np.bincount(labels, minlength=len(centers))
    order = np.argsort(labels, kind="stable")
    filled = np.flatnonzero(counts)
    starts = np.concatenate(([0], np.cumsum(counts)))[filled]
    moved = centers.copy()
    moved[filled] = np.add.reduceat(sample[order], starts, axis=0) / counts[filled, None]
    return moved


def spatial_order(centers: Float32Array) -> LongArray:
    """An order in which consecutive centers are near each other.

    Sets of centers are halved across their longest direction. Points that are near in space are
    then near in memory, and consecutive cells have few neighbors outside.
    """
    order = np.arange(len(centers))
    with single_threaded_blas():
        _sort_across(centers.astype(np.float64), order)
    return order


def _sort_across(centers: FloatArray, order: LongArray) -> None:
    """Sort some centers in place along their longest direction, and both halves in the same way."""
    if len(order) <= LEAF_CELLS:
        return
    X = centers[order]
    X = X - X.mean(axis=0)
    axis = np.zeros(X.shape[1])
    axis[np.argmax(np.square(X).sum(axis=0))] = 1.0
    for _ in range(AXIS_ROUNDS):
        axis = (X @ axis) @ X
        length = np.sqrt(axis @ axis)
        if length == 0.0:  # all centers coincide
            return
        axis /= length
    order[:] = order[np.argsort(X @ axis, kind="stable")]
    half = len(order) // 2
    _sort_across(centers, order[:half])
    _sort_across(centers, order[half:])


def nearest_center(
    X: FloatArray | Float32Array, centers: Float32Array, workers: Workers
) -> LongArray:
    """Number of the center nearest to each point.

    Of many centers, which are in the order of `spatial_order`, it is the nearest one in the nearest
    groups. Points are processed in blocks of ``ASSIGN_ROWS``. A part of X that begins at a multiple
    of it gives bitwise the same results as the whole.
    """
    labels = np.empty(len(X), dtype=np.int64)
    many, own = len(centers) > MANY_CENTERS, _dual(centers)
    bounds = halves(len(centers), GROUP_CENTERS)
    table = np.ascontiguousarray((_dual(_means(centers, bounds)) if many else own).T)

    def assign(block: tuple[int, int]) -> None:
        a, b = block
        rows = np.ones((b - a, X.shape[1] + 1), dtype=np.float32)
        rows[:, :-1] = X[a:b]
        if many:
            kernels.assign_in_groups(rows, rows @ table, bounds, own, VISITED_GROUPS, labels[a:b])
        else:
            kernels.assign(rows @ table, labels[a:b])

    with single_threaded_blas():
        workers.run(assign, row_blocks(len(X), ASSIGN_ROWS))
    return labels


def _means(centers: Float32Array, bounds: LongArray) -> Float32Array:
    """Means of groups of consecutive centers."""
    sums = np.add.reduceat(centers, bounds[:-1], axis=0)
    return (sums / np.diff(bounds)[:, None]).astype(np.float32)


def _dual(centers: Float32Array) -> Float32Array:
    """Rows [b, -|b|²/2], whose product with [x, 1] is largest for the nearest center."""
    table = np.empty((len(centers), centers.shape[1] + 1), dtype=np.float32)
    table[:, :-1] = centers
    table[:, -1] = -0.5 * np.square(centers).sum(axis=1)
    return table


def halves(n: int, size: int) -> LongArray:
    """Bounds of groups that `spatial_order` makes by halving, until they have at most ``size``."""
    bounds = np.array([0, n])
    while np.diff(bounds).max() > size:
        middles = bounds[:-1] + np.diff(bounds) // 2
        bounds = np.sort(np.concatenate((bounds, middles)))
    return bounds
