"""Pairs, restricted problem, Hessian and plan in blocks of rows on the workers.

The driver holds vectors. Each evaluation is one round: the vector is sent, every block computes
the results for its rows, and the driver concatenates them. The driver also computes all sums over
rows, in the same order as without a cluster.
"""

from __future__ import annotations

import itertools
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from otgraph._kernels import blocks as kernels
from otgraph._kernels import pairs as pair_kernels
from otgraph._parallel import Workers
from otgraph.costs.interface import Curvature, Evaluation, M, PairSet, Restricted
from otgraph.costs.local import LocalProblem
from otgraph.costs.pairs import Pairs
from otgraph.costs.restricted import Hessian, RestrictedProblem, SharedRows
from otgraph.distributed._blocks import Blocks, Columns, Vector, components, forest, sorted_rows
from otgraph.distributed._cluster import Kept
from otgraph.distributed._plan import DistributedPlan, PlanBlock, keep_plan
from otgraph.solvers.cg import conjugate_gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from distributed import Future

    from otgraph.distributed._blocks import Edges, Entries, Need, Part
    from otgraph.distributed._cluster import Cluster
    from otgraph.typing import Array, BoolArray, FloatArray, IntArray, LongArray

    Note = tuple[Need, int]  # what a block needs of a vector, and the number of its entries

# Active entries per block up to which one worker takes all products of conjugate gradients. Each
# takes 5 ms for every block then, about as long as a round with its messages; so do so many numbers
# of a vector, which goes out and comes back.
MOST_SOLVED = 1 << 21
ROWS_LIKE_A_BLOCK = 1 << 18
# Memory of conjugate gradients in one task: active pairs as received and with global columns; for
# each row its place, its diagonal, the four vectors that come, twice, and six that are made.
SOLVE_BYTES_PER_ENTRY = 2 * 4
SOLVE_BYTES = 8 * (3 + 1 + 2 * 4 + 6)
# Systems that are behind the blocks of active pairs that the next one is made of. The scheduler
# keeps their vectors, to have all of them solved again where a worker is lost.
MOST_BEHIND = 5
# Memory of the problem of some rows in one task: pairs as received and together, and active ones;
# places of all points and of those outside, and potentials before, twice, and after. These rows
# have more pairs than others: 1.5 times as many were seen.
LOCAL_BYTES_PER_ENTRY = 2 * 12 + 4
LOCAL_BYTES = 2 * 4 + 3 * 8
MORE_ENTRIES = 1.5


