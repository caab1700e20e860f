"""Points shared by the workers: each holds some groups of whole cells.

Blocks of rows are read where they are stored. Reductions over the blocks give the center and the
scale, a sample of the points gives the centers of the cells, and every block finds the cells of its
points. Then the points are shuffled once, so that cells are whole. The driver holds a few numbers
per point and per cell, and no process holds all points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph._parallel import Workers, row_blocks
from otgraph.costs.partition import (
    ASSIGN_ROWS,
    KMEANS_ROUNDS,
    Partition,
    enclosing_cells,
    first_centers,
    moved_centers,
    nearest_center,
    sampled_rows,
    spatial_order,
)
from otgraph.costs.points import cell_count
from otgraph.costs.scaling import (
    Placement,
    center_of,
    mean_of_sample,
    normalization,
    sampled_pairs,
    sum_rows,
)
from otgraph.costs.sizes import DEFAULT_SIZES
from otgraph.costs.squares import (
    divided,
    largest_entry,
    power_of_two,
    row_squares,
    subtracted_squares,
    unit_rows,
)
from otgraph.costs.windows import Frame, Group
from otgraph.distributed._blocks import in_order, pieces_of
from otgraph.distributed._cluster import Kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distributed import Future

    from otgraph.distributed._cluster import Cluster
    from otgraph.distributed._source import Source
    from otgraph.typing import Array, Float32Array, FloatArray, IntArray, LongArray

    # Points and the numbers of their cells, by the number of the group, or of the block.
    Pieces = dict[int, tuple[Array, IntArray]]

LISTED_PAIRS = 1 << 18  # pairs that are sent to a task: 2 MB
SAMPLE_PARTS = 8  # in which the cells of sampled points are found, at most,
PARTS_PER_THREAD = 2  # and for each thread
FEWEST_GROUPS = 8  # so that a few workers share the work


@dataclass(frozen=True)
class SharedPoints:
    """Groups of cells on the workers, as the driver sees them.

    ``bounds`` are the first cells of the groups, and the number of cells. ``order`` are the points
    by their numbers in the input, sorted by cell.
    """

    cluster: Cluster
    frame: Frame
    cells: Partition
    bounds: LongArray
    groups: list[Future]
    order: LongArray
    largest: float  # upper bound of all costs
    row_bytes: int  # of a point as it was given

    def cell_bytes(self) -> LongArray:
        """Size of every cell."""
        return np.diff(self.cells.offsets) * self.row_bytes

    def group_bytes(self) -> LongArray:
        """Size of every group."""
        return np.diff(self.cells.offsets[self.bounds]) * self.row_bytes

    def ranges(self) -> list[tuple[int, int]]:
        """First and last point of every group."""
        return list(pairwise(self.cells.offsets[self.bounds].tolist()))

    def rows(self, rows: LongArray) -> FloatArray:
        """Some of the points, scaled and centered, in this process."""
        found: FloatArray = self.cluster.result(self.rows_there(rows))
        return found

    def rows_there(self, rows: LongArray) -> Future:
        """The same on a worker."""
        return self._joined(rows, self.frame)

    def held_there(self, rows: LongArray) -> Future:
        """The same as costs hold them: scaled, and centered unless they stay float32."""
        return self._joined(rows, None)

    def _joined(self, rows: LongArray, frame: Frame | None) -> Future:
        order = np.argsort(rows, kind="stable")
        parts = np.split(
            rows[order], np.searchsorted(rows[order], self.cells.offsets[self.bounds[1:-1]])
        )
        tasks = [
            self.cluster.submit("rows", _rows_of, group, self.frame, part - first)
            for group, part, (first, _) in zip(self.groups, parts, self.ranges(), strict=True)
            if len(part)
        ]
        return self.cluster.submit("rows", _joined_rows, tasks, order, frame)


def share_points(
    cluster: Cluster,
    source: Source,
    *,
    metric: str,
    power: float,
    normalize: bool,
    seed: int,
    group_bytes: int,
) -> SharedPoints:
    """Read the points, find their cells, and bring those of each group together.

    ``group_bytes`` is about the size of a group as float64.
    """
    n, d = source.shape
    ranges = row_blocks(n, sum_rows(d))
    blocks = source.blocks(cluster, ranges)
    placement, identical, single = _place(cluster, blocks, ranges, n, cosine=metric == "cosine")
    n_cells = cell_count(n)
    chosen = sampled_rows(n, n_cells, seed)
    places = [np.flatnonzero((chosen >= a) & (chosen < b)) for a, b in ranges]
    samples = [
        cluster.submit("sample", _sample, block, placement, single, chosen[place] - first)
        for block, place, (first, _) in zip(blocks, places, ranges, strict=True)
    ]
    norms = np.concatenate(cluster.notes(samples))
    centers = _centers(cluster, samples, places, n_cells)
    del samples
    mean_square, largest_square = float(norms.mean()), float(norms.max(initial=0.0))
    del norms

    def mean(power: float) -> float:
        if identical:
            return 0.0
        if power == 2.0:
            return 2.0 * mean_square
        return _sampled_mean(cluster, blocks, ranges, (placement, single), 0.5 * power, seed)

    numbers = normalization(placement, mean, metric=metric, power=power, normalize=normalize)
    frame = Frame(placement, *numbers, identical, DEFAULT_SIZES, single)
    largest = frame.factor * (4.0 * largest_square) ** frame.half_power
    labels = [
        cluster.submit("labels", _labels, block, placement, single, centers) for block in blocks
    ]
    row_bytes = d * source.itemsize
    group_points = group_bytes // (8 * d)
    return _grouped(cluster, blocks, labels, frame, largest, n_cells, group_points, row_bytes)


def _centers(
    cluster: Cluster, samples: list[Future], places: list[LongArray], n_cells: int
) -> Future:
    """Centers of the cells, as `partition.centers_of` finds them; workers share the points."""
    whole = cluster.submit("joined", _joined_sample, samples, places)
    centers = cluster.submit("part", first_centers, whole, n_cells)
    size = sum(map(len, places))
    n_parts = min(SAMPLE_PARTS, PARTS_PER_THREAD * cluster.n_threads)
    rows = -(-size // (n_parts * ASSIGN_ROWS)) * ASSIGN_ROWS
    parts = [cluster.submit("part", _rows, whole, a, b) for a, b in row_blocks(size, rows)]
    for _ in range(KMEANS_ROUNDS):
        labels = [cluster.submit("nearest", _nearest, part, centers) for part in parts]
        centers = cluster.submit("centers", _moved, whole, centers, labels)
    return cluster.submit("order", _in_order, centers)


def _place(
    cluster: Cluster,
    blocks: list[Future],
    ranges: list[tuple[int, int]],
    n: int,
    *,
    cosine: bool,
) -> tuple[Placement, bool, bool]:
    """Center and scale of the points, whether they coincide, and whether they stay float32.

    As `scaling._placed`.
    """
    tasks = [
        cluster.submit("extent", _extent, block, cosine, first)
        for block, (first, _) in zip(blocks, ranges, strict=True)
    ]
    largest, firsts, singles = zip(*cluster.gather(tasks, "read"), strict=True)
    unit = power_of_two(max(largest))
    start = Placement(cosine, unit, divided(firsts[0], unit), np.zeros(len(firsts[0])))
    if all(singles) and not cosine:
        placement, identical = _centered(cluster, blocks, n, start, single=True)
        if placement.allows_single:
            return placement, identical, True
    return *_centered(cluster, blocks, n, start, single=False), False


def _centered(
    cluster: Cluster, blocks: list[Future], n: int, start: Placement, *, single: bool
) -> tuple[Placement, bool]:
    """The placement with center and spread, from one that subtracts the first point."""
    tasks = [cluster.submit("sum", _sums, block, start, single) for block in blocks]
    sums = [total for totals in cluster.gather(tasks) for total in totals]
    unscaled = replace(start, center=center_of(sums, n))
    tasks = [
        cluster.submit("extent", _centered_extent, block, unscaled, single) for block in blocks
    ]
    extent = max(cluster.gather(tasks))
    return replace(unscaled, spread=power_of_two(extent)), extent == 0.0


def _sampled_mean(
    cluster: Cluster,
    blocks: list[Future],
    ranges: list[tuple[int, int]],
    placed: tuple[Placement, bool],
    half_power: float,
    seed: int,
) -> float:
    """Mean power of the distances of random pairs, found by tasks for each two blocks."""
    chunks = list(sampled_pairs(ranges[-1][1], seed))
    i, j = (np.concatenate(ends) for ends in zip(*chunks, strict=True))
    rows = ranges[0][1]
    both = (i // rows) * len(blocks) + j // rows
    order = np.argsort(both, kind="stable")
    names, starts = np.unique(both[order], return_index=True)
    tasks = []
    for name, listed in zip(names.tolist(), np.split(order, starts[1:]), strict=True):
        a, b = divmod(name, len(blocks))
        for first, last in row_blocks(len(listed), LISTED_PAIRS):
            some = listed[first:last]
            ends = ((i[some] - a * rows).astype(np.int32), (j[some] - b * rows).astype(np.int32))
            own = (blocks[a], blocks[b], *placed, *ends)
            tasks.append(cluster.submit("distances", _distances, *own))
    squares = np.empty(len(i))
    squares[order] = np.concatenate(cluster.gather(tasks))
    return mean_of_sample(np.split(squares, len(chunks)), half_power)


def _grouped(
    cluster: Cluster,
    blocks: list[Future],
    labels: list[Future],
    frame: Frame,
    largest: float,
    n_labels: int,
    group_points: int,
    row_bytes: int,
) -> SharedPoints:
    """The points of each group of cells, from all blocks."""
    found = np.concatenate(cluster.gather(labels, "cells"))
    counts = np.bincount(found, minlength=n_labels)
    numbers = np.cumsum(counts > 0) - 1  # cells without points are left out
    offsets = np.concatenate(([0], np.cumsum(counts[counts > 0])))
    bounds = group_bounds(offsets, group_points)
    pieces = [
        cluster.submit("split", _split, block, own, numbers.astype(np.int32), bounds)
        for block, own in zip(blocks, labels, strict=True)
    ]
    blocks.clear()  # the last reference: a block is freed when it has been split
    labels.clear()
    filled = cluster.notes(pieces, "share")
    parts = pieces_of(cluster, "piece", pieces, filled, len(bounds) - 1)
    del pieces
    parts.reverse()
    groups = [
        cluster.submit("group", _group, frame, first, offsets[first : last + 1], parts.pop())
        for first, last in pairwise(bounds.tolist())
    ]
    centers, radii = (
        np.concatenate(parts) for parts in zip(*cluster.notes(groups, "share"), strict=True)
    )
    cells = Partition(offsets, centers, radii)
    order = np.argsort(found, kind="stable")
    return SharedPoints(cluster, frame, cells, bounds, groups, order, largest, row_bytes)


def group_bounds(offsets: LongArray, group_points: int) -> LongArray:
    """The first cells of groups of about equal size, and the number of cells.

    Groups are made of the blocks of cells in which products are computed.
    """
    cells = Partition(offsets, np.empty((len(offsets) - 1, 0)), np.empty(len(offsets) - 1))
    first_cells = np.array([first for first, _ in cells.blocks(DEFAULT_SIZES.block_rows)])
    n_groups = max(FEWEST_GROUPS, -(-int(offsets[-1]) // max(1, group_points)))
    wanted = np.linspace(0, offsets[-1], min(n_groups, len(first_cells)) + 1)[:-1]
    places = np.searchsorted(offsets[first_cells], wanted)
    chosen = np.unique(first_cells[np.minimum(places, len(first_cells) - 1)])
    return np.append(chosen, cells.n_cells)


# Tasks ---------------------------------------------------------------------------------


def _extent(block: Array, cosine: bool, start: int) -> tuple[float, FloatArray, bool]:
    """Largest entry, the first row, and whether the points are float32."""
    X = block.astype(np.float64, copy=False)
    if cosine:
        X = unit_rows(X, start=start)
    return largest_entry(X), X[0].copy(), block.dtype == np.float32


def _sums(block: Array, placement: Placement, single: bool) -> list[FloatArray]:
    """Sums of the points, in the blocks in which one process adds them."""
    if single:
        return [part.sum(axis=0) for part in placement.single(block).blocks()]
    return [_placed(block, placement, single).sum(axis=0)]


def _centered_extent(block: Array, placement: Placement, single: bool) -> float:
    return largest_entry(_placed(block, placement, single))


def _sample(
    block: Array, placement: Placement, single: bool, rows: LongArray
) -> Kept[Float32Array, FloatArray]:
    """Some points for the centers of cells; reports squared norms."""
    points = _placed(block, placement, single)
    return Kept(points[rows].astype(np.float32), row_squares(points))


def _joined_sample(samples: Sequence[Float32Array], places: Sequence[LongArray]) -> Float32Array:
    """All points of the sample, in its order."""
    sample = np.empty((sum(map(len, places)), samples[0].shape[1]), dtype=np.float32)
    for found, place in zip(samples, places, strict=True):
        sample[place] = found
    return sample


def _rows(sample: Float32Array, first: int, last: int) -> Float32Array:
    return sample[first:last].copy()


def _nearest(points: Float32Array, centers: Float32Array) -> LongArray:
    return nearest_center(points, centers, Workers(1))


def _moved(
    sample: Float32Array, centers: Float32Array, labels: Sequence[LongArray]
) -> Float32Array:
    return moved_centers(sample, centers, np.concatenate(labels))


def _in_order(centers: Float32Array) -> Float32Array:
    return centers[spatial_order(centers)]


def _labels(block: Array, placement: Placement, single: bool, centers: Float32Array) -> IntArray:
    """The cells of the points of a block."""
    points = _placed(block, placement, single)
    return nearest_center(points, centers, Workers(1)).astype(np.int32)


def _distances(
    left: Array, right: Array, placement: Placement, single: bool, i: IntArray, j: IntArray
) -> FloatArray:
    """Squared distances of listed points of two blocks."""
    ends, places = zip(*(np.unique(rows, return_inverse=True) for rows in (i, j)), strict=True)
    both = (left[ends[0]], right[ends[1]])
    x, y = (_placed(points, placement, single) for points in both)
    return subtracted_squares(x, y, *places)


def _split(
    block: Array, labels: IntArray, numbers: IntArray, bounds: LongArray
) -> Kept[Pieces, set[int]]:
    """The points of a block by group, each with its cell; reports which groups have any."""
    cells = numbers[labels]
    order = np.argsort(cells, kind="stable")
    cuts = np.searchsorted(cells[order], bounds)
    pieces = {
        g: (block[order[a:b]], cells[order[a:b]])
        for g, (a, b) in enumerate(pairwise(cuts.tolist()))
        if a < b
    }
    return Kept(pieces, set(pieces))


def _group(
    frame: Frame, first: int, offsets: LongArray, pieces: Sequence[Pieces]
) -> Kept[Group, tuple[FloatArray, FloatArray]]:
    """The points of some cells in order; reports centers and radii of the cells."""
    points, cells = (np.concatenate(parts) for parts in zip(*in_order(pieces), strict=True))
    points = points[np.argsort(cells, kind="stable")]
    local = offsets - offsets[0]
    with single_threaded_blas():
        around = enclosing_cells(frame.own(frame.held(points)), local)
    numbers = np.arange(first, first + len(local) - 1)
    group = Group(points, numbers, offsets[:-1], local, around.centers, around.radii)
    return Kept(group, (around.centers, around.radii))


def _rows_of(group: Group, frame: Frame, rows: LongArray) -> Array:
    return frame.held(group.points[rows])


def _joined_rows(parts: Sequence[Array], order: LongArray, frame: Frame | None) -> Array:
    """Points in the order that was asked for; centered, if a frame is given."""
    points = np.concatenate(parts)
    out = np.empty_like(points)
    out[order] = points
    return out if frame is None else np.asarray(frame.own(out)[:])


def _placed(block: Array, placement: Placement, single: bool) -> FloatArray:
    if single:
        return placement.single(block)[:]
    return np.asarray(placement.place(block.astype(np.float64, copy=False), "X"))
