"""Screens of all pairs, remembered: a later, lower bound needs no new pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._memory import megabytes
from otgraph.costs.base import Screen
from otgraph.exceptions import MemoryLimitError

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.solvers.solve import Solution
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
        self._upper: FloatArray | None = None
        self._screen: Screen | None = None

    def screen(
        self, u: FloatArray, slack: FloatArray, *, prune: bool = True
    ) -> tuple[FloatArray, Screen]:
        """A bound above ``u``, and the pairs with c_ij < bound_i + bound_j.

        Points whose u is below the bound that is known already keep that bound. If only a few
        are above it, a pass over their pairs completes what is known. With ``prune`` the bound
        is lowered to u + slack where it was higher, which drops idle pairs.
        """
        wanted = u + slack
        if self._upper is None or self._screen is None:
            self._full_pass(wanted)
        else:
            escaped = np.flatnonzero(u > self._upper)
            if len(escaped) > PARTIAL_SHARE * len(u):
                self._full_pass(wanted if prune else np.maximum(wanted, self._upper))
            elif len(escaped):
                self._partial_pass(wanted, escaped)
                prune = False  # these pairs are few, and one more copy would not pay
        upper, known = self._upper, self._screen
        assert upper is not None  # every branch above leaves both
        assert known is not None
        if not prune or not np.any(wanted < upper):
            return upper, known
        upper = np.minimum(wanted, upper)
        pairs = known.pairs.below(upper, self.cost.workers)
        return upper, Screen(pairs, known.complete, known.pairs_checked)

    def _full_pass(self, upper: FloatArray) -> None:
        self._refuse_what_does_not_fit(upper)
        self.forget()  # frees the old pairs before the new ones come
        self._upper, self._screen = upper, self.cost.screen(upper)
        self.n_passes += 1

    def _partial_pass(self, wanted: FloatArray, escaped: LongArray) -> None:
        assert self._upper is not None  # the caller looked
        assert self._screen is not None
        upper = self._upper.copy()
        upper[escaped] = wanted[escaped]
        found = self.cost.screen(upper, rows=escaped)
        pairs = self._screen.pairs.merged(found.pairs, self.cost.workers)
        self._upper = upper
        self._screen = Screen(pairs, self._screen.complete, self._screen.pairs_checked)

    def shrink(self, solution: Solution) -> None:
        """Remember only what a solution needed: those of smaller eps hardly need more."""
        if solution.upper is not None and solution.screen is not None:
            self._upper, self._screen = solution.upper, solution.screen

    def forget(self) -> None:
        """Drop what is remembered, for a cost that now looks further."""
        self._upper = self._screen = None

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