@dataclass(frozen=True)
class DistributedPairs(PairSet):
    """Symmetric rows of pairs; each of the ``blocks`` is a `PairBlock`.

    ``latest`` is what all problems on these pairs know of the last potentials.
    """

    blocks: Blocks
    reach: FloatArray | None = None
    latest: _Latest = field(default_factory=lambda: _Latest(), compare=False, repr=False)

    @property
    def n_pairs(self) -> int:
        """Number of pairs, each counted once."""
        n_entries: int = sum(self.blocks.reported())
        return n_entries // 2

    def below(self, upper: FloatArray, workers: Workers) -> DistributedPairs:
        """The pairs with c_ij < upper_i + upper_j.

        They need of a vector what these need, so that nobody waits for them.
        """
        blocks = self.blocks
        futures = blocks.each("candidates", _below, vector=upper)
        return DistributedPairs(replace(blocks, futures=futures, facts=[]))

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
        if self._shared.pairs is not None:
            self._shared.pairs.latest.forget()

    def release(self) -> None:
        """Free the pairs, for all problems on them; none of these can be used any more."""
        self.forget()
        self._shared.pairs = self._shared.largest = None

    def start(self, target: FloatArray) -> FloatArray:
        """Solve every row by itself, as if its neighbors had the same potential as the point."""
        blocks = self._blocks
        own = (blocks.rows_of(self.diagonal), blocks.rows_of(target))
        return blocks.answers("start", _start, *own)

    def start_above(self, target: FloatArray, sweeps: int) -> FloatArray:
        """Potentials whose row sums are at least their targets: all sweeps in one round."""
        blocks = self._blocks
        own = (blocks.rows_of(self.diagonal), blocks.rows_of(target))
        parts = blocks.each("start", _start, *own)
        for left in range(sweeps, -1, -1):
            parts = blocks.each("lift", _swept, *own, left == 0, blocks.needed(parts))
        return np.concatenate(blocks.cluster.gather(parts))

    def lift(self, u: FloatArray, rows: LongArray, target: FloatArray) -> FloatArray:
        """Potentials of some rows that meet their targets while all others stay fixed."""
        blocks = self._blocks
        own = (blocks.rows_of(self.diagonal), rows_by_block(rows, blocks.ranges))
        return blocks.answers("lift", _lift, *own, blocks.rows_of(target), vector=u)

    def entries_of(self, rows: LongArray) -> tuple[LongArray, IntArray, FloatArray]:
        """The pairs of some points, sorted: number per point, partners, costs."""
        own = rows_by_block(rows, self._blocks.ranges)
        found = self._blocks.cluster.gather(self._blocks.each("entries", _entries_of, own))
        counts, partners, costs = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return counts, partners, costs

    def solved_elsewhere(
        self,
        rows: LongArray,
        u: FloatArray,
        target: FloatArray,
        solve: Callable[[Any, FloatArray, FloatArray], M],
    ) -> M | None:
        """What one worker finds from the problem of some rows, if it has room for their pairs.

        These are a large part of all where many points need minimum flows. All workers evaluate
        what it finds in the same round.
        """
        blocks, cluster = self._blocks, self._blocks.cluster
        n_entries = int(MORE_ENTRIES * 2 * self.n_pairs * len(rows) / self.n)
        if n_entries * LOCAL_BYTES_PER_ENTRY + self.n * LOCAL_BYTES > cluster.task_bytes:
            return None
        entries = blocks.each("entries", _entries_of, rows_by_block(rows, blocks.ranges))
        self.forget()  # it is evaluated again when the points have moved
        own: dict[str, Array] = {"rows": rows.astype(np.int32), "u": u}
        own |= {"target": target[rows], "diagonal": self.diagonal[rows]}
        task = ("nearby", _nearby, entries, _sent(cluster, own), (len(rows), len(u)), solve)
        solved = cluster.submit(*task)
        evaluated = blocks.each("evaluate", _evaluate, {0: solved})
        found: M
        found, *notes = cluster.notes([solved, *evaluated])
        after = u.copy()
        after[rows] = found.u
        self.pairs.latest.next = _Evaluated.of(after, blocks, evaluated, notes, solved, 1)
        return found

    def largest_costs(self) -> FloatArray:
        """Largest candidate cost of every row, 0 for a row without candidates."""
        if self._shared.largest is None:
            self._shared.largest = self._blocks.answers("largest", _largest_costs)
        return self._shared.largest

    def evaluate(self, u: FloatArray) -> Evaluation:
        """Row sums and square sum at ``u``; those of the pairs are cached.

        As `RestrictedProblem`, whose kernel adds the diagonal entry last.
        """
        sums = self._at(u).sums
        active = 2.0 * u > self.diagonal
        if not active.any():
            return Evaluation(sums.row_sums, sums.square_sums)
        excess = np.where(active, 2.0 * u - self.diagonal, 0.0)
        return Evaluation(sums.row_sums + excess, sums.square_sums + excess * excess)

    def hessian(self, u: FloatArray) -> DistributedHessian:
        """Generalized Hessian diag(sigma 1) + sigma at ``u``; known where ``u`` was evaluated."""
        at, loops = self._at(u), 2.0 * u > self.diagonal
        degrees = np.add(at.sums.degrees, loops, dtype=np.float64)
        diagonal = degrees + loops if loops.any() else degrees
        return DistributedHessian(degrees, diagonal, loops, at, self.pairs)

    def _at(self, u: FloatArray) -> _Evaluated:
        """What is known at ``u``: one round, if nobody has asked for it before."""
        latest = self.pairs.latest
        latest.move_to(u)
        if latest.here is None:
            rows = self._blocks.each("evaluate", _evaluate, vector=u)
            latest.here = _Evaluated.of(u, self._blocks, rows, self._blocks.cluster.notes(rows))
        return latest.here

    def plan(self, u: FloatArray, eps: float) -> DistributedPlan:
        """The transport plan of ``u`` on the stored pairs."""
        self.forget()  # nobody evaluates it any more, so that there is room for the plan
        blocks = self._blocks
        rows = blocks.each("plan", _plan, blocks.rows_of(self.diagonal), eps, vector=u)
        loops = np.maximum(2.0 * u - self.diagonal, 0.0) / eps
        sums = np.concatenate(blocks.cluster.notes(rows))
        return DistributedPlan(loops, self.diagonal, sums, replace(blocks, futures=rows))


