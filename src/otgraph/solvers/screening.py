"""Screens of all pairs, remembered: a later, lower bound needs no new pass."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph._memory import megabytes
from otgraph.exceptions import MemoryLimitError

if TYPE_CHECKING:
    from otgraph.costs import Cost, Screen
    from otgraph.typing import FloatArray, LongArray

# Peak bytes per pair: while the list is sorted into both rows (16 + 2·12), and later for the
# candidates, the active pairs and the plan together (2·12 + 2·4 + 2·20).
BYTES_PER_PAIR = 80
MEMORY_SHARE = 0.7
PARTIAL_SHARE = 0.1  # up to here a pass over single points is cheaper than one over all


class Screener:
    """Answers which pairs a solution below a bound could use."""

    def __init__(self, cost: Cost) -> None:
        self.cost = cost
        self.n_passes = 0
        self._known: Screen | None = None

    def screen(self, u: FloatArray, slack: FloatArray, *, prune: bool = True) -> Screen:
        """The pairs with c_ij < bound_i + bound_j for some bound above ``u``.

        Points whose u is below the bound that is known already keep that bound. If only a few
        are above it, a pass over their pairs completes what is known. With ``prune`` the bound
        is lowered to u + slack where it was higher, which drops idle pairs.
        """
        wanted = u + slack
        known = self._known
        if known is None:
            known = self._full_pass(wanted)
        else:
            escaped = np.flatnonzero(u > known.upper)
            if len(escaped) > PARTIAL_SHARE * len(u):
                upper = wanted if prune else np.maximum(wanted, known.upper)
                del known  # frees the old pairs before the new ones come
                known = self._full_pass(upper)
            elif len(escaped):
                known = self._partial_pass(known, wanted, escaped)
                prune = False  # these pairs are few, and one more copy would not pay
        self._known = known
        if not prune or not np.any(wanted < known.upper):
            return known
        upper = np.minimum(wanted, known.upper)
        return replace(known, upper=upper, pairs=known.pairs.below(upper, self.cost.workers))

    def _full_pass(self, upper: FloatArray) -> Screen:
        self._refuse_what_does_not_fit(upper)
        self._known = None
        self.n_passes += 1
        self.cost.decide(upper)
        return self.cost.screen(upper)

    def _partial_pass(self, known: Screen, wanted: FloatArray, escaped: LongArray) -> Screen:
        upper = known.upper.copy()
        upper[escaped] = wanted[escaped]
        found = self.cost.screen(upper, rows=escaped)
        pairs = known.pairs.merged(found.pairs, self.cost.workers)
        return replace(known, upper=upper, pairs=pairs)

    def shrink(self, screen: Screen | None) -> None:
        """Remember only what a solution needed: those of smaller eps hardly need more."""
        if screen is not None:
            self._known = screen

    def widen(self) -> bool:
        """Make the cost look further, if it can, and forget what it saw so far."""
        if not self.cost.widen():
            return False
        self._known = None
        return True

    def _refuse_what_does_not_fit(self, upper: FloatArray) -> None:
        limit = MEMORY_SHARE * self.cost.available_bytes()
        if self.cost.n_pairs * BYTES_PER_PAIR <= limit:
            return
        need = self.cost.predict_pairs(upper) * BYTES_PER_PAIR
        if need > limit:
            degree = 2.0 * need / BYTES_PER_PAIR / self.cost.n
            msg = (
                f"The graph would have about {degree:,.0f} candidates per point and need "
                f"{megabytes(need)}, but {megabytes(limit)} may be used. Lower `eps`, or ask for a "
                "`mean_degree`."
            )
            raise MemoryLimitError(msg)
