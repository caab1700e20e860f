"""Screens of all pairs. The last one is kept, so a lower bound needs no new pass."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from otgraph.solvers.room import require_room_for_screen

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.costs import Cost, Screen
    from otgraph.typing import FloatArray, LongArray

    _Listed = tuple[LongArray, LongArray, FloatArray]  # both ends of pairs, and their costs

# Above this share of points a full pass is cheaper than one over some points. Where it looks at all
# pairs, each once, it takes half as long as one over all points.
PARTIAL_SHARE = 0.1
PARTIAL_SHARE_OF_ALL = 0.3


# If some points are above their bound, those that are below it by less than this share of their
# slack are screened with them. They would leave it next, and another pass takes longer than a few
# rows more.
NEAR_BOUND = 0.1

# More pairs than this are not kept beside the ones that are left after pruning: they take 2.4 GB. A
# larger eps needs another pass then. At a mean degree of 15 four million points have so many.
MANY_PAIRS = 10**8


class Screener:
    """Answers which pairs a solution below a bound could use."""

    def __init__(self, cost: Cost) -> None:
        self.cost = cost
        self.n_passes = 0
        self._known: Screen | None = None
        self._nearest: dict[int, _Nearest] = {}
        self._shortest: dict[tuple[object, ...], _Listed] = {}

    def is_cheap(self, known: Screen, u: FloatArray) -> bool:
        """Whether so few points are above the bound of a screen that only theirs are repeated."""
        share = PARTIAL_SHARE_OF_ALL if self.cost.compares_all else PARTIAL_SHARE
        return int(np.count_nonzero(u > known.upper)) <= share * len(u)

    def nearest(self, rows: LongArray, k: int) -> _Listed:
        """The k cheapest pairs of some points, with both ends; they are remembered."""
        if k not in self._nearest:
            self._nearest[k] = _Nearest(self.cost, k)
        return self._nearest[k].of(rows)

    def shortest(self, rows: LongArray, labels: LongArray, k: int) -> _Listed:
        """The k cheapest pairs from each group of some points to others; they are remembered.

        Where eps changes by a few percent, the groups are often the same.
        """
        known = k, *(blake2b(np.ascontiguousarray(x).data).digest() for x in (rows, labels))
        if known not in self._shortest:
            self._shortest[known] = self.cost.shortest_pairs(rows, labels, k)
        return self._shortest[known]

    def of(self, cost: Cost) -> Screener:
        """A screener of a cost with the same or higher costs; it knows the same pairs."""
        other = Screener(cost)
        other._known = self._known
        return other

    def screen(
        self,
        u: FloatArray,
        slack: FloatArray,
        *,
        prune: bool = True,
        before: Screen | None = None,
        many: float = np.inf,
        free: Callable[[], None] | None = None,
    ) -> Screen:
        """The pairs with c_ij < bound_i + bound_j for some bound above ``u``.

        If ``u`` is below the bound of the last screen, or of ``before``, no pass is needed. If
        only a few points are above it, only their pairs are screened again. With ``prune`` the
        bound is lowered to u + slack where it was higher, which drops idle pairs; before pairs are
        added to the known ones only if these are more than ``many``. ``free`` is called before
        other pairs than the present ones are looked for.
        """
        wanted = u + slack
        known = self._known or before
        if known is None:
            known = self._full_pass(wanted, free)
        else:
            escaped = np.flatnonzero(u > known.upper)
            if not self.is_cheap(known, u):
                upper = wanted if prune else np.maximum(wanted, known.upper)
                del known  # free the old pairs before the new ones are collected
                known = self._full_pass(upper, free)
            elif len(escaped):
                if prune and known.pairs.n_pairs > many:
                    known = self._pruned(known, wanted)
                near = np.flatnonzero(u + NEAR_BOUND * slack > known.upper)
                known = self._partial_pass(known, wanted, near)
                prune = False  # few pairs were added; pruning would copy all of them
        self._known = known
        if not prune or not np.any(wanted < known.upper):
            return known
        pruned = self._pruned(known, wanted)
        if known.pairs.n_pairs > MANY_PAIRS:
            self._known = pruned
        return pruned

    def _pruned(self, known: Screen, wanted: FloatArray) -> Screen:
        upper = np.minimum(wanted, known.upper)
        return replace(known, upper=upper, pairs=known.pairs.below(upper, self.cost.workers))

    def _full_pass(self, upper: FloatArray, free: Callable[[], None] | None = None) -> Screen:
        if free is not None:  # before the question, because what is freed is room for new pairs
            free()
        require_room_for_screen(self.cost, upper)
        self._known = None
        self.n_passes += 1
        self.cost.decide(upper)
        return self.cost.screen(upper)

    def _partial_pass(self, known: Screen, wanted: FloatArray, escaped: LongArray) -> Screen:
        upper = known.upper.copy()
        upper[escaped] = wanted[escaped]
        found = self.cost.screen(upper, rows=escaped)
        pairs = known.pairs.grown(found.pairs, self.cost.workers)
        return replace(known, upper=upper, pairs=pairs)

    def keep(self, screen: Screen | None) -> None:
        """Keep only the pairs that a solution needed; smaller eps rarely need more."""
        if screen is not None:
            self._known = screen

    def forget(self) -> None:
        """Free the last screen and all that is remembered."""
        self._known = None
        self._nearest.clear()
        self._shortest.clear()

    def widen(self) -> bool:
        """Widen the approximate search, if possible, and drop the last screen."""
        if not self.cost.widen():
            return False
        self._known = None
        return True


class _Nearest:
    """The k cheapest pairs of the points that were asked for."""

    def __init__(self, cost: Cost, k: int) -> None:
        self.cost, self.k = cost, k
        self.known = np.empty(0, dtype=np.int64)  # sorted
        self.partners = np.empty((0, k), dtype=np.int64)  # of the known points
        self.costs = np.empty((0, k))

    def of(self, rows: LongArray) -> _Listed:
        new = np.setdiff1d(rows, self.known)
        if len(new):
            self._add(new)
        places = np.searchsorted(self.known, rows)
        partners, costs = self.partners[places], self.costs[places]
        there = partners >= 0
        return np.repeat(rows, there.sum(axis=1)), partners[there], costs[there]

    def _add(self, new: LongArray) -> None:
        i, j, found = self.cost.nearest_pairs(new, self.k)
        partners = np.full((len(new), self.k), -1, dtype=np.int64)
        costs = np.full((len(new), self.k), np.inf)
        place, rank = np.searchsorted(new, i), np.arange(len(i)) - np.searchsorted(i, i)
        partners[place, rank], costs[place, rank] = j, found
        known = np.concatenate([self.known, new])
        order = np.argsort(known)
        self.known = known[order]
        self.partners = np.concatenate([self.partners, partners])[order]
        self.costs = np.concatenate([self.costs, costs])[order]
