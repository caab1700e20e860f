"""Trees that hang on a graph by one pair, taken out of a linear system exactly.

A hub with many partners that have nobody else can move against them all at hardly any cost, and
conjugate gradients find out slowly. In the system that is left without these partners, the hub has
only the diagonal that the others give it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels import cg as kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import FloatArray, LongArray

# Smaller systems are solved in one call, which hardly takes longer than to find branches.
FEWEST_ROWS = 4096


@dataclass(frozen=True)
class Branches:
    """Rows that have one entry beside the diagonal when it is their turn to be taken out.

    Parameters
    ----------
    rows, partners
        The rows, in the order in which they are taken out, and the rows they hang on.
    diagonal
        Diagonal of every row in its turn, and in the end for those that are left.
    """

    rows: LongArray
    partners: LongArray
    diagonal: FloatArray

    @classmethod
    def of(
        cls, product: Callable[[FloatArray], FloatArray], diagonal: FloatArray, shift: FloatArray
    ) -> Branches | None:
        """The branches of a Hessian whose diagonal is shifted; None if there are none.

        The number of the only partner is what a product with all numbers adds to the diagonal.
        """
        n = len(diagonal)
        if n <= FEWEST_ROWS or not np.any(diagonal == 1.0):
            return None
        numbers = np.arange(1.0, n + 1.0)
        sums = product(numbers) - diagonal * numbers
        left = diagonal + shift
        rows, partners = kernels.find_branches(diagonal.copy(), sums, left)
        return cls(rows, partners, left) if len(rows) else None

    @property
    def arrays(self) -> tuple[LongArray, LongArray, FloatArray]:
        """Rows, partners and diagonal, as kernels take them."""
        return self.rows, self.partners, self.diagonal