@dataclass
class _Shared:
    """Pairs of problems with different diagonals, and what the largest costs are if known."""

    pairs: DistributedPairs | None
    largest: FloatArray | None = None


class _Sums(NamedTuple):
    """Sums over the pairs of every row, and how many of them are active; without the diagonal."""

    row_sums: FloatArray
    square_sums: FloatArray
    degrees: IntArray


class _Evaluated(NamedTuple):
    """Potentials, the sums there, and active pairs: each of the ``blocks`` is a `HessianBlock`.

    ``n_behind`` systems are behind these potentials, in tasks of which these blocks are made; the
    last of them has ``solved``, and holds the potentials.
    """

    u: FloatArray
    sums: _Sums
    blocks: Blocks
    solved: Future | None
    n_behind: int

    @classmethod
    def of(
        cls,
        u: FloatArray,
        blocks: Blocks,
        rows: list[Future],
        notes: list[_Sums],
        solved: Future | None = None,
        n_behind: int = 0,
    ) -> _Evaluated:
        """From what `_evaluate` has kept and reported of each block."""
        sums = _Sums(*map(np.concatenate, zip(*notes, strict=True)))
        return cls(u, sums, replace(blocks, futures=rows), solved, n_behind)


@dataclass
class _Latest:
    """What is known at the last potentials, and at those that the last Newton step leads to."""

    here: _Evaluated | None = None
    next: _Evaluated | None = None

    def move_to(self, u: FloatArray) -> None:
        """Free what is known elsewhere."""
        if self.here is not None and self.here.u is u:
            return
        self.here, ahead = None, self.next
        self.next = None
        if ahead is not None and np.array_equal(ahead.u, u):
            self.here = ahead._replace(u=u)

    def forget(self) -> None:
        """Free everything."""
        self.here = self.next = None


@dataclass(frozen=True)
class DistributedHessian(Curvature):
    """Active pairs on the workers, and entries on the diagonal (``loops``) that are active, too."""

    degrees: FloatArray
    diagonal: FloatArray
    loops: BoolArray
    at: _Evaluated
    pairs: DistributedPairs

    @property
    def blocks(self) -> Blocks:
        """Each is a `HessianBlock`."""
        return self.at.blocks

    @property
    def n_active(self) -> int:
        """Number of active ordered pairs, without the diagonal."""
        return int(np.sum(self.at.sums.degrees, dtype=np.int64))

    def product(self, v: FloatArray) -> FloatArray:
        """Hessian times ``v``."""
        loops = self.blocks.rows_of(self.loops)
        return self.blocks.answers("product", _hessian_product, loops, vector=v)

    def reached(self, points: BoolArray, hops: int = 1) -> BoolArray:
        """The points, and those that up to so many active pairs connect with one of them.

        All hops are one round.
        """
        marks = self.blocks.each("marks", _marked, vector=points)
        for _ in range(hops - 1):
            marks = self.blocks.each("marks", _marked, self.blocks.needed(marks))
        return np.concatenate(self.blocks.cluster.gather(marks))

    def solve(
        self, shift: FloatArray, rhs: FloatArray, weights: FloatArray, rtol: float, most: int
    ) -> tuple[FloatArray, int] | None:
        """Conjugate gradients in one round, if there are few active pairs and one worker has room.

        It has one thread for the products, and saves the messages of each. Newton tries the full
        step first, so all workers evaluate it in the same round.
        """
        cluster, at = self.blocks.cluster, self.at
        need = self.n_active * SOLVE_BYTES_PER_ENTRY + len(rhs) * SOLVE_BYTES
        sizes = (self.n_active, len(rhs), len(self.blocks.futures), cluster.n_threads)
        if need > cluster.task_bytes or not solved_by_one(*sizes):
            return None
        vectors: dict[str, Array] = {"loops": self.loops, "rhs": rhs, "weights": weights}
        table = _by_degree(self.diagonal, shift)
        if table is None:
            vectors["shift"] = shift
        if at.solved is None:
            vectors["u"] = at.u
        sent = _sent(cluster, vectors)
        if table is not None:
            sent["table"] = [table]
        if at.solved is not None:
            sent["u"] = [at.solved]
        solved = cluster.submit("solve", _solve, list(self.blocks.futures), sent, rtol, most)
        blocks, rows = self.pairs.blocks, []
        if at.n_behind < MOST_BEHIND:
            rows = blocks.each("evaluate", _evaluate, {0: solved})
        (x, count), *notes = cluster.notes([solved, *rows])
        if rows:
            ahead = _Evaluated.of(at.u + x, blocks, rows, notes, solved, at.n_behind + 1)
            self.pairs.latest.next = ahead
        return x, count

    def parts(self) -> LongArray:
        """The part of every point; no active pair connects two parts."""
        forests = self.blocks.each("forest", _active_forest)
        return components(self.blocks.cluster, len(self.degrees), forests)[1].astype(np.int64)


