"""Costs of arbitrary pairs: blocks, lists, exact neighbors, new points.

The solver searches for pairs and never needs all of them. Kernels, entropic transport, new points
and distances along edges need given pairs. They use the same cost objects.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._blas import single_threaded_blas
from otgraph._memory import require_bytes
from otgraph._parallel import Workers, cache_blocks
from otgraph._validation import check_points
from otgraph.costs.base import Cost
from otgraph.costs.nearest import nearest
from otgraph.exceptions import argument_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from otgraph.typing import FloatArray, IndexArray, LongArray, Metric, Points, PointsLike

BEYOND_FLOAT64 = (
    "`X` has costs beyond the range of float64; rescale it, or pass `normalize=True` if that "
    "is off."
)
# Bytes per neighbor: index and cost as found, as sorted, and as entries of a matrix.
BYTES_PER_NEIGHBOR = 64


class DirectCost(Cost):
    """A cost c = factor · raw that can be computed for any two points, and for new ones.

    Parameters
    ----------
    own
        The n points as queries, in the order of the cost.
    workers
        Threads.
    order
        Index of each point in the input; None if the order is that of the input.
    """

    factor: float = 1.0

    def __init__(self, own: Any, workers: Workers, order: LongArray | None = None) -> None:
        self.own = own
        self.n = own.shape[0]
        self.order = np.arange(self.n) if order is None else order
        self.workers = workers
        self.search_metric: Any = None  # metric with the same nearest neighbors, or None
        self.keywords: dict[str, Any] = {}  # keywords of that metric

    @abstractmethod
    def queries(self, X_new: PointsLike) -> Any:
        """New points, checked and in the form that `rows` takes."""

    @abstractmethod
    def raw(self, queries: Points, first: int = 0, start: int = 0, name: str = "X") -> FloatArray:
        """Raw costs from some queries to the points ``first:``, a new array.

        The queries are numbered from ``start`` on, and ``name`` is the argument that they come
        from, for the message about a cost that is none.
        """

    def raw_of_neighbors(
        self, queries: Points, indices: LongArray, distances: FloatArray
    ) -> FloatArray:
        """Raw costs of neighbors that were found at these distances in `search_metric`.

        Only costs that name a `search_metric` are asked. A matrix has none.
        """
        msg = f"{type(self).__name__} has no `search_metric` to find neighbors with."
        raise TypeError(msg)

    def noise(self, queries: Points) -> float:
        """Raw cost below which rounding may have changed the order of the neighbors."""
        return 0.0

    def rows(self, queries: Points, start: int = 0, name: str = "X_new") -> FloatArray:
        """Costs from some queries, numbered from ``start`` on, to all points."""
        costs = self._scaled(self.raw(queries, 0, start, name))
        check_costs(costs, start, 0, name)
        return costs

    def listed(self, rows: IndexArray, columns: IndexArray, queries: Any = None) -> FloatArray:
        """Costs of listed pairs of a query and a point; `rows` must be sorted.

        Without queries, these are pairs of the n points.
        """
        name = "X" if queries is None else "X_new"
        queries = self.own if queries is None else queries
        costs = np.empty(len(rows))
        for a, b in cache_blocks(queries.shape[0], self.n):
            span = slice(*np.searchsorted(rows, [a, b]))
            found = self.rows(queries[a:b], a, name)
            costs[span] = found[rows[span] - a, columns[span]]
        return costs

    def matrix(self) -> FloatArray:
        """All costs, exactly symmetric. Callers must check the memory first."""
        out = np.empty((self.n, self.n))

        def fill(block: FloatArray, a: int, b: int) -> None:
            block[...] = self._scaled(self.raw(self.own[a:b], a, a))
            check_costs(block, a, a)

        with single_threaded_blas():
            fill_symmetric(out, fill, self.workers, label="costs")
        return out

    def nearest(
        self, k: int, queries: Points | None = None, own: LongArray | None = None
    ) -> tuple[LongArray, FloatArray]:
        """Indices and costs of the exact k nearest points, ordered by cost, then by index.

        Without queries, these are the neighbors of every point. If the queries are points of
        the cost, ``own`` holds their indices. The point itself is left out by index, because
        duplicates may come before it.
        """
        if queries is None:
            queries, own = self.own, np.arange(self.n)
        n_queries = queries.shape[0]
        require_bytes(
            n_queries * k * BYTES_PER_NEIGHBOR, f"{k:,} neighbors of {n_queries:,} points",
            "Ask for fewer neighbors.",
        )  # fmt: skip
        with single_threaded_blas():
            indices, raw = self.raw_nearest(k, queries, own)
        costs = self._scaled(raw)
        check_costs(costs, 0, indices, "X_new" if own is None else "X")
        return indices, costs

    def raw_nearest(
        self, k: int, queries: Points, own: LongArray | None
    ) -> tuple[LongArray, FloatArray]:
        """Indices and raw costs of the k nearest points, ordered by cost, then by index."""
        return nearest(self, queries, k, own)

    def _scaled(self, raw: FloatArray) -> FloatArray:
        if self.factor != 1.0:
            raw *= self.factor
        return raw


def fill_symmetric(
    matrix: FloatArray,
    fill: Callable[[FloatArray, int, int], None],
    workers: Workers,
    label: str | None = None,
) -> None:
    """Fill the upper triangle in blocks and copy it to the lower one, for exact symmetry.

    ``fill(block, a, b)`` writes to ``block = matrix[a:b, a:]``.
    """

    def fill_both(rows: tuple[int, int]) -> None:
        a, b = rows
        block = matrix[a:b, a:]
        fill(block, a, b)
        square = block[:, : b - a]
        square[...] = np.triu(square) + np.triu(square, 1).T
        matrix[b:, a:b] = block[:, b - a :].T

    workers.run(fill_both, cache_blocks(*matrix.shape), label)


def mean_and_largest(
    block: Callable[[int, int, int], FloatArray],
    n: int,
    blocks: Sequence[tuple[int, int]],
    workers: Workers,
) -> tuple[float, float]:
    """Mean and maximum of all n² costs, including cost 0 of a point with itself.

    ``block(start, stop, first_column)`` gives the costs right of ``first_column``.
    """

    def total(rows: tuple[int, int]) -> tuple[float, float]:
        costs = np.triu(block(*rows, rows[0]), 1)
        return float(costs.sum()), float(costs.max(initial=0.0))

    with single_threaded_blas():
        sums, largest = zip(*workers.map(total, blocks, label="mean cost"), strict=True)
    return 2.0 * float(sum(sums)) / n**2, max(largest)


def check_costs(
    costs: FloatArray,
    start: int,
    columns: int | LongArray,
    name: str = "X",
    metric: Metric | None = None,
) -> None:
    """Raise if a cost is NaN, infinite or negative, with the first such pair.

    Rows are numbered from ``start`` on. Columns are numbered from a number on, or listed.
    """
    # One pass over the numbers. The sum may be infinite for costs that are all finite.
    with np.errstate(all="ignore"):
        sound = not costs.size or (np.isfinite(costs.sum()) and costs.min() >= 0.0)
        if sound or (np.isfinite(costs).all() and costs.min() >= 0.0):
            return
        row, column = (int(x) for x in np.argwhere(~(np.isfinite(costs) & (costs >= 0.0)))[0])
    other = columns + column if isinstance(columns, int) else int(columns[row, column])
    msg = (
        f"`{name}` has a cost that is no number >= 0: that of row {start + row} and point {other} "
        f"is {costs[row, column]:.6g}. "
    )
    if np.isinf(costs[row, column]):
        msg += "Rescale the points, or pass `normalize=True` if that is off."
    elif metric == "correlation":
        msg += "A row of equal values has no correlation: drop such rows, or choose another metric."
    else:
        msg += "Drop these points, or choose another `metric`."
    raise argument_error(ValueError, name, msg)


def check_new_points(X_new: PointsLike, points: Points) -> Any:
    """Points with as many features as those of the graph, sparse if those are."""
    checked = check_points(X_new, name="X_new", min_samples=1)
    if checked.shape[1] != points.shape[1]:
        msg = (
            f"`X_new` must have the {points.shape[1]} features of the points of the graph, got "
            f"{checked.shape[1]}. Select the same columns in the same order."
        )
        raise ValueError(msg)
    if sp.issparse(points):
        return sp.csr_matrix(checked)
    return checked.toarray() if sp.issparse(checked) else checked


def check_new_costs(X_new: PointsLike, n: int) -> FloatArray:
    """Costs from new rows to the n points of a graph on precomputed costs."""
    checked = check_points(X_new, name="X_new", min_samples=1)
    dense: FloatArray = checked.toarray() if sp.issparse(checked) else checked
    if dense.shape[1] != n:
        msg = (
            f"`X_new` must hold the costs to all {n} points of the graph, shape (new points, {n}), "
            f"because it was built with metric='precomputed'; got shape {dense.shape}."
        )
        raise ValueError(msg)
    if dense.min() < 0.0:
        msg = f"`X_new` must hold costs >= 0 with metric='precomputed', got {dense.min():.6g}."
        raise ValueError(msg)
    return dense
