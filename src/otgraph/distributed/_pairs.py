"""Pairs, restricted problem, Hessian and plan in blocks of rows on the workers.

The driver holds vectors. Each evaluation is one round: the vector is sent, every block computes
the results for its rows, and the driver concatenates them. The driver also computes all sums over
rows, in the same order as without a cluster.
"""

from __future__ import annotations

import itertools
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from otgraph._kernels import blocks as kernels
from otgraph._kernels import pairs as pair_kernels
from otgraph._parallel import Workers
from otgraph.costs.interface import Curvature, Evaluation, PairSet, Restricted, TransportPlan
from otgraph.costs.pairs import Pairs
from otgraph.costs.restricted import Hessian, RestrictedProblem, SharedRows
from otgraph.distributed._blocks import Blocks, Columns, Vector, components, forest, sorted_rows
from otgraph.distributed._cluster import Kept
from otgraph.solvers.cg import conjugate_gradients

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distributed import Future

    from otgraph.costs.restricted import Plan
    from otgraph.distributed._blocks import Edges, Entries, Need, Part
    from otgraph.typing import FloatArray, IntArray, LongArray

    Note = tuple[Need, int]  # what a block needs of a vector, and the number of its entries

# Active entries per block up to which one worker takes all products of conjugate gradients. Each
# takes 5 ms for every block then, about as long as a round with its messages; so do so many numbers
# of a vector, which goes out and comes back.
MOST_SOLVED = 1 << 21
ROWS_LIKE_A_BLOCK = 1 << 18
# Memory of conjugate gradients in one task: active pairs as received and with global columns; for
# each row its place, its diagonal, the three vectors that come, twice, and five that are made.
SOLVE_BYTES_PER_ENTRY = 2 * 4
SOLVE_BYTES = 8 * (3 + 1 + 2 * 3 + 5)


@dataclass(frozen=True)
class DistributedPairs(PairSet):
    """Symmetric rows of pairs; each of the ``blocks`` is a `PairBlock`."""

    blocks: Blocks
    reach: FloatArray | None = None

    @property
    def n_pairs(self) -> int:
        """Number of pairs, each counted once."""
        n_entries: int = sum(self.blocks.facts)
        return n_entries // 2

    def below(self, upper: FloatArray, workers: Workers) -> DistributedPairs:
        """The pairs with c_ij < upper_i + upper_j."""
        return self._of(self.blocks.each("candidates", _below, vector=upper))

    def merged(self, other: DistributedPairs, workers: Workers) -> DistributedPairs:
        """The pairs of either set."""
        return self._of(self.blocks.each("candidates", _merge, other.blocks.futures))

    def restricted(self, diagonal: FloatArray, workers: Workers) -> DistributedProblem:
        """The transport problem on these pairs and a diagonal."""
        return DistributedProblem(self, diagonal)

    def cheapest(self, rows: LongArray, k: int) -> tuple[LongArray, LongArray, FloatArray]:
        """The k cheapest pairs of each of some points, which are sorted."""
        own = rows_by_block(rows, self.blocks.ranges)
        found = self.blocks.cluster.gather(self.blocks.each("nearest", _cheapest, own, k))
        i, j, costs = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return i, j, costs

    def _of(self, futures: list[Future]) -> DistributedPairs:
        return DistributedPairs(Blocks.of(self.blocks.cluster, self.blocks.ranges, futures))


