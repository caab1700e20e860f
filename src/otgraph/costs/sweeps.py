"""Points sorted by cells or by the leaves of a tree, which fill the lists of a block of queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._kernels import euclidean as euclidean_kernels
from otgraph._kernels import lists as list_kernels
from otgraph._kernels import sweep as kernels
from otgraph._kernels import tree as tree_kernels
from otgraph._kernels.tree_sweep import sweep_tree
from otgraph.costs.partition import (
    cell_centers,
    consecutive_cells,
    enclosing_cells,
    label_order,
    leaf_order,
    nearest_center,
)

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.typing import Float32Array, FloatArray, IntArray, LongArray

CELLS_PER_ROOT = 3.0  # number of cells, relative to sqrt(n)
MOST_COLUMNS = 256  # larger cells are divided, so that a list has room for a whole cell
CENTERS_PER_LEAF = 4  # cells that are next to each other in the order of the cells
LEAF_POINTS = 8  # most points of a leaf of the tree
FARTHEST = 1e9  # coordinates are clipped to this where only an order of the queries is needed
FIRST_ROOM = 64  # first length of a list, beside the points of a cell


@dataclass(frozen=True)
class Rule:
    """Which points belong to the list of a query; see `_kernels/lists.py`.

    ``first`` is one number for every query, or one for all.
    """

    kind: int
    first: float | FloatArray
    second: float = 0.0
    room: int = FIRST_ROOM  # entries that a list is expected to have at most
    trimmed: float = 0.0  # share of a complete list of weights that may be dropped from it


@dataclass(frozen=True)
class Values:
    """v = factor · |q - x|^(2 half_power) - lift, with one lift for each point of a structure."""

    factor: float
    half_power: float
    lift: FloatArray


class Lists:
    """Lists of the best points of a block of queries."""

    def __init__(self, rule: Rule, first: FloatArray, room: int) -> None:
        m = len(first)
        self._rule = (rule.kind, first, rule.second)
        self.values, self.columns = np.empty((m, room)), np.empty((m, room), dtype=np.int32)
        self.counts = np.empty(m, dtype=np.int64)
        self.bounds, self._lengths = np.empty((2, m))
        list_kernels.start(rule.kind, first, self.counts, self.bounds, self._lengths)

    def arguments(self, position: int) -> tuple[Any, ...]:
        """The last arguments of the kernels that fill the lists, from a position on."""
        lists = (self.values, self.columns, self.counts, self.bounds, self._lengths)
        return *self._rule, *lists, position

    def lengthen(self) -> None:
        """Twice the room."""
        room = self.values.shape[1]
        self.values = np.pad(self.values, ((0, 0), (0, room)))
        self.columns = np.pad(self.columns, ((0, 0), (0, room)))

    def shorten(self) -> None:
        """Drop what the rule excludes."""
        kind, first, second = self._rule
        list_kernels.shorten_all(
            kind, first, second, self.values, self.columns, self.counts, self.bounds
        )

    def trim(self, share: float) -> None:
        """Drop the smallest weights of complete lists."""
        _, eps, _ = self._rule
        list_kernels.trim(eps, share, self.values, self.columns, self.counts)


class Sorted(ABC):
    """Points in an order in which neighbors are near each other."""

    order: LongArray
    points: FloatArray

    @abstractmethod
    def query_order(self, queries: FloatArray, workers: Workers) -> LongArray:
        """An order of new queries in which neighbors are near each other."""

    @abstractmethod
    def reduced(self, lift: FloatArray) -> FloatArray:
        """Largest lift of every cell or node."""

    @abstractmethod
    def fill(
        self, Q: FloatArray, own: LongArray, values: Values, largest: FloatArray, lists: Lists
    ) -> None:
        """Complete the lists of some queries, which are near each other."""


def cell_count(n: int) -> int:
    """Number of cells for n points."""
    return int(CELLS_PER_ROOT * np.sqrt(n))


class SortedByCells(Sorted):
    """Points sorted by compact cells; without ``compact``, blocks of points as they come.

    ``offsets`` are those of cells by which the points are sorted already.
    """

    def __init__(
        self,
        points: FloatArray,
        workers: Workers,
        *,
        compact: bool,
        offsets: LongArray | None = None,
    ) -> None:
        if offsets is not None or not compact:
            self._centers = np.zeros((1, points.shape[1]), dtype=np.float32)
            self.order, self.points = np.arange(len(points)), points
            if offsets is None:
                self._cells = consecutive_cells(points, MOST_COLUMNS)
            else:
                self._cells = enclosing_cells(points, _divided(offsets, MOST_COLUMNS))
            return
        centers = cell_centers(points, cell_count(len(points)), 0, workers)
        # Cells that are next to each other in memory are near each other in space.
        centers = centers[leaf_order(centers, workers, CENTERS_PER_LEAF)]
        labels = nearest_center(points, centers, workers)
        self._centers = centers
        self.order, offsets = label_order(labels, len(centers))
        self.points = points[self.order]
        self._cells = enclosing_cells(self.points, _divided(offsets, MOST_COLUMNS))

    def query_order(self, queries: FloatArray, workers: Workers) -> LongArray:
        """Queries sorted by their nearest cell."""
        if len(self._centers) == 1:
            return np.arange(len(queries))
        near = np.clip(queries, -FARTHEST, FARTHEST)
        return np.argsort(nearest_center(near, self._centers, workers), kind="stable")

    def reduced(self, lift: FloatArray) -> FloatArray:
        """Largest lift of every cell."""
        return np.asarray(np.maximum.reduceat(lift, self._cells.offsets[:-1]))

    def fill(
        self, Q: FloatArray, own: LongArray, values: Values, largest: FloatArray, lists: Lists
    ) -> None:
        """Complete the lists of some queries, which are near each other."""
        cells = self._cells
        center, left, squares, lower = self._bounded(Q)
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.argsort(np.square(cells.centers - center).sum(axis=1), kind="stable")
        position = 0
        while True:
            position = kernels.sweep(
                self.points, self.order, cells.offsets, values.lift, largest, values.factor,
                values.half_power, Q, own, center, left, squares, lower, near,
                *lists.arguments(position),
            )  # fmt: skip
            if position == cells.n_cells:
                break
            lists.lengthen()
        lists.shorten()

    def _bounded(self, Q: FloatArray) -> tuple[FloatArray, Float32Array, FloatArray, Float32Array]:
        """The center of some queries, the queries in float32 around it, and their squared norms.

        The last array has lower bounds of the squared distances from every cell to each of them.
        """
        cells, (m, d) = self._cells, Q.shape
        center = Q.mean(axis=0)
        left, squares = np.empty((m, d + 1), dtype=np.float32), np.empty(m)
        lower = np.empty((cells.n_cells, m), dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            euclidean_kernels.gather(Q, np.arange(m), center, 2.0, left, squares)
            left[:, -1] = 1.0
            kernels.lower_bounds(left, squares, cells.centers, center, cells.radii, lower)
        return center, left, squares, lower

    def labels_of_cells(self, labels: IntArray) -> IntArray:
        """The label that all points of a cell have, or -1."""
        starts = self._cells.offsets[:-1]
        least, most = np.minimum.reduceat(labels, starts), np.maximum.reduceat(labels, starts)
        return np.where(least == most, least, np.int32(-1))

    def shortest(
        self,
        Q: FloatArray,
        numbers: LongArray,
        group: int,
        labels: tuple[IntArray, IntArray],
        values: Values,
        k: int,
        *,
        inside: bool,
    ) -> tuple[FloatArray, LongArray, LongArray]:
        """The k cheapest pairs of some queries, in common, with points inside or outside a group.

        ``labels`` are those of the points and of the cells. The points must be in the order of the
        cells. Returns the values and both ends, of which the first are the numbers of the queries.
        """
        cells = self._cells
        center, left, squares, lower = self._bounded(Q)
        with np.errstate(over="ignore", invalid="ignore"):
            centers = cells.centers - center
            products = centers @ (2.0 * (Q - center)).T
            near = np.argsort(np.square(centers).sum(axis=1) - (products - squares).max(axis=1))
        best, ends = np.full(k, np.inf), np.zeros((2, k), dtype=np.int64)
        kernels.shortest_pairs(
            self.points, cells.offsets, labels[1], labels[0], group, inside,
            values.factor, values.half_power,
            Q, numbers, center, left, squares, lower, near, best, *ends,
        )  # fmt: skip
        found = np.isfinite(best)
        return best[found], ends[0][found], ends[1][found]


class SortedByTree(Sorted):
    """Points sorted by the leaves of a k-d tree with their boxes, for few dimensions."""

    def __init__(
        self, points: FloatArray, order: LongArray, offsets: LongArray,
        lower: FloatArray, upper: FloatArray,
    ) -> None:  # fmt: skip
        self.points, self.order, self._offsets = points, order, offsets
        self._lower, self._upper = lower, upper

    @classmethod
    def of(cls, points: FloatArray, workers: Workers) -> SortedByTree:
        """A tree of some points."""
        n, d = points.shape
        depth = max(0, int(np.ceil(np.log2(n / LEAF_POINTS))))
        # The tree halves the points repeatedly; the offsets do the same.
        offsets = (np.arange(2**depth + 1) * n) >> depth
        order = leaf_order(points, workers, LEAF_POINTS)
        points = points[order]
        lower, upper = np.empty((2, 2 ** (depth + 1), d))
        tree_kernels.fill_boxes(points, offsets, lower, upper)
        return cls(points, order, offsets, lower, upper)

    def query_order(self, queries: FloatArray, workers: Workers) -> LongArray:
        """Queries sorted by a tree of their own."""
        return leaf_order(queries, workers)

    def reduced(self, lift: FloatArray) -> FloatArray:
        """Largest lift of every node."""
        largest = np.empty(len(self._lower))
        tree_kernels.fill_reaches(lift, self._offsets, largest)
        return largest

    def fill(
        self, Q: FloatArray, own: LongArray, values: Values, largest: FloatArray, lists: Lists
    ) -> None:
        """Complete the lists of some queries, which are near each other."""
        row = 0
        while True:
            row = sweep_tree(
                self.points, self.order, self._offsets, self._lower, self._upper, values.lift,
                largest, values.factor, values.half_power, Q, own, *lists.arguments(row),
            )  # fmt: skip
            if row == len(Q):
                return
            lists.lengthen()


def _divided(offsets: LongArray, most: int) -> LongArray:
    """Offsets of cells of at most ``most`` points."""
    parts = [np.arange(a, b, most) for a, b in pairwise(offsets)]
    return np.append(np.concatenate(parts), offsets[-1])
