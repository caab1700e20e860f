"""Costs on a cluster: pairs are in blocks of rows.

This module has what all of them share, and the cost of few points, or of metrics without cells,
that every worker holds a copy of. Where workers share the points, see `_shared.py`.
"""

from __future__ import annotations

import copy
import weakref
from dataclasses import dataclass, replace
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph._parallel import Workers, row_blocks
from otgraph.costs.base import SAMPLE_ROWS, Cost, Screen
from otgraph.distributed._blocks import Blocks, Columns, Vector, by_block, shuffle
from otgraph.distributed._pairs import DistributedPairs, join_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distributed import Future

    from otgraph.costs.pairs import PairChunk
    from otgraph.costs.search import SearchedCost, Work
    from otgraph.distributed._blocks import Entries
    from otgraph.distributed._cluster import Cluster, Kept
    from otgraph.typing import Array, FloatArray, LongArray

    Pieces: TypeAlias = Sequence[Array] | None  # of a vector

# Least number of tasks of a search: a few per thread of a small cluster.
SEARCH_TASKS = 32
SAMPLES_PER_TASK = 2 * SAMPLE_ROWS  # rows that a task compares with all points
# Bytes per pair that a step of the solver needs at one time: both rows of the candidates. Lists of
# active pairs are made one block at a time, which has its own room (`_checks.ROW_BYTES`), and are
# packed. While products use these, while pairs travel, 16 bytes each, and when the plan is made,
# candidates are idle, and Dask writes them to disk where memory is short.
BYTES_PER_PAIR = 2 * 12
# Attributes that the driver reads from the cost on the workers.
KNOWN = ("order", "scale", "largest", "identical", "exact", "compares_all")


@dataclass(frozen=True)
class Search:
    """A search for ``k`` neighbors, or for all pairs below an upper bound if k is None.

    ``name`` is different for every search. ``exact`` says whether all pairs are covered; None
    leaves that to the cost. ``widened`` counts how often an approximate search was widened.
    """

    name: str
    exact: bool | None
    widened: int
    k: int | None = None


class DistributedCost(Cost):
    """A cost whose pairs are in blocks of rows on the workers.

    ``order`` are the points by their numbers in the input, and ``pair_bytes`` the memory that
    pairs may take on all workers together.
    """

    bytes_per_pair = BYTES_PER_PAIR

    def __init__(
        self,
        cluster: Cluster,
        order: LongArray,
        *,
        block_rows: int,
        pair_bytes: int,
        workers: Workers,
    ) -> None:
        self.cluster = cluster
        self.n = len(order)
        self.order = order
        self.workers = workers
        self._pair_bytes = pair_bytes
        self._ranges = row_blocks(self.n, block_rows)

    def pair_set(self, i: LongArray, j: LongArray, costs: FloatArray) -> DistributedPairs:
        """Listed pairs, each once, with any costs."""
        pairs = (i.astype(np.int32), j.astype(np.int32), costs)
        mine = by_block([pairs], self.n, self._ranges[0][1], None, both=True).value
        blocks = Blocks(self.cluster, self._ranges, [], [], [])
        for b, (first, last) in enumerate(self._ranges):
            own = [mine[b]] if b in mine else []
            blocks.futures.append(
                self.cluster.submit("listed", join_pairs, self.n, first, last, own)
            )
            # What the task reports, without a round that waits for it.
            ends = np.concatenate([pairs[0][:0], *(end for found in own for end in found[:2])])
            blocks.needs.append(Columns.of(self.n, first, last, ends).need)
            blocks.facts.append(np.count_nonzero((ends >= first) & (ends < last)))
        return DistributedPairs(blocks)

    def usable_bytes(self) -> float:
        """Memory that pairs may take on all workers together."""
        return self._pair_bytes

    def _collected(self, label: str, found: list[Future]) -> tuple[int, DistributedPairs]:
        """Pairs from tasks that end with `found_pairs`, and how many were computed."""
        name = f"rows-of-{label}"
        checked, blocks = shuffle(self.cluster, self._ranges, name, found, join_pairs, label)
        return sum(checked), DistributedPairs(blocks)