class DistributedProblem(Restricted):
    """Sums over pairs on the workers, plus one diagonal entry per point."""

    def __init__(self, pairs: DistributedPairs, diagonal: FloatArray) -> None:
        self._shared = _Shared(pairs)
        self._set_diagonal(diagonal)

    def _set_diagonal(self, diagonal: FloatArray) -> None:
        self.diagonal = diagonal
        self.n = len(diagonal)
        self._sent: list[Future] | None = None
        self._evaluated: _Evaluated | None = None

    @property
    def _diagonals(self) -> list[Future]:
        """The diagonal of each block, sent when it is needed: many problems are only passed on."""
        if self._sent is None:
            blocks = self._blocks
            own = blocks.rows_of(self.diagonal)
            self._sent = [blocks.cluster.send("diagonal", part) for part in own]
        return self._sent

    @property
    def pairs(self) -> DistributedPairs:
        """The candidate pairs with their costs."""
        pairs = self._shared.pairs
        assert pairs is not None, "these candidates were released"
        return pairs

    @property
    def _blocks(self) -> Blocks:
        return self.pairs.blocks

    @property
    def n_pairs(self) -> int:
        """Number of stored pairs, each counted once."""
        return self.pairs.n_pairs

    def with_diagonal(self, diagonal: FloatArray) -> DistributedProblem:
        """The same pairs with other diagonal costs."""
        other = copy(self)
        other._set_diagonal(diagonal)
        return other

    def forget(self) -> None:
        """Free what was computed at the last potentials; it is computed again when needed."""
        self._evaluated = None

    def release(self) -> None:
        """Free the pairs, for all problems on them; none of these can be used any more."""
        self.forget()
        self._shared.pairs = None

    def start(self, target: FloatArray) -> FloatArray:
        """Solve every row by itself, as if its neighbors had the same potential as the point."""
        targets = self._blocks.rows_of(target)
        return self._blocks.answers("start", _ask, self._diagonals, "start", targets)

    def lift(self, u: FloatArray, rows: LongArray, target: FloatArray) -> FloatArray:
        """Potentials of some rows that meet their targets while all others stay fixed."""
        own = (self._diagonals, rows_by_block(rows, self._blocks.ranges))
        return self._blocks.answers("lift", _lift, *own, self._blocks.rows_of(target), vector=u)

    def entries_of(self, rows: LongArray) -> tuple[LongArray, IntArray, FloatArray]:
        """The pairs of some points, sorted: number per point, partners, costs."""
        own = (self._diagonals, rows_by_block(rows, self._blocks.ranges))
        found = self._blocks.cluster.gather(self._blocks.each("entries", _entries_of, *own))
        counts, partners, costs = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return counts, partners, costs

    def largest_costs(self) -> FloatArray:
        """Largest candidate cost of every row, 0 for a row without candidates."""
        return self._blocks.answers("largest", _ask, self._diagonals, "largest_costs")

    def evaluate(self, u: FloatArray) -> Evaluation:
        """Row sums and square sum at ``u``; the last result is cached."""
        sums = self._at(u).sums
        return Evaluation(sums[:, 0].copy(), sums[:, 1].copy())

    def hessian(self, u: FloatArray) -> DistributedHessian:
        """Generalized Hessian diag(sigma 1) + sigma at ``u``; known where ``u`` was evaluated."""
        at = self._at(u)
        degrees, loops = at.sums[:, 2].copy(), 2.0 * u > self.diagonal
        return DistributedHessian(degrees, degrees + loops, at.blocks)

    def _at(self, u: FloatArray) -> _Evaluated:
        """Sums, squares and degrees at ``u``, and blocks of the Hessian: one round."""
        if self._evaluated is None or self._evaluated.u is not u:
            self._evaluated = None  # free the old Hessian first
            blocks = self._blocks
            rows = blocks.each("evaluate", _evaluate, self._diagonals, vector=u)
            sums = np.concatenate(blocks.cluster.notes(rows))
            self._evaluated = _Evaluated(u, sums, replace(blocks, futures=rows))
        return self._evaluated

    def plan(self, u: FloatArray, eps: float) -> DistributedPlan:
        """The transport plan of ``u`` on the stored pairs."""
        self.forget()  # nobody evaluates it any more, so that there is room for the plan
        blocks = self._blocks
        rows = blocks.each("plan", _plan, self._diagonals, eps, vector=u)
        loops = np.maximum(2.0 * u - self.diagonal, 0.0) / eps
        sums = np.concatenate(blocks.cluster.notes(rows))
        return DistributedPlan(loops, self.diagonal, sums, replace(blocks, futures=rows))


@dataclass
class _Shared:
    """Pairs of problems with different diagonals."""

    pairs: DistributedPairs | None


class _Evaluated(NamedTuple):
    """Potentials, the sums there, and the Hessian."""

    u: FloatArray
    sums: FloatArray
    blocks: Blocks


