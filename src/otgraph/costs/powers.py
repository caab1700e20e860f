"""Base class of costs that are powers of Euclidean distances."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph._kernels import lists as list_kernels
from otgraph._kernels import pairs as kernels
from otgraph._memory import require_bytes
from otgraph._parallel import Workers, row_blocks
from otgraph.costs.base import cheapest_of_each
from otgraph.costs.direct import DirectCost, check_new_points
from otgraph.costs.near import NearSearch, all_but
from otgraph.costs.pairs import Pairs, symmetric_pairs
from otgraph.costs.search import SearchedCost
from otgraph.costs.single import SinglePoints, in_order, squares_of
from otgraph.costs.sizes import DEFAULT_SIZES, SearchSizes
from otgraph.costs.squares import largest_entry, row_squares, square_distances, subtracted_squares

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.costs.near import Found
    from otgraph.costs.pairs import PairChunk
    from otgraph.costs.scaling import ScaledPoints
    from otgraph.costs.sweeps import Rule
    from otgraph.typing import FloatArray, IndexArray, LongArray, Points, PointsLike

T = TypeVar("T")

# If the distances of all neighbors found by matrix products are below this many units of rounding,
# their order is unreliable. The row is searched again by subtraction.
NOISE_UNITS = 1e4
# Points beside a point in memory, which is sorted by cells or leaves, that bound its neighborhood.
NEAR_IN_MEMORY = 64
# Sampled rows whose costs to a block of points are in the cache at once: 1 MB.
PARTNER_ROWS = 64
# Bytes per entry of a list: index and value as found, as copied, and as entries of a matrix.
BYTES_PER_ENTRY = 48
BYTES_PER_KEPT_ENTRY = 96  # the same with costs, and in both directions
ABOVE = 1.0 + 1e-9  # so that a partner at the bound is found


class DistancePowers(SearchedCost):
    """Cost c_ij = (|x_i - x_j| · unit)^p / scale, as a power of scaled distances times a factor.

    Parameters
    ----------
    scaled
        The points, scaled to values about 1, and the numbers of this formula.
    workers
        Threads.
    order
        Order in which to keep the points; None leaves them as they are.
    sizes
        Sizes and thresholds of the search.
    """

    def __init__(
        self,
        scaled: ScaledPoints,
        workers: Workers,
        order: LongArray | None = None,
        sizes: SearchSizes = DEFAULT_SIZES,
    ) -> None:
        super().__init__(in_order(scaled.points, order), workers, order)
        self.sizes = sizes
        self.scale = scaled.scale
        self.factor = scaled.factor
        self._half_power = 0.5 * scaled.power
        self._placement = scaled.placement
        self._squares = squares_of(self.own)
        farthest = float(np.max(self._squares, initial=0.0))
        self.largest = self.factor * (4.0 * farthest) ** self._half_power
        self.identical = scaled.identical

    @property
    def _values(self) -> Any:
        """The points as kernels read them: centered, or not if they are float32."""
        return self.own.values if isinstance(self.own, SinglePoints) else self.own

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points."""
        out = np.empty((len(rows), self.n))

        def fill(part: slice, costs: FloatArray) -> None:
            out[:, part] = costs

        self._for_sampled(rows, fill)
        return out

    def _row_totals(
        self, rows: LongArray, u: FloatArray, measure: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        def total(part: slice, costs: FloatArray) -> FloatArray:
            gap = u[rows, None] + u[part] - costs
            here = np.flatnonzero((rows >= part.start) & (rows < part.stop))
            gap[here, rows[here] - part.start] = 0.0
            return measure(gap)

        return np.sum(self._for_sampled(rows, total), axis=0)

    def _partners(
        self, rows: LongArray, groups: LongArray, labels: LongArray, k: int, *, inside: bool
    ) -> tuple[LongArray, LongArray, FloatArray]:
        """As in `Cost`, from lists of each block of columns, while its costs are in the cache."""
        near, found = np.empty((len(rows), k), np.int64), np.empty((len(rows), k))
        for a, b in row_blocks(len(rows), PARTNER_ROWS):
            own = groups[a:b]

            def cheapest(
                part: slice, costs: FloatArray, own: LongArray = own
            ) -> tuple[LongArray, FloatArray]:
                places, best = np.empty((len(own), k), np.int64), np.empty((len(own), k))
                source = (costs, own, labels[part], inside)
                kernels.cheapest_partners(*source, places, best, (0, len(own)))
                return places + part.start, best

            lists = self._for_sampled(rows[a:b], cheapest)
            places, best = (np.concatenate(values, axis=1) for values in zip(*lists, strict=True))
            order = np.argsort(best, axis=1, kind="stable")[:, :k]
            near[a:b] = np.take_along_axis(places, order, axis=1)
            found[a:b] = np.take_along_axis(best, order, axis=1)
        allowed = np.isfinite(found)
        return np.repeat(rows, allowed.sum(axis=1)), near[allowed], found[allowed]

    def _for_sampled(self, rows: LongArray, use: Callable[[slice, FloatArray], T]) -> list[T]:
        """What a function makes of the costs from some points to blocks of consecutive ones."""
        some, some_squares = self.own[rows], self._squares[rows]

        def used(block: tuple[int, int]) -> T:
            return use(slice(*block), self.costs_to(some, some_squares, block))

        with single_threaded_blas():
            return list(self.workers.map(used, self.column_blocks()))

    def column_blocks(self) -> list[tuple[int, int]]:
        """Ranges of points whose costs to others are computed by one matrix product."""
        return row_blocks(self.n, self.sizes.block_rows)

    def costs_to(
        self, some: Points, some_squares: FloatArray, block: tuple[int, int]
    ) -> FloatArray:
        """Costs from any points, given their squared norms, to a range of the points."""
        part = slice(*block)
        squares = square_distances(some, some_squares, self.own[part], self._squares[part])
        return self._scaled(self._powered(squares))

    def _powered(self, squares: FloatArray) -> FloatArray:
        return squares if self._half_power == 1.0 else squares**self._half_power

    def _reach(self, upper: FloatArray) -> FloatArray:
        """Numbers r with r_i + r_j >= |x_i - x_j|² wherever c_ij < upper_i + upper_j.

        For p = 2 this is the condition itself. Otherwise
        (a + b)^(2/p) <= max(1, 2^(2/p - 1)) (a^(2/p) + b^(2/p)) separates the two ends.
        """
        return reaches(upper, self.factor, self._half_power)


class DirectPowers(DistancePowers, DirectCost):
    """Powers of distances within one cloud."""

    search_metric = "euclidean"

    def queries(self, X_new: PointsLike) -> Any:
        """New points, centered and scaled like the points of the graph."""
        queries = self._placement.place(check_new_points(X_new, self.own), "X_new")
        with np.errstate(over="ignore"):
            squares = row_squares(queries)
        if not np.isfinite(squares.sum()):
            row = int(np.flatnonzero(~np.isfinite(squares))[0])
            msg = (
                f"`X_new` has points so far away that their costs overflow (row {row}); drop them."
            )
            raise ValueError(msg)
        return queries

    def raw(self, queries: Points, first: int = 0, start: int = 0, name: str = "X") -> FloatArray:
        """Powers of scaled distances."""
        points, squares = self.own[first:], self._squares[first:]
        return self._powered(square_distances(queries, row_squares(queries), points, squares))

    def raw_of_neighbors(
        self, queries: Points, indices: LongArray, distances: FloatArray
    ) -> FloatArray:
        """Raw costs by subtraction, which does not depend on the rounding of ``distances``."""
        rows = np.repeat(np.arange(len(indices)), indices.shape[1])
        squares = subtracted_squares(queries, self.own, rows, indices.ravel())
        return self._powered(squares.reshape(indices.shape))

    def noise(self, queries: Points) -> float:
        """Rounding errors of the products that find neighbors."""
        largest = max(largest_entry(queries), 1.0) ** 2 * queries.shape[1]
        return float((NOISE_UNITS * np.finfo(np.float64).eps * largest) ** self._half_power)

    def raw_nearest(
        self, k: int, queries: Points, own: LongArray | None
    ) -> tuple[LongArray, FloatArray]:
        """Sparse points are compared with all others, dense ones with those in near cells."""
        if not self.has_lists:
            return super().raw_nearest(k, queries, own)
        everything = queries is self.own
        indices, squares = self.near.nearest(k, None if everything else queries, own)
        return indices, self._powered(squares)

    @property
    def has_lists(self) -> bool:
        """Whether the points can be searched from any queries; sparse ones cannot."""
        return isinstance(self.own, np.ndarray | SinglePoints)

    def lists(
        self,
        rule: Rule,
        lift: FloatArray,
        queries: FloatArray | None = None,
        *,
        entry_bytes: int = BYTES_PER_ENTRY,
        way_out: str = "Pass fewer of them at a time.",
    ) -> Found:
        """The points of every query that a rule keeps, with the values c*_j - lift_j.

        Without queries these are the points themselves, each left out of its own list.
        """
        factor, half_power = self.factor, self._half_power
        length = self.near.expected_length(
            rule, lift, factor=factor, half_power=half_power, queries=queries
        )
        n_queries = self.n if queries is None else len(queries)
        require_bytes(
            length * n_queries * entry_bytes,
            f"About {length:,.0f} weights for each of {n_queries:,} points",
            way_out,
        )
        return self.near.lists(rule, lift, factor=factor, half_power=half_power, queries=queries)

    def heavy_pairs(self, lift: FloatArray, eps: float, share: float) -> Pairs:
        """Pairs of the points without those that carry little of exp((lift_j - c_ij) / eps).

        What a row i lacks sums to at most ``share`` of its sum over all j. A pair that either of
        its rows keeps is kept.
        """
        found = self.lists(
            all_but(share, eps, self.n), lift, entry_bytes=BYTES_PER_KEPT_ENTRY,
            way_out="Lower `eps`, raise `max_error`, or use quadratic_ot_graph.",
        )  # fmt: skip
        chunk = self._with_costs(found)
        del found
        return symmetric_pairs(self.n, chunk, self.workers)

    def _with_costs(self, found: Found) -> list[PairChunk]:
        """Lists of the points as pairs with the costs that a screen gives them."""
        costs = np.empty(len(found.columns))
        pairs = (self._values, found.indptr, found.columns, self.factor, self._half_power)
        blocks = row_blocks(self.n, self.sizes.block_rows)
        self.workers.run(lambda block: list_kernels.list_costs(*pairs, *block, costs), blocks)
        rows = np.repeat(np.arange(self.n, dtype=np.int32), np.diff(found.indptr))
        return [(rows, found.columns, costs)]

    def expected_share(self, eps: float, share: float) -> float:
        """Share of all pairs that a list of `heavy_pairs` has, from a few points."""
        rule = all_but(share, eps, self.n)
        length = self.near.expected_length(
            rule, None, factor=self.factor, half_power=self._half_power
        )
        return length / self.n

    @cached_property
    def near(self) -> NearSearch:
        """The points, sorted for searches from queries."""
        points = self.own[:] if isinstance(self.own, SinglePoints) else self.own
        return NearSearch(points, self.workers, self.sizes)

    def listed(self, rows: IndexArray, columns: IndexArray, queries: Any = None) -> FloatArray:
        """Costs of listed pairs, by subtraction."""
        queries = self.own if queries is None else queries
        squares = subtracted_squares(queries, self.own, rows, columns)
        return self._scaled(self._powered(squares))

    def nearest_pairs(self, rows: LongArray, k: int) -> tuple[LongArray, LongArray, FloatArray]:
        """The k cheapest pairs of each of some points, found by a screen of these points."""
        upper = np.zeros(self.n)
        upper[rows] = self._partner_bounds(rows, k)
        pairs = self.screen(upper, rows).pairs
        assert isinstance(pairs, Pairs)  # a cost in this process finds pairs in this process
        near, found = np.empty((len(rows), k), dtype=np.int64), np.empty((len(rows), k))
        source = (pairs.indptr, pairs.indices, pairs.costs, rows, near, found)
        blocks = row_blocks(len(rows), self.sizes.block_rows)
        self.workers.run(partial(kernels.cheapest_entries, *source), blocks)
        there = np.isfinite(found)
        i, j, costs = np.repeat(rows, there.sum(axis=1)), near[there], found[there]
        short = rows[there.sum(axis=1) < min(k, self.n - 1)]  # an approximate screen misses pairs
        if not len(short):
            return i, j, costs
        more = super().nearest_pairs(short, k)
        i, j, costs = (np.concatenate(both) for both in zip((i, j, costs), more, strict=True))
        return cheapest_of_each(i, i, j, costs, k)

    def _partner_bounds(self, rows: LongArray, k: int) -> FloatArray:
        """A cost that at least k partners of each point do not exceed.

        Points that are near in memory are near in space.
        """
        width = min(NEAR_IN_MEMORY + k, self.n)
        first = np.clip(rows - width // 2, 0, self.n - width)
        costs = self._costs_among(rows, first[:, None] + np.arange(width))
        rank = min(k, width - 1) - 1
        return raised(np.partition(costs, rank, axis=1)[:, rank])

    def _costs_among(self, rows: LongArray, columns: IndexArray) -> FloatArray:
        """Costs of each of some points with its columns; infinite with itself."""
        costs = self.listed(np.repeat(rows, columns.shape[1]), columns.ravel())
        costs = costs.reshape(columns.shape)
        costs[columns == rows[:, None]] = np.inf
        return costs

    def among(self, rows: LongArray) -> FloatArray:
        """Costs of a few points with each other."""
        few = len(rows)
        return self.listed(np.repeat(rows, few), np.tile(rows, few)).reshape(few, few)

    def refined(self, i: LongArray, j: LongArray, costs: FloatArray) -> FloatArray:
        """Costs by subtraction; sampled ones come from matrix products."""
        return self.listed(i, j)


def reaches(upper: FloatArray, factor: float, half_power: float) -> FloatArray:
    """The numbers of `DistancePowers._reach`."""
    if half_power == 1.0:
        return upper / factor
    exponent = 1.0 / half_power
    convexity = max(1.0, 2.0 ** (exponent - 1.0))
    return np.asarray(convexity * (np.maximum(upper, 0.0) / factor) ** exponent)


def raised(costs: FloatArray) -> FloatArray:
    """Bounds that these costs are below, in spite of rounding."""
    return np.asarray(costs * ABOVE + np.finfo(np.float64).tiny)


def can_list(cost: object) -> TypeGuard[DirectPowers]:
    """Whether the points of a cost can be searched from any queries."""
    return isinstance(cost, DirectPowers) and cost.has_lists