class CopiedCost(DistributedCost):
    """A cost that every worker holds a copy of; ``future`` is the cost itself."""

    def __init__(self, cluster: Cluster, future: Future, **options: Any) -> None:
        known = cluster.result(cluster.submit("description", attrgetter(*KNOWN), future))
        facts = dict(zip(KNOWN, known, strict=True))
        super().__init__(cluster, facts.pop("order"), **options)
        for name, value in facts.items():
            setattr(self, name, value)
        self.future = future
        self._n_searches = self._widened = 0

    def forget_points(self) -> None:
        """Free the copies on the workers; no cost can be computed any more."""
        del self.future

    def neighbors(self, k: int) -> DistributedPairs:
        """Pairs of near points, about k per point; they need not be the k nearest."""
        _, _, pairs = self._search("search", k=min(k, self.n - 1))
        if not self.compares_all:
            return pairs
        # Few points: one worker repeats the search to say what it covers.
        reach = self.cluster.submit("reach", _reach, self.future, min(k, self.n - 1))
        return replace(pairs, reach=self.cluster.result(reach))

    def screen(self, upper: FloatArray, rows: LongArray | None = None) -> Screen:
        """Every pair with c_ij < upper_i + upper_j, or only those of some points."""
        bound = Vector.send(self.cluster, upper).pieces
        some = None if rows is None else Vector.send(self.cluster, rows).pieces
        complete, checked, pairs = self._search("screen", bound, some)
        return Screen(upper, pairs, complete, self.n_pairs if complete else checked)

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points."""
        return self._asked("sample", rows)

    def refined(self, i: LongArray, j: LongArray, costs: FloatArray) -> FloatArray:
        """Sampled costs of listed pairs, as accurate as those of a screen."""
        return self._asked("refined", i, j, costs)

    def nearest_pairs(self, rows: LongArray, k: int) -> tuple[LongArray, LongArray, FloatArray]:
        """The k cheapest pairs of each of some points, found by one worker."""
        return self._asked("nearest_pairs", rows, k)

    def shortest_of_groups(
        self, rows: LongArray, labels: LongArray, k: int
    ) -> tuple[LongArray, LongArray, FloatArray]:
        """The k cheapest pairs from some points of each group to points outside the group."""
        return self._asked("shortest_of_groups", rows, labels, k)

    def nearest_inside(self, rows: LongArray, groups: LongArray, labels: LongArray) -> LongArray:
        """For every row, the cheapest partner inside a group that is not its own."""
        return self._asked("nearest_inside", rows, groups, labels)

    def count_below(self, rows: LongArray, upper: FloatArray) -> LongArray:
        """Number of pairs with c_ij < upper_i + upper_j for some points i and all j."""
        return self._of_rows("count_below", rows, upper)

    def excess(self, rows: LongArray, u: FloatArray) -> FloatArray:
        """Sum of (u_i + u_j - c_ij)_+ over all j for some points i."""
        return self._of_rows("excess", rows, u)

    def widen(self) -> bool:
        """Search more cells, if the search is approximate."""
        if self.exact:
            return False
        self._widened += 1
        return True

    def _asked(self, method: str, *arguments: object) -> Any:
        """What one worker's copy of the cost answers."""
        task = self.cluster.submit("sample", methodcaller(method, *arguments), self.future)
        return self.cluster.result(task)

    def _of_rows(self, method: str, rows: LongArray, vector: FloatArray) -> Any:
        """The same for many rows and a vector, from many tasks."""
        pieces = Vector.send(self.cluster, vector).pieces
        tasks = [
            self.cluster.submit("sample", _ask, self.future, method, rows[a:b], pieces)
            for a, b in row_blocks(len(rows), SAMPLES_PER_TASK)
        ]
        return np.concatenate(self.cluster.gather(tasks))

    def _search(
        self,
        label: str,
        bound: list[Future] | None = None,
        rows: list[Future] | None = None,
        k: int | None = None,
    ) -> tuple[bool, int, DistributedPairs]:
        """Whether all pairs were covered, the number of pairs computed, and the pairs found."""
        cluster = self.cluster
        self._n_searches += 1
        search = Search(f"{label} {self._n_searches}", self.exact, self._widened, k)
        shared = (self.future, search, bound, rows)
        n_parts, complete, exact = cluster.result(cluster.submit("plan", _plan_search, *shared))
        if k is None:
            self.exact = exact
        cluster.watch()
        cluster.spread(self.future)  # repeated, because Dask drops copies that no task needs
        n_tasks = max(SEARCH_TASKS, 2 * len(self._ranges))
        found = [
            cluster.submit(label, _find_pairs, *shared, parts, self._ranges[0][1])
            for parts in row_blocks(n_parts, max(1, -(-n_parts // n_tasks)))
        ]
        return complete, *self._collected(label, found)


# Tasks: ``bound`` and ``rows`` come in pieces ------------------------------------------

# The last planned search of each cost in this process; many tasks run parts of it.
_planned: weakref.WeakKeyDictionary[SearchedCost, tuple[str, Work, bool | None]]
_planned = weakref.WeakKeyDictionary()


def _ask(cost: SearchedCost, method: str, rows: LongArray, vector: Sequence[FloatArray]) -> Any:
    return getattr(cost, method)(rows, np.concatenate(vector))


def _plan_search(
    cost: SearchedCost, search: Search, bound: Pieces, rows: Pieces
) -> tuple[int, bool, bool | None]:
    """Number of parts, whether they cover all pairs, and whether the search is now exact."""
    with single_threaded_blas():
        work, exact = _work(cost, search, bound, rows)
    return len(work.parts), work.complete, exact


def _find_pairs(
    cost: SearchedCost,
    search: Search,
    bound: Pieces,
    rows: Pieces,
    parts: tuple[int, int],
    block_rows: int,
) -> Kept[dict[int, Entries], tuple[int, set[int]]]:
    """The pairs in some parts, in both directions; reports how many were computed."""
    checked, entries = 0, []
    with single_threaded_blas():
        work, _ = _work(cost, search, bound, rows)
        for part in work.parts[slice(*parts)]:
            n_pairs, found = work.find(part)
            checked += n_pairs
            entries += found
    if work.whole_rows:  # every pair is there twice
        once = [i > j for i, j, _ in entries]
        entries = [
            (i[some], j[some], c[some]) for (i, j, c), some in zip(entries, once, strict=True)
        ]
    return found_pairs(checked, entries, cost.n, block_rows)


def found_pairs(
    checked: int, found: list[PairChunk], n: int, block_rows: int
) -> Kept[dict[int, Entries], tuple[int, set[int]]]:
    """Pairs by block of rows; reports how many were computed."""
    return by_block(found, n, block_rows, checked, both=True)


def _reach(cost: SearchedCost, k: int) -> FloatArray | None:
    """The costs below which a search for neighbors misses no pair."""
    with single_threaded_blas():
        work = cost.neighbor_work(k)
        for part in () if work.complete else work.parts:
            work.find(part)
    return work.reach


def _work(
    cost: SearchedCost, search: Search, bound: Pieces, rows: Pieces
) -> tuple[Work, bool | None]:
    """The search in parts, and whether it is exact; cached for the next task."""
    name, work, exact = _planned.get(cost, ("", None, None))
    if work is not None and name == search.name:
        return work, exact
    # A copy, because all tasks of this process share the cost.
    mine = copy.copy(cost)
    mine.exact = search.exact
    for _ in range(search.widened):
        mine.widen()
    if bound is None:
        assert search.k is not None  # a search has a bound, or a number of neighbors
        work = mine.neighbor_work(search.k)
    else:
        upper = np.concatenate(bound)
        if rows is None:
            mine.decide(upper)
        work = mine.screen_work(upper, None if rows is None else np.concatenate(rows))
    _planned[cost] = search.name, work, mine.exact
    return work, mine.exact
