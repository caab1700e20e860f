"""Searches over pairs, divided into parts.

The parts depend only on the cost. They can run in any order, in threads or on other machines, and
together they always find the same pairs.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph.costs.base import Cost, Screen
from otgraph.costs.pairs import FoundPairs, FoundRows, symmetric_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from otgraph._parallel import Workers
    from otgraph.costs.pairs import PairChunk, Pairs
    from otgraph.typing import FloatArray, LongArray


@dataclass(frozen=True)
class Work:
    """A search, described but not run yet.

    Parameters
    ----------
    parts
        The parts of the search.
    find
        Runs one part; returns the number of pairs computed, and the pairs found.
    complete
        Whether the parts cover all pairs.
    whole_rows
        Whether the parts return complete, sorted rows in order, with both (i, j) and (j, i).
    sizes
        Shares of the parts in the work, if they differ much; later parts are the larger ones.
    free
        Takes the buffers of whole rows that were copied; parts that come later write to them.
    reach
        For neighbors among all points: a cost for every point, filled by the parts unless they are
        ``complete``. No pair is missing that costs less than the mean of those of its ends.
    """

    parts: Sequence[Any]
    find: Callable[[Any], tuple[int, list[PairChunk]]]
    complete: bool = False
    whole_rows: bool = False
    sizes: Sequence[float] | None = None
    free: Callable[[Any], None] | None = None
    reach: FloatArray | None = None


class SearchedCost(Cost):
    """A cost c = factor · raw whose searches are divided into parts.

    Parameters
    ----------
    own
        The n points, or their costs, in the order of the cost.
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

    @abstractmethod
    def neighbor_work(self, k: int) -> Work:
        """The search for about k near points of every point."""

    @abstractmethod
    def screen_work(self, upper: FloatArray, rows: LongArray | None = None) -> Work:
        """The search for every pair with c_ij < upper_i + upper_j, or those of some points."""

    def neighbors(self, k: int) -> Pairs:
        """Pairs of near points, about k per point; they need not be the k nearest."""
        with single_threaded_blas(), np.errstate(under="ignore"):
            work = self.neighbor_work(min(k, self.n - 1))
            _, pairs = self._found(work, "search")
        return replace(pairs, reach=work.reach)

    def screen(self, upper: FloatArray, rows: LongArray | None = None) -> Screen:
        """Every pair with c_ij < upper_i + upper_j, or only those of some points."""
        with single_threaded_blas(), np.errstate(under="ignore"):
            work = self.screen_work(upper, rows)
            checked, pairs = self._found(work, "screen")
        return Screen(upper, pairs, work.complete, self.n_pairs if work.complete else checked)

    def _scaled(self, raw: FloatArray) -> FloatArray:
        if self.factor != 1.0:
            raw *= self.factor
        return raw

    def _found(self, work: Work, label: str) -> tuple[int, Pairs]:
        checked = 0
        found = FoundRows(self.n, work.free) if work.whole_rows else FoundPairs()
        parts, sizes = work.parts, work.sizes
        # Where later parts are larger, they come first, or one thread waits for the last of all.
        rising = sizes is not None and not work.whole_rows
        if rising:
            assert sizes is not None
            parts, sizes = parts[::-1], sizes[::-1]
        for n_pairs, chunks in self.workers.map(work.find, parts, label, sizes):
            checked += n_pairs
            found.add(chunks[::-1] if rising else chunks)
        if isinstance(found, FoundRows):
            return checked, found.joined()
        chunks = found.taken()
        return checked, symmetric_pairs(self.n, chunks[::-1] if rising else chunks, self.workers)
