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
    from otgraph.typing import Float32Array, FloatArray

SAMPLE_ROWS = 64  # enough for the scale of the costs
BLOCK_ROWS = 512  # rows of a list that a thread takes at once


class ListedCosts(NamedTuple):
    """Costs of the pairs that may have a weight, and whether points keep mass at cost zero."""

    pairs: Pairs
    loops: bool


class System(NamedTuple):
    """diag(row sums) + plan: products, the diagonal, and a preconditioner if there is one."""

    product: Callable[[FloatArray], FloatArray]
    diagonal: FloatArray
    multilevel: Multilevel | None = None


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
    def system(self, u: FloatArray, eps: float, sums: FloatArray) -> System:
        """Matrix of a Newton step, diag(row sums) + plan, given the row sums.

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

    def system(self, u: FloatArray, eps: float, sums: FloatArray) -> System:
        """As in `Passes`; the plan is a matrix."""
        if self._plan is None:
            self._plan = np.empty(self._cost.shape, dtype=np.float32)
        plan = self._plan

        def fill(rows: tuple[int, int]) -> None:
            a, b = rows
            exponent = (u[a:b, None] + u) - self._cost[a:b]
            exponent /= eps
            plan[a:b] = np.exp(exponent, out=exponent)

        self.workers.run(fill, self._blocks)

        def product(v: FloatArray) -> FloatArray:
            out, v32 = sums * v, v.astype(np.float32)

            def add(rows: tuple[int, int]) -> None:
                a, b = rows
                out[a:b] += plan[a:b] @ v32

            self.workers.run(add, self._blocks)
            return out

        return System(product, sums + plan.diagonal())


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

    def system(self, u: FloatArray, eps: float, sums: FloatArray) -> System:
        """As in `Passes`.

        Points that exchange nearly all of their mass make it nearly singular. It is right in these
        directions, too, because its row sums are those of the rounded weights, not the given ones.
        """
        del sums
        weights = np.empty(len(self._pairs.costs), dtype=np.float32)
        self._fill(u, eps, weights)
        return self.system_of(weights, self.loops(u, eps))

    def system_of(self, weights: FloatArray | Float32Array, loops: FloatArray) -> System:
        """The same for a plan whose weights are known."""
        pairs = self._pairs
        diagonal = self.product(weights, loops, np.ones_like(loops)) + loops

        def product(v: FloatArray) -> FloatArray:
            return self.product(weights, diagonal, v)

        entries = Entries(pairs.indptr[:-1], pairs.indptr[1:], pairs.indices, weights)
        return System(product, diagonal, Multilevel(product, diagonal, entries))

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

    def product(self, weights: Any, diagonal: FloatArray, v: FloatArray) -> FloatArray:
        """Weights of pairs and a diagonal times vector."""
        out = np.empty_like(v)
        source = (self._pairs.indptr, self._pairs.indices, weights, v)
        self.workers.run(lambda block: multiply_vector(*source, *block, out), self._blocks)
        return out + diagonal * v