@dataclass(frozen=True)
class DistributedHessian(Curvature):
    """Active pairs on the workers; each of the ``blocks`` is a `HessianBlock`."""

    degrees: FloatArray
    diagonal: FloatArray
    blocks: Blocks

    @property
    def n_active(self) -> int:
        """Number of active ordered pairs, without the diagonal."""
        return int(2.0 * np.sum(self.degrees) - np.sum(self.diagonal))

    def product(self, v: FloatArray) -> FloatArray:
        """Hessian times ``v``."""
        return self.blocks.answers("product", _hessian_product, vector=v)

    def solve(
        self, shift: FloatArray, rhs: FloatArray, weights: FloatArray, rtol: float, most: int
    ) -> tuple[FloatArray, int] | None:
        """Conjugate gradients in one round, if there are few active pairs and one worker has room.

        It has one thread for the products, and saves the messages of each.
        """
        cluster = self.blocks.cluster
        need = self.n_active * SOLVE_BYTES_PER_ENTRY + len(rhs) * SOLVE_BYTES
        sizes = (self.n_active, len(rhs), len(self.blocks.futures), cluster.n_threads)
        if need > cluster.task_bytes or not solved_by_one(*sizes):
            return None
        vectors: list[list[Any]] = [[vector] for vector in (shift, rhs, weights)]
        if len(vectors) * len(rhs) > cluster.piece_entries:
            vectors = [Vector.send(cluster, vector).pieces for (vector,) in vectors]
        task = ("solve", _solve, list(self.blocks.futures), vectors, rtol, most)
        found: tuple[FloatArray, int] = cluster.result(cluster.submit(*task))
        return found

    def parts(self) -> LongArray:
        """The part of every point; no active pair connects two parts."""
        forests = self.blocks.each("forest", _active_forest)
        return components(self.blocks.cluster, len(self.degrees), forests)[1].astype(np.int64)


