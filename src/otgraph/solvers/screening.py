"""Screens of all pairs, remembered: a later, lower bound needs no new pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._memory import available_bytes, megabytes
from otgraph.costs.base import Screen
from otgraph.exceptions import MemoryLimitError

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.typing import FloatArray

# Peak bytes per pair: while the list is sorted into both rows (16 + 2·12), and later for the
# candidates, the active pairs and the plan together (2·12 + 2·4 + 2·20).
BYTES_PER_PAIR = 80
MEMORY_SHARE = 0.7


class Screener:
    """Answers which pairs a solution below a bound could use."""

    def __init__(self, cost: Cost) -> None:
        self.cost = cost
        self.n_passes = 0
        self._upper: FloatArray | None = None
        self._screen: Screen | None = None

    def screen(self, u: FloatArray, slack: FloatArray) -> tuple[FloatArray, Screen]:
        """A bound of at most u + slack, and the pairs with c_ij < bound_i + bound_j.

        The bound is lowered to one that is known already where that still covers ``u``.
        """
        upper = u + slack
        known, screen = self._upper, self._screen
        if known is not None and screen is not None and np.all(u <= known):
            upper = np.minimum(upper, known)
            pairs = screen.pairs.below(upper, self.cost.workers)
            return upper, Screen(pairs, screen.complete, screen.pairs_checked)
        self._refuse_what_does_not_fit(upper)
        self._screen = None  # frees the old pairs before the new ones come
        self._upper, self._screen = upper, self.cost.screen(upper)
        self.n_passes += 1
        return upper, self._screen

    def forget(self) -> None:
        """Drop what is remembered, for a cost that now looks further."""
        self._upper = self._screen = None

    def _refuse_what_does_not_fit(self, upper: FloatArray) -> None:
        limit = MEMORY_SHARE * available_bytes()
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
