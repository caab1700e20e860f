"""Entropic plans, between all pairs or on listed ones, and the duality gap that they prove."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import xlog1py

from otgraph._blas import single_threaded_blas
from otgraph._parallel import cache_blocks, row_blocks
from otgraph.costs.direct import fill_symmetric
from otgraph.graphs._canonical import csr_from_dense
from otgraph.graphs.cutoff import weights_of_pairs
from otgraph.solvers.cg import residual_weights, solve
from otgraph.solvers.passes import System, sparse_system

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.solvers.passes import ListedCosts, ListedPasses
    from otgraph.typing import Array, FloatArray, LongArray, SparseMatrix

    Rows = tuple[int, int]

# Relative error of the marginals up to which the plan behind the duality gap counts as feasible.
FEASIBLE = 1e-10
GAP_PRODUCTS = 300
BLOCK_ROWS = 4096  # rows of a list whose terms are in memory at once


class DensePlan:
    """All weights exp((u_i + u_j - c_ij)/eps), computed in the memory of the costs."""

    def __init__(self, costs: FloatArray, u: FloatArray, eps: float, workers: Workers) -> None:
        self.loops = bool(np.isfinite(costs[0, 0]))
        self.workers = workers
        self.matrix = costs
        self.blocks = cache_blocks(*costs.shape)

        def to_plan(block: FloatArray, a: int, b: int) -> None:
            np.subtract(u[a:b, None] + u[a:], block, out=block)
            block /= eps
            with np.errstate(over="ignore", under="ignore"):
                np.exp(block, out=block)

        fill_symmetric(costs, to_plan, workers)

    @property
    def n_edges(self) -> int:
        """All pairs."""
        n = len(self.matrix)
        return n * (n - 1) // 2

    def weights(self) -> SparseMatrix:
        """The plan as a matrix; called last, because it overwrites the dense one."""
        return csr_from_dense(self.matrix)

    @cached_property
    def system(self) -> System:
        """diag(row sums) + plan."""
        sums = np.asarray(self.matrix.sum(axis=1))
        rough = sparse_system(lambda rows: self.matrix[slice(*rows)].copy(), sums, 0.0, self.blocks,
                              self.workers)  # fmt: skip

        def product(v: FloatArray) -> FloatArray:
            out = sums * v

            def add(rows: Rows) -> None:
                out[slice(*rows)] += self.matrix[slice(*rows)] @ v

            self.workers.run(add, self.blocks)
            return out

        loops = self.matrix.diagonal().copy()
        return System(product, sums, loops, 0.0, rough and rough.multilevel)

    def entries(self, rows: Rows) -> Array:
        """Weights of some rows: a block of the matrix."""
        return self.matrix[slice(*rows)]

    def pair_sums(self, v: FloatArray, rows: Rows) -> Array:
        """v_i + v_j for these weights."""
        return np.asarray(v[slice(*rows), None] + v)

    def row_sums(self, values: Array, rows: Rows) -> FloatArray:
        """Sums over the rows of numbers that belong to these weights."""
        return np.asarray(values.sum(axis=1))


class ListedPlan:
    """The same for listed pairs, and for loops."""

    def __init__(self, costs: ListedCosts, passes: ListedPasses, u: FloatArray, eps: float) -> None:
        self._pairs, self.loops = costs
        self.workers = passes.workers
        self._weights = passes.weights(u, eps)
        self.system = passes.system_of(self._weights, passes.loops(u, eps))
        self.blocks = row_blocks(len(u), BLOCK_ROWS)

    @property
    def n_edges(self) -> int:
        """The listed pairs."""
        return self._pairs.n_pairs

    def weights(self) -> SparseMatrix:
        """The plan as a matrix."""
        return weights_of_pairs(self._pairs, self._weights, self.system.loops)

    def entries(self, rows: Rows) -> Array:
        """Weights of the pairs of some rows, then of their loops."""
        return np.concatenate((self._weights[self._span(rows)], self.system.loops[slice(*rows)]))

    def pair_sums(self, v: FloatArray, rows: Rows) -> Array:
        """v_i + v_j for the pairs of some rows, then 2 v_i for their loops."""
        pairs = v[self._owners(rows)] + v[self._pairs.indices[self._span(rows)]]
        return np.concatenate((pairs, 2.0 * v[slice(*rows)]))

    def row_sums(self, values: Array, rows: Rows) -> FloatArray:
        """Sums over the rows."""
        a, b = rows
        owners = np.concatenate((self._owners(rows), np.arange(a, b))) - a
        return np.asarray(np.bincount(owners, weights=values, minlength=b - a), dtype=np.float64)

    def _span(self, rows: Rows) -> slice:
        return slice(self._pairs.indptr[rows[0]], self._pairs.indptr[rows[1]])

    def _owners(self, rows: Rows) -> LongArray:
        a, b = rows
        return np.repeat(np.arange(a, b), np.diff(self._pairs.indptr[a : b + 1]))


EntropicPlan: TypeAlias = DensePlan | ListedPlan


def relative_gap(
    plan: EntropicPlan, mass: FloatArray, u: FloatArray, eps: float, dropped: float = 0.0
) -> float:
    """Primal value of a plan with the exact marginals minus the dual value of u, relative.

    That plan is π_ij (1 + δ_ij), δ_ij = d_i + d_j, with (diag(π1) + π) d = m − π1. Where the
    marginals count as exact already, d = 0: a nearly singular system can ask for large changes
    even then. The plan costs 2⟨u, m⟩ + ε Σ π (1 + δ)(log(1 + δ) − 1), so the gap is
    ε Σ π ((1 + δ) log(1 + δ) − δ), a formula without cancellation. Pairs that are left out lower
    the dual value by ε times their weights, at most a share ``dropped`` of the mass. The primal
    value may be negative because of the entropy. The gap is therefore relative to transport cost +
    ε · (total mass), which is positive.
    """
    missing, weights = mass - plan.system.sums, residual_weights(mass)
    d = np.zeros_like(missing)
    if float(np.abs(missing / mass).max()) > FEASIBLE:
        with single_threaded_blas(), np.errstate(all="ignore"):
            size = np.sqrt(np.square(missing / mass).sum())
            d, _ = solve(
                plan.system, missing, rtol=0.1 * FEASIBLE / size, max_products=GAP_PRODUCTS,
                weights=weights,
            )  # fmt: skip

    def terms(rows: Rows) -> tuple[float, float, float]:
        weights = plan.entries(rows)
        delta = np.maximum(plan.pair_sums(d, rows), -1.0)  # weights must not be negative
        corrected = plan.row_sums(weights * (1.0 + delta), rows)
        leftover = float(np.abs(corrected / mass[slice(*rows)] - 1.0).max())
        gap = float((weights * (xlog1py(1.0 + delta, delta) - delta)).sum())
        log_plan = np.log(weights, out=np.zeros_like(weights), where=weights > 0.0)
        cost = float((weights * (plan.pair_sums(u, rows) - eps * log_plan)).sum())
        return leftover, gap, cost

    leftovers, gaps, transport = np.transpose(list(plan.workers.map(terms, plan.blocks)))
    if not leftovers.max() <= FEASIBLE:
        return float("inf")  # marginals are not exact, so the gap is unknown
    total = float(mass.sum())
    return float(eps * (gaps.sum() + dropped * total) / (transport.sum() + eps * total))
