"""Search for pairs, as the workers do it: each part by whoever has the time."""

from __future__ import annotations

import copy
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._parallel import Workers, single_threaded_blas
from otgraph.costs.pairs import Pairs
from otgraph.distributed._blocks import PairBlock, pair_block
from otgraph.distributed._entries import Parcel, parcel, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.costs.search import SearchedCost, Work
    from otgraph.distributed._entries import Entries
    from otgraph.typing import FloatArray, LongArray


@dataclass(frozen=True)
class Request:
    """A search: for ``k`` neighbors, or with an upper bound for the pairs of ``rows``, or all.

    ``name`` is different for every search. ``exact`` says whether all pairs are covered; None
    leaves that to the cost. ``widened`` counts how often an approximate search was widened.
    """

    name: str
    exact: bool | None
    widened: int = 0
    k: int | None = None
    of_some_rows: bool = False


@dataclass(frozen=True)
class SearchPlan:
    """How many parts a search has, and what was decided about it."""

    n_parts: int
    complete: bool
    exact: bool | None


# The last search planned for each cost in this process: its parts come one after another.
_planned: weakref.WeakKeyDictionary[SearchedCost, tuple[str, Work, bool | None]]
_planned = weakref.WeakKeyDictionary()


def plan_search(
    cost: SearchedCost,
    request: Request,
    bound: Sequence[FloatArray] = (),
    rows: Sequence[LongArray] = (),
) -> SearchPlan:
    """What a search will have to look through; ``bound`` and ``rows`` come in pieces."""
    with single_threaded_blas():
        work, exact = _work(cost, request, bound, rows)
    return SearchPlan(len(work.parts), work.complete, exact)


def find_pairs(
    cost: SearchedCost,
    request: Request,
    parts: tuple[int, int],
    block_rows: int,
    bound: Sequence[FloatArray] = (),
    rows: Sequence[LongArray] = (),
) -> Parcel[int]:
    """Look through some parts; the pairs found, in both directions, and the number looked at."""
    checked, entries = 0, []
    with single_threaded_blas():
        work, _ = _work(cost, request, bound, rows)
        for part in work.parts[slice(*parts)]:
            n_pairs, found = work.find(part)
            checked += n_pairs
            entries += found
            if not work.whole_rows:
                entries += [(j, i, c) for i, j, c in found]
    return parcel(entries, cost.n, block_rows, checked)


def join_pairs(n: int, first: int, last: int, entries: Sequence[Entries]) -> PairBlock:
    """Rows ``first:last`` from everything that was found for them."""
    return pair_block(n, first, last, Pairs(*sorted_rows(entries, first, last)))


def below(block: PairBlock, piece_rows: int, upper: Sequence[FloatArray]) -> PairBlock:
    """The pairs of a block with c_ij < upper_i + upper_j."""
    kept = block.pairs.below(block.columns.take(piece_rows, upper), Workers(1))
    return _renumbered(PairBlock(block.columns, kept))


def merge(block: PairBlock, other: PairBlock) -> PairBlock:
    """The pairs of two blocks of the same rows."""
    both = block.with_global_columns().merged(other.with_global_columns(), Workers(1))
    columns = block.columns
    return pair_block(columns.n, columns.first, columns.last, both)


def _renumbered(block: PairBlock) -> PairBlock:
    """The same pairs without the columns that none of them uses any more."""
    columns = block.columns
    return pair_block(columns.n, columns.first, columns.last, block.with_global_columns())


def count_below(cost: SearchedCost, rows: LongArray, upper: Sequence[FloatArray]) -> LongArray:
    """Number of pairs of some points below a bound."""
    return cost.count_below(rows, np.concatenate(upper))


def excess(cost: SearchedCost, rows: LongArray, u: Sequence[FloatArray]) -> FloatArray:
    """Sums of the excess of some points over all their pairs."""
    return cost.excess(rows, np.concatenate(u))


def _work(
    cost: SearchedCost,
    request: Request,
    bound: Sequence[FloatArray],
    rows: Sequence[LongArray],
) -> tuple[Work, bool | None]:
    """What is to be done, and whether it covers all pairs; remembered."""
    name, work, exact = _planned.get(cost, ("", None, None))
    if work is not None and name == request.name:
        return work, exact
    # A copy: the cost here is shared by all tasks of this process, and must stay as it is.
    mine = copy.copy(cost)
    mine.exact = request.exact
    for _ in range(request.widened):
        mine.widen()
    if request.k is not None:
        work = mine.neighbor_work(request.k)
    else:
        some = np.concatenate(rows) if request.of_some_rows else None
        upper = np.concatenate(bound)
        if some is None:
            mine.decide(upper)
        work = mine.screen_work(upper, some)
    _planned[cost] = request.name, work, mine.exact
    return work, mine.exact