@dataclass(frozen=True)
class DistributedPlan(TransportPlan):
    """A plan on the workers; each of the ``blocks`` is a `PlanBlock`."""

    loops: FloatArray
    loop_costs: FloatArray
    sums: FloatArray
    blocks: Blocks

    @property
    def degrees(self) -> LongArray:
        """Number of entries of every row, without the diagonal."""
        return self.sums[:, 0].astype(np.int64)

    @property
    def row_sums(self) -> FloatArray:
        """Row sums of the plan, with the diagonal."""
        return self.sums[:, 1].copy()

    def with_entries(self, weights: DistributedPairs, costs: DistributedPairs) -> DistributedPlan:
        """The plan with the weights and costs of some entries set; their columns are known."""
        rows = self.blocks.each("plan", _with_entries, weights.blocks.futures, costs.blocks.futures)
        sums = np.concatenate(self.blocks.cluster.notes(rows))
        return replace(self, blocks=replace(self.blocks, futures=rows), sums=sums)

    def component_labels(self) -> LongArray:
        """Connected component of every point."""
        forests = self.blocks.each("forest", _forest)
        return components(self.blocks.cluster, len(self.loops), forests)[1].astype(np.int64)

    def product(self, v: FloatArray, diagonal: FloatArray) -> FloatArray:
        """(diag(row sums) + plan) times ``v``, given its diagonal."""
        own = self.blocks.rows_of(diagonal)
        return self.blocks.answers("product", _plan_product, own, vector=v)

    def scaled_sums(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Row sums of c·q and q² for q_ij = pi_ij (1 + w_i + w_j), without the diagonal."""
        sums = self.blocks.answers("sums", _scaled_sums, vector=w)
        return sums[:, 0].copy(), sums[:, 1].copy()


def solved_by_one(n_active: int, n: int, n_blocks: int, n_threads: int) -> bool:
    """Whether products of one worker with all active pairs take no longer than a round for each."""
    longer = n_active * (1.0 - 1.0 / min(n_threads, n_blocks))
    return longer <= MOST_SOLVED * (n_blocks + n / ROWS_LIKE_A_BLOCK)


def rows_by_block(rows: LongArray, ranges: list[tuple[int, int]]) -> list[LongArray]:
    """Sorted rows, divided into those of each block."""
    cuts = np.searchsorted(rows, [first for first, _ in ranges] + [ranges[-1][1]])
    return [rows[a:b] for a, b in itertools.pairwise(cuts)]


# Tasks, each for the rows of one block ---------------------------------------------------


@dataclass(frozen=True)
class PairBlock:
    """Candidate pairs of some rows, with local columns."""

    columns: Columns
    pairs: Pairs

    def global_pairs(self) -> Pairs:
        """The same rows with global columns."""
        return replace(self.pairs, indices=self.columns.to_global(self.pairs.indices))

    def problem(self, diagonal: FloatArray) -> RestrictedProblem:
        """The rows of the restricted problem; one thread, as a worker runs many blocks at once."""
        return RestrictedProblem(self.pairs, diagonal, Workers(1))


@dataclass(frozen=True)
class HessianBlock:
    """Active pairs of some rows, with local columns: all that products need.

    Candidates may be on disk meanwhile.
    """

    columns: Columns
    hessian: Hessian


@dataclass(frozen=True)
class PlanBlock:
    """Entries of a plan in some rows, with local columns."""

    columns: Columns
    plan: Plan


def join_pairs(n: int, first: int, last: int, found: Sequence[Entries]) -> Kept[PairBlock, Note]:
    """Rows ``first:last`` from everything that was found for them."""
    return _keep_pairs(n, first, last, Pairs(*sorted_rows(found, first, last, both=True)))


def _keep_pairs(n: int, first: int, last: int, pairs: Pairs) -> Kept[PairBlock, Note]:
    """The block of pairs with global columns.

    Arrays with room for more pairs hold the same again: Dask would store and send both.
    """
    columns = Columns.of(n, first, last, pairs.indices)
    local = replace(pairs, indices=columns.to_local(pairs.indices), room=None)
    return Kept(PairBlock(columns, local), (columns.need, len(pairs.indices)))


def _below(block: PairBlock, upper: Part) -> Kept[PairBlock, Note]:
    columns = block.columns
    kept = PairBlock(columns, block.pairs.below(columns.take(upper), Workers(1)))
    # Columns that no pair uses any more are dropped.
    return _keep_pairs(columns.n, columns.first, columns.last, kept.global_pairs())


def _merge(block: PairBlock, other: PairBlock) -> Kept[PairBlock, Note]:
    columns = block.columns
    both = block.global_pairs().merged(other.global_pairs(), Workers(1))
    return _keep_pairs(columns.n, columns.first, columns.last, both)


def _cheapest(block: PairBlock, rows: LongArray, k: int) -> tuple[LongArray, LongArray, FloatArray]:
    """The k cheapest pairs of some rows: both ends and costs."""
    near, found = np.empty((len(rows), k), dtype=np.int64), np.empty((len(rows), k))
    pairs, local = block.global_pairs(), rows - block.columns.first
    source = (pairs.indptr, pairs.indices, pairs.costs, local, near, found)
    pair_kernels.cheapest_entries(*source, (0, len(rows)))
    there = np.isfinite(found)
    return np.repeat(rows, there.sum(axis=1)), near[there], found[there]


def _ask(block: PairBlock, diagonal: FloatArray, method: str, *arguments: object) -> FloatArray:
    answer: FloatArray = getattr(block.problem(diagonal), method)(*arguments)
    return answer


def _lift(
    block: PairBlock, diagonal: FloatArray, rows: LongArray, target: FloatArray, u: Part
) -> FloatArray:
    local = block.columns.take(u)
    return block.problem(diagonal).lift(local, rows - block.columns.first, target)


def _entries_of(
    block: PairBlock, diagonal: FloatArray, rows: LongArray
) -> tuple[LongArray, IntArray, FloatArray]:
    local = rows - block.columns.first
    counts, partners, costs = block.problem(diagonal).entries_of(local)
    return counts, block.columns.to_global(partners), costs


def _evaluate(block: PairBlock, diagonal: FloatArray, u: Part) -> Kept[HessianBlock, FloatArray]:
    """Keep the Hessian; report row sums, sums of squares and degrees."""
    problem, local = block.problem(diagonal), block.columns.take(u)
    sums, hessian = problem.evaluate(local), problem.hessian(local)
    problem.forget()  # the list of active pairs is as long as that of candidates, and ours now
    bounds, active = np.zeros(len(hessian.starts) + 1, dtype=np.int64), hessian.indices
    kernels.pack_columns(hessian.starts, hessian.ends, active, bounds)
    hessian = replace(hessian, starts=bounds[:-1], ends=bounds[1:], indices=active[:0])
    active.resize(bounds[-1], refcheck=False)
    hessian = replace(hessian, indices=active)
    note = np.stack((sums.row_sums, sums.square_sums, hessian.degrees), axis=1)
    return Kept(HessianBlock(block.columns, hessian), note)


def _hessian_product(block: HessianBlock, v: Part) -> FloatArray:
    return block.hessian.product(block.columns.take(v))


def _solve(
    blocks: Sequence[HessianBlock],
    vectors: Sequence[Sequence[FloatArray]],
    rtol: float,
    most: int,
) -> tuple[FloatArray, int]:
    """Conjugate gradients for the active pairs of all blocks: solution and number of products.

    Each of the three ``vectors`` comes in pieces.
    """
    shift, rhs, weights = (np.concatenate(pieces) for pieces in vectors)
    counts = np.concatenate([block.hessian.ends - block.hessian.starts for block in blocks])
    bounds = np.concatenate(([0], np.cumsum(counts)))
    indices, place = np.empty(bounds[-1], dtype=np.int32), 0
    for block in blocks:
        own = block.columns.to_global(block.hessian.indices)
        indices[place : place + len(own)] = own
        place += len(own)
    diagonal = np.concatenate([block.hessian.diagonal for block in blocks])
    rows = SharedRows([(0, len(rhs))], Workers(1))
    hessian = Hessian(bounds[:-1], bounds[1:], indices, diagonal, diagonal, rows)
    branches = hessian.branches(shift)
    x, count = conjugate_gradients(
        hessian.shifted(shift), diagonal + shift, rhs,
        rtol=rtol, max_products=most, weights=weights, branches=branches,
    )  # fmt: skip
    return x, count + (branches is not None)


def _plan(
    block: PairBlock, diagonal: FloatArray, eps: float, u: Part
) -> Kept[PlanBlock, FloatArray]:
    """Keep the plan; report degrees and row sums."""
    plan = block.problem(diagonal).plan(block.columns.take(u), eps)
    return _keep_plan(PlanBlock(block.columns, replace(plan, room=None)))


def _keep_plan(block: PlanBlock) -> Kept[PlanBlock, FloatArray]:
    return Kept(block, np.stack((block.plan.degrees, block.plan.row_sums), axis=1))


def _with_entries(
    block: PlanBlock, weights: PairBlock, costs: PairBlock
) -> Kept[PlanBlock, FloatArray]:
    columns, plan = block.columns, block.plan
    whole = replace(plan, indices=columns.to_global(plan.indices), room=None)
    whole = whole.with_entries(weights.global_pairs(), costs.global_pairs())
    plan = replace(whole, indices=columns.to_local(whole.indices))
    return _keep_plan(PlanBlock(columns, plan))


def _forest(block: PlanBlock) -> Edges:
    rows = np.arange(block.columns.first, block.columns.last, dtype=np.int32)
    columns = block.columns.to_global(block.plan.indices)
    return forest(block.columns.n, np.repeat(rows, block.plan.degrees), columns)


def _active_forest(block: HessianBlock) -> Edges:
    columns, hessian = block.columns, block.hessian
    counts = hessian.ends - hessian.starts
    rows = np.repeat(np.arange(columns.first, columns.last, dtype=np.int32), counts)
    places = np.arange(len(rows)) + np.repeat(hessian.starts - np.cumsum(counts) + counts, counts)
    return forest(columns.n, rows, columns.to_global(hessian.indices[places]))


def _plan_product(block: PlanBlock, diagonal: FloatArray, v: Part) -> FloatArray:
    return block.plan.product(block.columns.take(v), diagonal)


def _scaled_sums(block: PlanBlock, w: Part) -> FloatArray:
    return np.stack(block.plan.scaled_sums(block.columns.take(w)), axis=1)
