"""Passes over the costs of an entropic problem: all of them in a matrix, or a list of pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from otgraph._kernels import entropic as kernels
from otgraph._kernels.products import multiply_vector
from otgraph._parallel import cache_blocks, row_blocks
from otgraph.costs.coarse import Entries, Multilevel

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph._parallel import Workers
    from otgraph.costs.pairs import Pairs
    from otgraph.typing import Float32Array, FloatArray, IntArray, LongArray

    Rows = tuple[int, int]

SAMPLE_ROWS = 64  # enough for the scale of the costs
BLOCK_ROWS = 512  # rows of a list that a thread takes at once
# Weights below this share of the mean weight of both rows are left out of a Newton system, if
# at most the given share of the weights is then left.
TINY = 1e-9
MOST_KEPT = 0.125


class ListedCosts(NamedTuple):
    """Costs of the pairs that may have a weight, and whether points keep mass at cost zero."""

    pairs: Pairs
    loops: bool


class System(NamedTuple):
    """diag(row sums) + plan, and a share of its diagonal: the matrix of a Newton step.

    Parameters
    ----------
    product
        The matrix times a vector.
    sums, loops
        Row sums of the plan, and its diagonal.
    ridge
        The share of the diagonal that is added.
    multilevel
        A preconditioner, if there is one.
    """

    product: Callable[[FloatArray], FloatArray]
    sums: FloatArray
    loops: FloatArray
    ridge: float
    multilevel: Multilevel | None

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal of the matrix."""
        return (1.0 + self.ridge) * (self.sums + self.loops)


class Passes(ABC):
    """Passes by threads, in blocks of rows; counts those over the costs."""

    def __init__(self, log_mass: FloatArray, workers: Workers) -> None:
        self.log_mass = log_mass
        self.count = 0
        self.workers = workers

    def log_residual(self, u: FloatArray, eps: float) -> FloatArray:
        """log(row sums) − log(mass), without overflow for any u."""
        self.count += 1
        return self._log_sums(u, eps) + u / eps - self.log_mass

    @abstractmethod
    def mean_cost(self) -> float:
        """About the mean cost."""

    @abstractmethod
    def _log_sums(self, u: FloatArray, eps: float) -> FloatArray:
        """Logarithm of the row sums of exp((u_j − c_ij) / eps)."""

    @abstractmethod
    def system(self, u: FloatArray, eps: float, sums: FloatArray, ridge: float) -> System:
        """Matrix of a Newton step, given the row sums.

        In single precision: enough for a direction, half the memory.
        """


