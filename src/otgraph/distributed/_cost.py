"""The cost of a cluster: the points are on every worker, the pairs in blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._parallel import Workers, row_blocks
from otgraph.costs.base import SAMPLE_ROWS, Cost, Screen
from otgraph.distributed import _search
from otgraph.distributed._layout import layout_of, shuffle
from otgraph.distributed._pairs import DistributedPairs
from otgraph.distributed._search import Request

if TYPE_CHECKING:
    from otgraph.costs import Cost as LocalCost
    from otgraph.distributed._cluster import Cluster
    from otgraph.distributed._search import SearchPlan
    from otgraph.typing import FloatArray, LongArray

# Tasks of a search, at least: a few per worker thread of a small cluster, each long enough.
SEARCH_TASKS = 32
SAMPLES_PER_TASK = 2 * SAMPLE_ROWS  # rows that a task compares with all points


@dataclass(frozen=True)
class Description:
    """What the driver knows of a cost on the workers."""

    n: int
    order: LongArray
    scale: float
    largest: float
    identical: bool
    exact: bool | None


class DistributedCost(Cost):
    """A cost that every worker holds; ``future`` is the cost itself."""

    def __init__(
        self,
        cluster: Cluster,
        future: Any,
        *,
        block_rows: int,
        pair_bytes: int,
        workers: Workers,
    ) -> None:
        self.cluster = cluster
        self.future = future
        self.workers = workers
        self._pair_bytes = pair_bytes
        self._block_rows = block_rows
        known: Description = cluster.result(cluster.submit("description", _describe, future))
        self.n, self.order = known.n, known.order
        self.scale, self.largest = known.scale, known.largest
        self.identical, self.exact = known.identical, known.exact
        self._n_searches = self._widened = 0

    def neighbors(self, k: int) -> DistributedPairs:
        """Pairs of near points, about k per point: a first guess, not a promise."""
        request = self._request("search", k=min(k, self.n - 1))
        plan = self._plan(request)
        _, pairs = self._search("search", request, plan)
        return pairs

    def screen(self, upper: FloatArray, rows: LongArray | None = None) -> Screen:
        """Every pair with c_ij < upper_i + upper_j, or only those of some points."""
        bound = self.cluster.hold(upper).pieces
        some = [] if rows is None else self.cluster.hold(rows).pieces
        request = self._request("screen", of_some_rows=rows is not None)
        plan = self._plan(request, bound, some)
        self.exact = plan.exact
        checked, pairs = self._search("screen", request, plan, bound, some)
        return Screen(upper, pairs, plan.complete, self.n_pairs if plan.complete else checked)

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points."""
        costs: FloatArray = self.cluster.result(
            self.cluster.submit("sample", _sample, self.future, rows)
        )
        return costs

    def count_below(self, rows: LongArray, upper: FloatArray) -> LongArray:
        """Number of pairs with c_ij < upper_i + upper_j for some points i and all j."""
        return self._of_rows("sample", _search.count_below, rows, upper)

    def excess(self, rows: LongArray, u: FloatArray) -> FloatArray:
        """Sum of (u_i + u_j - c_ij)_+ over all j for some points i."""
        return self._of_rows("sample", _search.excess, rows, u)

    def widen(self) -> bool:
        """Look into more cells where only near ones were looked into."""
        if self.exact:
            return False
        self._widened += 1
        return True

    def available_bytes(self) -> int:
        """Memory that pairs may take on all workers together."""
        return self._pair_bytes

    def _of_rows(self, name: str, function: Any, rows: LongArray, vector: FloatArray) -> Any:
        pieces = self.cluster.hold(vector).pieces
        tasks = [
            self.cluster.submit(name, function, self.future, rows[a:b], pieces)
            for a, b in row_blocks(len(rows), SAMPLES_PER_TASK)
        ]
        return np.concatenate(self.cluster.gather(tasks))

    def _request(self, name: str, *, k: int | None = None, of_some_rows: bool = False) -> Request:
        self._n_searches += 1
        return Request(f"{name} {self._n_searches}", self.exact, self._widened, k, of_some_rows)

    def _plan(
        self, request: Request, bound: list[Any] | None = None, rows: list[Any] | None = None
    ) -> SearchPlan:
        future = self.cluster.submit(
            "plan", _search.plan_search, self.future, request, bound or [], rows or []
        )
        plan: SearchPlan = self.cluster.result(future)
        return plan

    def _search(
        self,
        label: str,
        request: Request,
        plan: SearchPlan,
        bound: list[Any] | None = None,
        rows: list[Any] | None = None,
    ) -> tuple[int, DistributedPairs]:
        """Number of pairs looked at, and those found, sorted into blocks of rows."""
        cluster = self.cluster
        cluster.watch()
        cluster.spread(self.future)  # each time: Dask drops copies that nobody needs just now
        layout = layout_of(self.n, self._block_rows)
        n_tasks = max(SEARCH_TASKS, 2 * len(layout.ranges))
        parts = row_blocks(plan.n_parts, max(1, -(-plan.n_parts // n_tasks)))
        shared = (self._block_rows, bound or [], rows or [])
        parcels = [
            cluster.submit(label, _search.find_pairs, self.future, request, part, *shared)
            for part in parts
        ]
        name = f"rows-of-{label}"
        checked, blocks = shuffle(cluster, layout, name, parcels, _search.join_pairs, label)
        return sum(checked), DistributedPairs.of(cluster, layout, blocks)


def _describe(cost: LocalCost) -> Description:
    return Description(cost.n, cost.order, cost.scale, cost.largest, cost.identical, cost.exact)


def _sample(cost: LocalCost, rows: LongArray) -> FloatArray:
    return cost.sample(rows)
