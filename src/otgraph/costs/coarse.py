"""A preconditioner from coarser versions of a linear system.

Between two clouds the Hessian is the Laplacian of the graph of active pairs, up to signs. Conjugate
gradients carry a change from a point to its partners, so they need about as many products as the
graph is wide, in two dimensions the square root of the number of points. The Hessian of an entropic
plan without loops is of the same kind where points exchange nearly all of their mass with few
others. Groups of points that move together carry a change farther. The groups are a graph of the
same kind, and so on, until no two groups are connected (aggregation-based algebraic multigrid with
K-cycles, Notay 2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otgraph._kernels import aggregates as kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import Float32Array, FloatArray, IntArray, LongArray


class Entries(NamedTuple):
    """The entries of a matrix beside its diagonal: row i has ``indices[starts[i]:ends[i]]``."""

    starts: LongArray
    ends: LongArray
    indices: IntArray
    values: FloatArray | Float32Array = np.empty(0)  # if empty, all are one


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
    def of(cls, entries: Entries, diagonal: FloatArray) -> Coarsening | None:
        """Groups for a matrix; None if it has no entries beside its diagonal."""
        starts, ends, indices, given = entries
        values = np.asarray(given, dtype=np.float64)
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
            system = starts + n_entries, indices + np.int32(first), values, diagonal
            first, n_entries = first + count, n_entries + len(indices)
            firsts.append(first)
            count = kernels.group_rows(starts, ends, indices, values, codes)
            parts.append((codes + np.sign(codes) * np.int32(first), *system))
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

    Parameters
    ----------
    product
        The matrix times a vector. Each result may overwrite the last one, but no other vector.
    diagonal, entries
        Its diagonal, and its other entries.
    """

    n_products = 2  # of one call

    def __init__(
        self,
        product: Callable[[FloatArray], FloatArray],
        diagonal: FloatArray,
        entries: Entries,
    ) -> None:
        self._product, self._diagonal, self._entries = product, diagonal, entries

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

    @cached_property
    def _coarsening(self) -> Coarsening | None:
        return Coarsening.of(self._entries, self._diagonal)