class DensePasses(Passes):
    """Passes over a matrix of all costs."""

    def __init__(self, cost: FloatArray, log_mass: FloatArray, workers: Workers) -> None:
        super().__init__(log_mass, workers)
        self._cost = cost
        self._blocks = cache_blocks(len(cost), len(cost))
        self._plan: Float32Array | None = None

    def mean_cost(self) -> float:
        """About the mean of the finite costs."""
        some = self._cost[:: max(1, len(self._cost) // SAMPLE_ROWS)]
        return float(np.mean([np.mean(row, where=np.isfinite(row)) for row in some]))

    def _log_sums(self, u: FloatArray, eps: float) -> FloatArray:
        out = np.empty_like(u)

        def fill(rows: tuple[int, int]) -> None:
            a, b = rows
            exponent = u - self._cost[a:b]
            exponent /= eps
            top = exponent.max(axis=1)
            exponent -= top[:, None]
            np.exp(exponent, out=exponent)
            out[a:b] = top + np.log(exponent.sum(axis=1))

        self.workers.run(fill, self._blocks)
        return out

    def system(self, u: FloatArray, eps: float, sums: FloatArray, ridge: float) -> System:
        """As in `Passes`; a sparse matrix if nearly all weights are tiny."""

        def weights(rows: Rows) -> FloatArray:
            a, b = rows
            exponent = (u[a:b, None] + u) - self._cost[a:b]
            exponent /= eps
            return np.exp(exponent, out=exponent)

        sparse = sparse_system(weights, sums, ridge, self._blocks, self.workers)
        if sparse is not None:
            return sparse
        if self._plan is None:
            self._plan = np.empty(self._cost.shape, dtype=np.float32)
        plan = self._plan

        def fill(rows: Rows) -> None:
            plan[slice(*rows)] = weights(rows)

        def product(v: FloatArray) -> FloatArray:
            out, v32 = added * v, v.astype(np.float32)

            def add(rows: Rows) -> None:
                out[slice(*rows)] += plan[slice(*rows)] @ v32

            self.workers.run(add, self._blocks)
            return out

        self.workers.run(fill, self._blocks)
        loops = plan.diagonal().astype(np.float64)
        added = sums + ridge * (sums + loops)
        return System(product, sums, loops, ridge, None)


class ListedPasses(Passes):
    """Passes over the costs of a list of pairs."""

    def __init__(self, cost: ListedCosts, log_mass: FloatArray, workers: Workers) -> None:
        super().__init__(log_mass, workers)
        self._pairs, self._loops = cost
        self._blocks = row_blocks(len(log_mass), BLOCK_ROWS)

    def mean_cost(self) -> float:
        """The mean cost of the pairs."""
        return float(self._pairs.costs.mean())

    def _log_sums(self, u: FloatArray, eps: float) -> FloatArray:
        pairs, out = self._pairs, np.empty_like(u)
        source = (pairs.indptr, pairs.indices, pairs.costs, self._loops, u, eps)
        self.workers.run(lambda block: kernels.log_sums(*source, *block, out), self._blocks)
        return out

    def system(self, u: FloatArray, eps: float, sums: FloatArray, ridge: float) -> System:
        """As in `Passes`."""
        del sums  # those of the rounded weights are better
        weights = np.empty(len(self._pairs.costs), dtype=np.float32)
        self._fill(u, eps, weights)
        return self.system_of(weights, self.loops(u, eps), ridge)

    def system_of(
        self, weights: FloatArray | Float32Array, loops: FloatArray, ridge: float = 0.0
    ) -> System:
        """The same for a plan whose weights are known."""
        pairs = self._pairs
        return listed_system(pairs.indptr, pairs.indices, weights, loops, ridge, self.workers)

    def weights(self, u: FloatArray, eps: float) -> FloatArray:
        """Weights of the pairs in full precision."""
        weights = np.empty(len(self._pairs.costs))
        self._fill(u, eps, weights)
        return weights

    def loops(self, u: FloatArray, eps: float) -> FloatArray:
        """Weights of the loops."""
        return np.exp(2.0 * u / eps) if self._loops else np.zeros_like(u)

    def _fill(self, u: FloatArray, eps: float, out: Any) -> None:
        pairs = self._pairs
        source = (pairs.indptr, pairs.indices, pairs.costs, u, eps)
        self.workers.run(lambda block: kernels.fill_plan(*source, *block, out), self._blocks)


def listed_system(
    indptr: LongArray,
    indices: IntArray,
    weights: FloatArray | Float32Array,
    loops: FloatArray,
    ridge: float,
    workers: Workers,
) -> System:
    """The system of a plan with listed weights, and with loops.

    Points that exchange nearly all of their mass make it nearly singular. It is right in these
    directions, too, because its diagonal has the sums of the weights as they are, even rounded.
    """
    blocks = row_blocks(len(loops), BLOCK_ROWS)

    def beside(v: FloatArray) -> FloatArray:
        out = np.empty_like(v)
        workers.run(lambda block: multiply_vector(indptr, indices, weights, v, *block, out), blocks)
        return out

    sums = beside(np.ones_like(loops)) + loops
    diagonal = (1.0 + ridge) * (sums + loops)

    def product(v: FloatArray) -> FloatArray:
        return beside(v) + diagonal * v

    entries = Entries(indptr[:-1], indptr[1:], indices, weights)
    return System(product, sums, loops, ridge, Multilevel(product, diagonal, entries))


def sparse_system(
    weights: Callable[[Rows], FloatArray],
    sums: FloatArray,
    ridge: float,
    blocks: list[Rows],
    workers: Workers,
) -> System | None:
    """The system of a dense plan without its tiny weights, if few are left.

    ``weights`` are those of some rows; ``sums`` are the sums of all rows.
    """
    n = len(sums)
    least = TINY / n * sums

    def kept(rows: Rows) -> tuple[LongArray, IntArray, FloatArray, FloatArray]:
        block, here = weights(rows), np.arange(*rows)
        loops = block[here - rows[0], here].copy()
        block[here - rows[0], here] = 0.0
        i, j = np.nonzero(block > np.minimum(least[here, None], least))
        counts = np.bincount(i, minlength=len(here)).astype(np.int64)
        return counts, j.astype(np.int32), block[i, j], loops

    some = range(0, n, max(1, n // SAMPLE_ROWS))
    if np.mean([kept((i, i + 1))[0][0] for i in some]) > MOST_KEPT * n:
        return None
    parts = workers.map(kept, blocks)
    counts, indices, values, loops = map(np.concatenate, zip(*parts, strict=True))
    indptr = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
    return listed_system(indptr, indices, values, loops, ridge, workers)
