"""Pairs, restricted problem, Hessian and plan in blocks of rows on the workers.

The driver has vectors. Each question is one round: the vector goes out, every block answers
for its rows, and the answers are put together in the order of the rows. Sums over all
rows are then taken by the driver, as they are without a cluster.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.costs.interface import Curvature, Evaluation, PairSet, Restricted, TransportPlan
from otgraph.distributed import _rows, _search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from otgraph._parallel import Workers
    from otgraph.distributed._blocks import PairBlock
    from otgraph.distributed._cluster import Cluster
    from otgraph.distributed._layout import Layout
    from otgraph.typing import FloatArray, LongArray


@dataclass(frozen=True)
class DistributedPairs(PairSet):
    """Symmetric rows of pairs, in blocks; ``segments`` are those each block meets."""

    cluster: Cluster
    layout: Layout
    blocks: list[Any]
    segments: list[LongArray]
    n_entries: int

    @classmethod
    def of(cls, cluster: Cluster, layout: Layout, blocks: list[Any]) -> DistributedPairs:
        """The pairs of blocks that are being computed."""
        notes = cluster.gather([cluster.submit("size", _size, block) for block in blocks])
        return cls(
            cluster, layout, blocks, [note[0] for note in notes], sum(note[1] for note in notes)
        )

    @property
    def n_pairs(self) -> int:
        """Number of pairs, each counted once."""
        return self.n_entries // 2

    def below(self, upper: FloatArray, workers: Workers) -> DistributedPairs:
        """The pairs with c_ij < upper_i + upper_j."""
        blocks = self.each("candidates", _search.below, self.blocks, vector=upper)
        return self.of(self.cluster, self.layout, blocks)

    def merged(self, other: DistributedPairs, workers: Workers) -> DistributedPairs:
        """The pairs of either set."""
        blocks = self.each("candidates", _search.merge, self.blocks, other.blocks)
        return self.of(self.cluster, self.layout, blocks)

    def restricted(self, diagonal: FloatArray, workers: Workers) -> DistributedProblem:
        """The transport problem on these pairs and a diagonal."""
        return DistributedProblem(self, diagonal)

    def rows_of(self, values: FloatArray) -> list[FloatArray]:
        """The part of a vector that belongs to each block."""
        return [values[first:last] for first, last in self.layout.ranges]

    def each(
        self,
        name: str,
        function: Callable[..., Any],
        *arguments: Sequence[Any],
        vector: FloatArray | LongArray | None = None,
    ) -> list[Any]:
        """One task per block, with its element of each argument, and what it needs of a vector."""
        held = None if vector is None else self.cluster.hold(vector)
        futures = []
        for b in range(len(self.blocks)):
            own = [argument[b] for argument in arguments]
            if held is not None:
                own += [held.piece_rows, held.part(self.segments[b])]
            futures.append(self.cluster.submit(name, function, *own))
        return futures

    def answers(
        self,
        name: str,
        function: Callable[..., Any],
        *arguments: Sequence[Any],
        vector: FloatArray | LongArray | None = None,
    ) -> FloatArray:
        """One number per row, or some, from one task per block."""
        return np.concatenate(
            self.cluster.gather(self.each(name, function, *arguments, vector=vector))
        )


class DistributedProblem(Restricted):
    """Sums over pairs on the workers, plus one diagonal entry per point."""

    def __init__(self, pairs: DistributedPairs, diagonal: FloatArray) -> None:
        self.pairs = pairs
        self.diagonal = diagonal
        self.n = len(diagonal)
        self._evaluated: tuple[FloatArray, FloatArray, list[Any]] | None = None
        self._diagonals = [pairs.cluster.send("diagonal", part) for part in pairs.rows_of(diagonal)]

    @property
    def n_pairs(self) -> int:
        """Number of stored pairs, each counted once."""
        return self.pairs.n_pairs

    def with_diagonal(self, diagonal: FloatArray) -> DistributedProblem:
        """The same pairs with other diagonal costs."""
        return DistributedProblem(self.pairs, diagonal)

    def start(self, target: FloatArray) -> FloatArray:
        """Potentials that solve every row by itself, as if all its neighbors had the same one."""
        pairs = self.pairs
        targets = pairs.rows_of(target)
        return pairs.answers("start", _rows.start, pairs.blocks, self._diagonals, targets)

    def lift(self, u: FloatArray, rows: LongArray, target: FloatArray) -> FloatArray:
        """Potentials of some rows that meet their own targets while all others stay."""
        pairs = self.pairs
        bounds = [first for first, _ in pairs.layout.ranges] + [self.n]
        cuts = np.searchsorted(rows, bounds)  # rows are sorted
        some = [rows[a:b] for a, b in itertools.pairwise(cuts)]
        targets = pairs.rows_of(target)
        own = (pairs.blocks, self._diagonals, some, targets)
        return pairs.answers("lift", _rows.lift, *own, vector=u)

    def row_excess(self, rank: int) -> FloatArray:
        """Sum by which the nearest ``rank`` candidates of a row are nearer than the next one."""
        ranks = [rank] * len(self.pairs.blocks)
        return self.pairs.answers("excess", _rows.row_excess, self.pairs.blocks, ranks)

    def largest_costs(self) -> FloatArray:
        """Largest candidate cost of every row, 0 for a row without candidates."""
        return self.pairs.answers("largest", _rows.largest_costs, self.pairs.blocks)

    def evaluate(self, u: FloatArray) -> Evaluation:
        """Row sums and square sum at ``u``, remembered for a second question about the same."""
        _, answers, _ = self._at(u)
        return Evaluation(answers[:, 0].copy(), answers[:, 1].copy())

    def hessian(self, u: FloatArray) -> DistributedHessian:
        """Generalized Hessian diag(sigma 1) + sigma at ``u``; known where ``u`` was evaluated."""
        _, answers, rows = self._at(u)
        degrees, loops = answers[:, 2].copy(), 2.0 * u > self.diagonal
        return DistributedHessian(degrees, degrees + loops, self.pairs, rows)

    def _at(self, u: FloatArray) -> tuple[FloatArray, FloatArray, list[Any]]:
        """Sums, squares and degrees at ``u``, and the futures of its active pairs: one round."""
        if self._evaluated is None or self._evaluated[0] is not u:
            own = (self.pairs.blocks, self._diagonals)
            rows = self.pairs.each("evaluate", _rows.evaluate, *own, vector=u)
            self._evaluated = u, self.pairs.answers("sums", _rows.sums_of, rows), rows
        return self._evaluated

    def plan(self, u: FloatArray, eps: float) -> DistributedPlan:
        """The transport plan of ``u`` on the stored pairs."""
        pairs = self.pairs
        own = (pairs.blocks, self._diagonals, [eps] * len(pairs.blocks))
        rows = pairs.each("plan", _rows.plan, *own, vector=u)
        loops = np.maximum(2.0 * u - self.diagonal, 0.0) / eps
        sums = pairs.answers("sums", _rows.plan_sums, rows)
        return DistributedPlan(loops, self.diagonal, sums, pairs, rows)


@dataclass(frozen=True)
class DistributedHessian(Curvature):
    """Active pairs on the workers."""

    degrees: FloatArray
    diagonal: FloatArray
    pairs: DistributedPairs
    rows: list[Any]

    @property
    def n_active(self) -> int:
        """Number of active ordered pairs, the diagonal not counted."""
        loops = self.diagonal - self.degrees
        return int(np.sum(self.degrees - loops))

    def product(self, v: FloatArray) -> FloatArray:
        """Hessian times ``v``."""
        own = (self.pairs.blocks, self.rows)
        return self.pairs.answers("product", _rows.hessian_product, *own, vector=v)


@dataclass(frozen=True)
class DistributedPlan(TransportPlan):
    """Rows of a plan on the workers."""

    loops: FloatArray
    loop_costs: FloatArray
    sums: FloatArray
    pairs: DistributedPairs
    rows: list[Any]

    @property
    def degrees(self) -> LongArray:
        """Number of entries of every row, the diagonal not counted."""
        return self.sums[:, 0].astype(np.int64)

    @property
    def row_sums(self) -> FloatArray:
        """Mass that every point gives away or keeps."""
        return self.sums[:, 1].copy()

    def product(self, v: FloatArray, diagonal: FloatArray) -> FloatArray:
        """(diag(row sums) + plan) times ``v``, given its diagonal."""
        own = (self.pairs.blocks, self.rows, self.pairs.rows_of(diagonal))
        return self.pairs.answers("product", _rows.plan_product, *own, vector=v)

    def scaled_sums(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Row sums of c·q and q² for q_ij = pi_ij (1 + w_i + w_j), the diagonal left out."""
        own = (self.pairs.blocks, self.rows)
        sums = self.pairs.answers("sums", _rows.scaled_sums, *own, vector=w)
        return sums[:, 0].copy(), sums[:, 1].copy()


def _size(block: PairBlock) -> tuple[LongArray, int]:
    return block.columns.segments, len(block.pairs.indices)
