"""Searches over pairs in parts.

Which parts there are depends on the cost alone. They can run in any order, in threads or on
other machines, and what they find together is always the same.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from otgraph._parallel import single_threaded_blas
from otgraph.costs.base import Screen
from otgraph.costs.direct import DirectCost
from otgraph.costs.pairs import joined_rows, symmetric_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from otgraph.costs.pairs import PairChunk, Pairs
    from otgraph.typing import FloatArray, LongArray


@dataclass(frozen=True)
class Work:
    """A search that is still to be done.

    Parameters
    ----------
    parts
        What to look through, in pieces.
    find
        Gives for a part the number of pairs looked at, and those that count.
    complete
        Whether the parts cover all pairs.
    whole_rows
        Whether the parts give every pair from both ends, as sorted rows in their order.
    """

    parts: Sequence[Any]
    find: Callable[[Any], tuple[int, list[PairChunk]]]
    complete: bool = False
    whole_rows: bool = False


class SearchedCost(DirectCost):
    """A cost whose pairs are found by looking through parts."""

    @abstractmethod
    def neighbor_work(self, k: int) -> Work:
        """The search for about k near points of every point."""

    @abstractmethod
    def screen_work(self, upper: FloatArray, rows: LongArray | None = None) -> Work:
        """The search for every pair with c_ij < upper_i + upper_j, or those of some points."""

    def neighbors(self, k: int) -> Pairs:
        """Pairs of near points, about k per point: a first guess, not a promise."""
        with single_threaded_blas():
            _, pairs = self._found(self.neighbor_work(min(k, self.n - 1)), "search")
        return pairs

    def screen(self, upper: FloatArray, rows: LongArray | None = None) -> Screen:
        """Every pair with c_ij < upper_i + upper_j, or only those of some points."""
        with single_threaded_blas():
            work = self.screen_work(upper, rows)
            checked, pairs = self._found(work, "screen")
        return Screen(upper, pairs, work.complete, self.n_pairs if work.complete else checked)

    def _found(self, work: Work, label: str) -> tuple[int, Pairs]:
        checked, chunks = 0, []
        for n_pairs, found in self.workers.map(work.find, work.parts, label=label):
            checked += n_pairs
            chunks.extend(found)
        join = joined_rows if work.whole_rows else symmetric_pairs
        return checked, join(self.n, chunks, self.workers)