def _by_degree(diagonal: FloatArray, shift: FloatArray) -> FloatArray | None:
    """What the shift of the diagonal is for each degree, if it depends on nothing else."""
    degrees = diagonal.astype(np.int64)
    table = np.zeros(int(degrees.max()) + 1)
    table[degrees] = shift
    return table if np.array_equal(table[degrees], shift) else None


def _sent(cluster: Cluster, vectors: dict[str, Array]) -> dict[str, list[Any]]:
    """Vectors for one task, each in pieces; where all entries are equal, it is one of them."""
    short = {
        name: vector[:1].copy() if (vector == vector[0]).all() else vector
        for name, vector in vectors.items()
    }
    if sum(map(len, short.values())) <= cluster.piece_entries:
        return {name: [vector] for name, vector in short.items()}
    return {name: list(Vector.send(cluster, vector).pieces) for name, vector in short.items()}


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

    def without_diagonal(self) -> RestrictedProblem:
        """The same, for what does not depend on the diagonal."""
        return self.problem(np.full(self.columns.n_rows, np.inf))


@dataclass(frozen=True)
class HessianBlock:
    """Active pairs of some rows, with local columns: all that products need.

    Candidates may be on disk meanwhile. It travels, so it holds little else.
    """

    columns: Columns
    degrees: IntArray
    indices: IntArray

    def hessian(self, loops: BoolArray) -> Hessian:
        """The rows with the active entries of the diagonal."""
        return _hessian(self.degrees, self.indices, loops)


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
    """Columns that no pair uses any more stay: numbering them again takes as long as all else."""
    columns = block.columns
    kept = block.pairs.below(columns.take(upper), Workers(1))
    own = PairBlock(columns, replace(kept, room=None))
    return Kept(own, (columns.need, len(kept.indices)))


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


def _start(block: PairBlock, diagonal: FloatArray, target: FloatArray) -> FloatArray:
    return block.problem(diagonal).start(target)


def _swept(
    block: PairBlock, diagonal: FloatArray, target: FloatArray, last: bool, u: Part
) -> FloatArray:
    """As `Restricted.start_above`."""
    local, own = block.columns.take(u), slice(block.columns.n_rows)
    lifted = block.problem(diagonal).lift(local, np.arange(block.columns.n_rows), target)
    return np.maximum(local[own], lifted) if last else 0.5 * (local[own] + lifted)


def _largest_costs(block: PairBlock) -> FloatArray:
    return block.without_diagonal().largest_costs()


def _lift(
    block: PairBlock, diagonal: FloatArray, rows: LongArray, target: FloatArray, u: Part
) -> FloatArray:
    local = block.columns.take(u)
    return block.problem(diagonal).lift(local, rows - block.columns.first, target)


def _entries_of(block: PairBlock, rows: LongArray) -> tuple[LongArray, IntArray, FloatArray]:
    local = rows - block.columns.first
    counts, partners, costs = block.without_diagonal().entries_of(local)
    return counts, block.columns.to_global(partners), costs


def _evaluate(block: PairBlock, u: Part) -> Kept[HessianBlock, _Sums]:
    """Keep the active pairs; report sums and degrees."""
    problem, local = block.without_diagonal(), block.columns.take(u)
    sums, hessian = problem.evaluate(local), problem.hessian(local)
    problem.forget()  # the list of active pairs is as long as that of candidates, and ours now
    bounds, active = np.zeros(len(hessian.starts) + 1, dtype=np.int64), hessian.indices
    kernels.pack_columns(hessian.starts, hessian.ends, active, bounds)
    degrees = np.diff(bounds).astype(np.int32)
    del hessian
    active.resize(bounds[-1], refcheck=False)
    note = _Sums(sums.row_sums, sums.square_sums, degrees)
    return Kept(HessianBlock(block.columns, degrees, active), note)


