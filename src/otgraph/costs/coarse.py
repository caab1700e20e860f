"""A preconditioner from coarser versions of a linear system.

Between two clouds the Hessian is the Laplacian of the graph of active pairs, up to signs. Conjugate
gradients carry a change from a point to its partners, so they need about as many products as the
graph is wide, in two dimensions the square root of the number of points. Groups of points that move
together carry it farther. The groups are a graph of the same kind, and so on, until no two groups
are connected (aggregation-based algebraic multigrid with K-cycles, Notay 2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels import aggregates as kernels

if TYPE_CHECKING:
    from otgraph.costs.restricted import Hessian
    from otgraph.typing import FloatArray, IntArray, LongArray


@dataclass(frozen=True)
class Coarsening:
    """Groups of rows, groups of groups and so on, with the systems of all of them.

    Groups of all levels are numbered one after the other: level l has ``firsts[l]:firsts[l + 1]``.

    Parameters
    ----------
    codes
        Group of every row of the system; see the kernels.
    group_codes
        Group on the next level of every group.
    indptr, indices, values, diagonal
        The systems of the groups.
    """

    codes: IntArray
    group_codes: IntArray
    firsts: LongArray
    indptr: LongArray
    indices: IntArray
    values: FloatArray
    diagonal: FloatArray

    @classmethod
    def of(
        cls, starts: LongArray, ends: LongArray, indices: IntArray, diagonal: FloatArray
    ) -> Coarsening | None:
        """Groups for a matrix with ones beside its diagonal; None if there are no ones."""
        values = np.empty(0)
        first = n_entries = 0
        firsts, parts = [0], []
        codes = np.empty(len(starts), dtype=np.int32)
        count = kernels.group_rows(starts, ends, indices, values, codes)
        of_rows = codes
        while count:
            members = kernels.group_members(codes, count)
            diagonal, indptr, indices, values = kernels.coarse_system(
                starts, ends, indices, values, diagonal, codes, *members
            )
            starts, ends = indptr[:-1], indptr[1:]
            codes = np.empty(count, dtype=np.int32)
            entries = starts + n_entries, indices + np.int32(first), values, diagonal
            first, n_entries = first + count, n_entries + len(indices)
            firsts.append(first)
            count = kernels.group_rows(starts, ends, indices, values, codes)
            parts.append((codes + np.sign(codes) * np.int32(first), *entries))
        if not parts:
            return None
        group_codes, begins, indices, values, diagonal = map(
            np.concatenate, zip(*parts, strict=True)
        )
        indptr = np.append(begins, n_entries)
        return cls(of_rows, group_codes, np.array(firsts), indptr, indices, values, diagonal)

    def solve(self, residual: FloatArray) -> FloatArray:
        """What the groups should move to remove a residual of the rows, as values of the groups."""
        n = self.firsts[-1]
        right, x, work = np.empty(n), np.empty(n), np.empty((4, n))
        kernels.to_groups(self.codes, residual, right, 0, self.firsts[1])
        kernels.solve_coarse(
            0, self.firsts, self.indptr, self.indices, self.values, self.diagonal,
            self.group_codes, right, x, work,
        )  # fmt: skip
        return x


class Multilevel:
    """An approximate inverse: a Jacobi step, a step of the groups, another Jacobi step.

    It is not quite linear, because the groups take one or two steps of conjugate gradients. Groups
    are made when it is first called.
    """

    n_products = 2  # of one call

    def __init__(self, hessian: Hessian, diagonal: FloatArray) -> None:
        self._hessian, self._diagonal = hessian, diagonal
        self._added = diagonal - hessian.diagonal

    def __call__(self, residual: FloatArray) -> FloatArray:
        """An approximate solution for a right-hand side."""
        if self._coarsening is None:
            return residual / self._diagonal
        jacobi = kernels.DAMPING / self._diagonal
        z = jacobi * residual
        x = self._coarsening.solve(residual - self._product(z))
        kernels.add_from_groups(self._coarsening.codes, x, z)
        z += jacobi * (residual - self._product(z))
        return z

    def _product(self, v: FloatArray) -> FloatArray:
        return self._hessian.product(v) + self._added * v

    @cached_property
    def _coarsening(self) -> Coarsening | None:
        active = self._hessian
        return Coarsening.of(active.starts, active.ends, active.indices, self._diagonal)
