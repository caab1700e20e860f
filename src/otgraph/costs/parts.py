"""Steps of parts of a graph that no active pair connects, each of a length of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels.parts import part_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import BoolArray, FloatArray, IntArray, LongArray

    # Where the pairs of some points are: first and last places, partners, costs.
    Places = tuple[LongArray, LongArray, IntArray, FloatArray]


@dataclass(frozen=True)
class Move:
    """A direction for all points, and the part of every point.

    Parameters
    ----------
    u, direction
        Potentials of all points, and how they change in a full step.
    target
        The row sums that are wanted.
    parts
        The part of every point.
    """

    u: FloatArray
    direction: FloatArray
    target: FloatArray
    parts: LongArray

    def slopes(self, row_sums: FloatArray) -> FloatArray:
        """Change of F with the step of every part, where the row sums are these."""
        return np.bincount(self.parts, (row_sums - self.target) * self.direction).astype(np.float64)

    def taken(
        self,
        chosen: BoolArray,
        places_of: Callable[[LongArray], Places],
        diagonal: FloatArray,
        fixed: FloatArray,
    ) -> FloatArray:
        """Potentials after a full step, and after one of its own length for every chosen part.

        ``places_of`` tells where the pairs of some points are. Their columns may go on beyond the
        points; these have ``fixed`` potentials.
        """
        some = chosen[self.parts]
        rows = np.flatnonzero(some)
        of = self.parts[rows]
        members = np.argsort(of, kind="stable")
        firsts = np.flatnonzero(np.diff(of[members], prepend=-1, append=len(chosen)))
        trial = np.concatenate((np.where(some, self.u, self.u + self.direction), fixed))
        own = (diagonal[rows], self.target[rows], self.u[rows], self.direction[rows])
        part_steps(*places_of(rows), *own, rows, members, firsts, trial)
        return trial[: len(self.u)]