def _hessian(degrees: IntArray, indices: IntArray, loops: BoolArray) -> Hessian:
    """Packed rows of active pairs, for one thread."""
    bounds = np.concatenate(([0], np.cumsum(degrees, dtype=np.int64)))
    own = np.add(degrees, loops, dtype=np.float64)
    rows = SharedRows([(0, len(degrees))], Workers(1))
    return Hessian(bounds[:-1], bounds[1:], indices, own, own + loops, rows)


def _hessian_product(block: HessianBlock, loops: BoolArray, v: Part) -> FloatArray:
    return block.hessian(loops).product(block.columns.take(v))


def _marked(block: HessianBlock, points: Part) -> BoolArray:
    """The own rows that are marked, or that an active pair connects with a marked point."""
    marks = block.columns.take(points)
    hessian = block.hessian(np.zeros(block.columns.n_rows, dtype=np.bool_))
    near = hessian.product(marks.astype(np.float64)) > 0.0
    return np.asarray(marks[: block.columns.n_rows] | near)


def _received(pieces: Sequence[Array], n: int) -> Array:
    """What `_sent` has sent."""
    whole = np.concatenate(pieces)
    return np.full(n, whole[0]) if len(whole) == 1 else whole


def _solve(
    blocks: Sequence[HessianBlock],
    vectors: dict[str, Sequence[Array]],
    rtol: float,
    most: int,
) -> Kept[FloatArray, tuple[FloatArray, int]]:
    """Conjugate gradients for the active pairs of all blocks: solution and number of products.

    Keeps the potentials after a full step.
    """
    degrees = np.concatenate([block.degrees for block in blocks])
    loops, rhs, weights, u = (
        _received(vectors[name], len(degrees)) for name in ("loops", "rhs", "weights", "u")
    )
    indices, place = np.empty(np.sum(degrees, dtype=np.int64), dtype=np.int32), 0
    for block in blocks:
        own = block.columns.to_global(block.indices)
        indices[place : place + len(own)] = own
        place += len(own)
    hessian = _hessian(degrees, indices, loops)
    if "table" in vectors:
        shift = vectors["table"][0][hessian.diagonal.astype(np.int64)]
    else:
        shift = _received(vectors["shift"], len(degrees))
    branches = hessian.branches(shift)
    x, count = conjugate_gradients(
        hessian.shifted(shift), hessian.diagonal + shift, rhs,
        rtol=rtol, max_products=most, weights=weights, branches=branches,
    )  # fmt: skip
    return Kept(u + x, (x, count + (branches is not None)))


def _nearby(
    entries: Sequence[tuple[LongArray, IntArray, FloatArray]],
    vectors: dict[str, Sequence[Array]],
    sizes: tuple[int, int],
    solve: Callable[[LocalProblem, FloatArray, FloatArray], M],
) -> Kept[FloatArray, M]:
    """What ``solve`` finds from the problem of some rows, whose pairs come from all blocks.

    Keeps the potentials of all points after it.
    """
    n_rows, n = sizes
    rows, target, diagonal = (
        _received(vectors[name], n_rows) for name in ("rows", "target", "diagonal")
    )
    u = _received(vectors["u"], n)
    counts, partners, costs = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    problem = LocalProblem((counts, partners, costs), diagonal, rows, u, Workers(1))
    found = solve(problem, target, u[rows])
    after = u.copy()  # what was received may not be written to
    after[rows] = found.u
    return Kept(after, found)


def _plan(
    block: PairBlock, diagonal: FloatArray, eps: float, u: Part
) -> Kept[PlanBlock, FloatArray]:
    """Keep the plan; report degrees and row sums."""
    plan = block.problem(diagonal).plan(block.columns.take(u), eps)
    return keep_plan(PlanBlock(block.columns, replace(plan, room=None)))


def _active_forest(block: HessianBlock) -> Edges:
    columns = block.columns
    rows = np.repeat(np.arange(columns.first, columns.last, dtype=np.int32), block.degrees)
    return forest(columns.n, rows, columns.to_global(block.indices))
