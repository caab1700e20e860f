"""Exact searches from any queries: nearest points, and the points that a row of weights needs.

A screen (`points.py`) finds pairs of the points with each other, below a bound that is known. Here
every query has a list of its best points so far, which bounds what can still enter it
(`_kernels/lists.py`). Cells of points, or leaves of a tree in few dimensions, are visited from near
to far and skipped where the bound excludes them. float32 products only preselect, with a proven
margin; values in float64 decide, and ties are broken by the number of the point. One thread looks
at a query from beginning to end. So the result is the same for any cells and any threads.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph._kernels import lists as list_kernels
from otgraph._parallel import row_blocks
from otgraph.costs.sizes import DEFAULT_SIZES, SearchSizes
from otgraph.costs.sweeps import (
    FIRST_ROOM,
    MOST_COLUMNS,
    Lists,
    Rule,
    SortedByCells,
    SortedByTree,
    Values,
    cell_count,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph._parallel import Workers
    from otgraph.costs.sweeps import Sorted
    from otgraph.typing import FloatArray, IntArray, LongArray

QUERY_ROWS = 512  # queries of a task
SAMPLE_QUERIES = 32  # queries that show how long lists are
NO_POINT = -1  # left out by a query that is no point


def nearest_points(k: int) -> Rule:
    """The k nearest points."""
    return Rule(list_kernels.NEAREST, float(k), room=2 * k + FIRST_ROOM)


def transport_below(mass: FloatArray) -> Rule:
    """The values up to the level v with sum (v - v_j)_+ = mass."""
    return Rule(list_kernels.TRANSPORT, mass)


def share_above(eps: float, share: float) -> Rule:
    """The values for which exp(-v_j / eps) is at least this share of the sum."""
    return Rule(list_kernels.SHARE, eps, float(-np.log(share)))


def all_but(share: float, eps: float, n: int) -> Rule:
    """The largest of n weights exp(-v_j / eps), but for at most this share of their sum.

    One half of that are weights too small to be listed, the other half the smallest of the list.
    """
    return replace(share_above(eps, 0.5 * share / n), trimmed=0.5 * share)


class Found(NamedTuple):
    """Lists of all queries, one after the other, each sorted by point."""

    indptr: LongArray
    columns: IntArray
    values: FloatArray


class Bunches(NamedTuple):
    """Points that look for pairs in common: rows ``cuts[b]`` to ``cuts[b + 1]``, and their group.

    The group is the one in which their partners are, or are not.
    """

    rows: LongArray
    cuts: LongArray
    groups: LongArray

    @classmethod
    def by_group(cls, rows: LongArray, labels: LongArray) -> Bunches:
        """The points of each group."""
        rows = rows[np.argsort(labels[rows], kind="stable")]
        firsts = np.flatnonzero(np.diff(labels[rows], prepend=-1))
        return cls(rows, np.append(firsts, len(rows)), labels[rows[firsts]])

    @classmethod
    def one_by_one(cls, rows: LongArray, groups: LongArray) -> Bunches:
        """Every point by itself."""
        return cls(rows, np.arange(len(rows) + 1), groups)


class ShortPairs(NamedTuple):
    """Pairs of bunches: the number of the bunch, the value, the query and the point."""

    bunch: LongArray
    values: FloatArray
    i: LongArray
    j: LongArray


class NearSearch:
    """Points sorted for searches from queries that are scaled like them.

    Parameters
    ----------
    points
        The points, scaled to values about 1.
    workers
        Threads.
    sizes
        Thresholds between the searches.
    offsets
        Those of the cells by which points and queries are sorted already, if they are.
    """

    def __init__(
        self,
        points: FloatArray,
        workers: Workers,
        sizes: SearchSizes = DEFAULT_SIZES,
        offsets: LongArray | None = None,
    ) -> None:
        self.n, self.d = points.shape
        self.workers = workers
        self._given = points
        self._sizes = sizes
        self._offsets = offsets

    def nearest(
        self,
        k: int,
        queries: FloatArray | None = None,
        own: LongArray | None = None,
        *,
        factor: float = 1.0,
        half_power: float = 1.0,
    ) -> tuple[LongArray, FloatArray]:
        """The k nearest points of every query and factor · |q - x|^p, nearest first.

        Without queries these are the points themselves. ``own`` are the points that queries leave
        out.
        """
        m = self.n if queries is None else len(queries)
        if k == 0:
            return np.empty((m, 0), dtype=np.int64), np.empty((m, 0))
        indices, values = np.empty((m, k), dtype=np.int64), np.empty((m, k))

        def keep(rows: LongArray, lists: Lists) -> None:
            indices[rows], values[rows] = lists.columns[:, :k], lists.values[:, :k]

        self._run(nearest_points(k), None, factor, half_power, queries, own, keep)
        return indices, values

    def lists(
        self,
        rule: Rule,
        lift: FloatArray | None = None,
        *,
        factor: float = 1.0,
        half_power: float = 1.0,
        queries: FloatArray | None = None,
        own: LongArray | None = None,
    ) -> Found:
        """The points of every query that the rule keeps, by v = factor · |q - x|^p - lift."""
        m = self.n if queries is None else len(queries)
        counts = np.zeros(m, dtype=np.int64)
        parts: list[tuple[LongArray, IntArray, FloatArray]] = []

        def keep(rows: LongArray, lists: Lists) -> None:
            if rule.trimmed:
                lists.trim(rule.trimmed)
            list_kernels.sort_by_column(lists.values, lists.columns, lists.counts)
            filled = np.arange(lists.columns.shape[1]) < lists.counts[:, None]
            counts[rows] = lists.counts
            parts.append((rows, lists.columns[filled], lists.values[filled]))

        self._run(rule, lift, factor, half_power, queries, own, keep)
        indptr = np.concatenate(([0], np.cumsum(counts)))
        found = Found(indptr, np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1]))
        while parts:
            rows, columns, values = parts.pop()
            list_kernels.put_rows(rows, indptr, columns, values, found.columns, found.values)
        return found

    def shortest(
        self,
        bunches: Bunches,
        queries: FloatArray,
        labels: LongArray,
        k: int,
        *,
        inside: bool,
        factor: float,
        half_power: float,
    ) -> ShortPairs:
        """The k cheapest pairs of each bunch of queries with points inside or outside its group.

        ``labels`` are the groups of the points, which must be sorted by cells already.
        """
        found = self._in_given_cells
        short = labels.astype(np.int32, copy=False)
        known = short, found.labels_of_cells(short)
        values = Values(factor, half_power, np.empty(0))

        def search(bunch: int) -> tuple[FloatArray, LongArray, LongArray]:
            here, group = slice(*bunches.cuts[bunch : bunch + 2]), int(bunches.groups[bunch])
            some = queries[here].astype(np.float64, copy=False)
            return found.shortest(some, bunches.rows[here], group, known, values, k, inside=inside)

        with single_threaded_blas():
            parts = list(self.workers.map(search, range(len(bunches.groups))))
        lengths = [len(part[0]) for part in parts]
        best, i, j = (np.concatenate(some) for some in zip(*parts, strict=True))
        return ShortPairs(np.repeat(np.arange(len(parts)), lengths), best, i, j)

    def expected_length(
        self, rule: Rule, lift: FloatArray | None, *, factor: float, half_power: float,
        queries: FloatArray | None = None,
    ) -> float:  # fmt: skip
        """Mean length of the lists of a few queries."""
        everything = self._given if queries is None else queries
        some = np.unique(np.linspace(0, len(everything) - 1, SAMPLE_QUERIES).astype(np.int64))
        first = np.broadcast_to(rule.first, len(everything))[some]
        own = some if queries is None else None
        found = self.lists(
            replace(rule, first=first), lift, factor=factor, half_power=half_power,
            queries=everything[some], own=own,
        )  # fmt: skip
        return float(found.indptr[-1] / len(some))

    def _run(
        self,
        rule: Rule,
        lift: FloatArray | None,
        factor: float,
        half_power: float,
        queries: FloatArray | None,
        own: LongArray | None,
        keep: Callable[[LongArray, Lists], None],
    ) -> None:
        """Hand the lists of every block of queries to ``keep``."""
        n = self.n
        found = self._sorted_for(n if queries is None else len(queries))
        values = Values(factor, half_power, np.zeros(n) if lift is None else lift[found.order])
        largest = found.reduced(values.lift)
        with single_threaded_blas():
            if queries is None:
                rows, queries, own = found.order, self._given, np.arange(n)
            else:
                rows = found.query_order(queries, self.workers)
            first = np.broadcast_to(np.asarray(rule.first, dtype=np.float64), len(rows))
            left_out = np.full(len(rows), NO_POINT) if own is None else own

            def search(block: tuple[int, int]) -> None:
                some = rows[slice(*block)]
                lists = Lists(rule, first[some], rule.room + MOST_COLUMNS)
                found.fill(queries[some], left_out[some], values, largest, lists)
                keep(some, lists)

            self.workers.run(search, row_blocks(len(rows), QUERY_ROWS), label="search")

    def _sorted_for(self, n_queries: int) -> Sorted:
        """Cells or a tree if there are enough queries to make them for; the result is the same."""
        sizes = self._sizes
        if self.d <= sizes.most_tree_dimensions and self.n >= sizes.fewest_tree_points:
            return self._tree
        if self._offsets is not None:
            return self._in_given_cells
        many = self.n >= sizes.fewest_cell_points and n_queries >= cell_count(self.n)
        return self._cells if many else self._blocks

    @cached_property
    def _tree(self) -> Sorted:
        return SortedByTree.of(self._given, self.workers)

    @cached_property
    def _in_given_cells(self) -> SortedByCells:
        return SortedByCells(self._given, self.workers, compact=False, offsets=self._offsets)

    @cached_property
    def _cells(self) -> Sorted:
        return SortedByCells(self._given, self.workers, compact=True)

    @cached_property
    def _blocks(self) -> Sorted:
        return SortedByCells(self._given, self.workers, compact=False)
