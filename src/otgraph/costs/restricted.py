"""The optimal transport problem on a given set of pairs.

The solver sees only this: row sums, Hessian products and the plan for a vector of potentials. It
has no access to the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels import restricted as kernels
from otgraph._kernels.cg import solve_cg
from otgraph._kernels.components import component_labels, labels_of_rows
from otgraph._kernels.newton import full_steps
from otgraph._memory import return_free_memory
from otgraph._parallel import Workers, equal_blocks
from otgraph.costs.coarse import Entries, Multilevel
from otgraph.costs.interface import Curvature, Evaluation, FullSteps, Restricted, TransportPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from otgraph.costs.pairs import Pairs
    from otgraph.costs.parts import Places
    from otgraph.typing import BoolArray, FloatArray, IntArray, LongArray

    Room = tuple[IntArray, FloatArray, FloatArray]

# Rows per task. Handing a task to a thread takes about 20 µs, so tasks should not be small; they
# must be small enough for two cores to share a few thousand points.
BLOCK_ROWS = 2048
MOST_BLOCKS = 64  # with more points, blocks have more rows
# A plan has room for minimum flows, which are few. Memory that is not written to is not used.
PLAN_ROOM = 1.05
MANY_ENTRIES = 1 << 20  # from here on, active pairs are not kept beside a plan
FEW_ROWS = 4096  # up to so many, one thread is as fast as two
# Up to so many, a Newton step from Python takes as long as its sums: 0.1 ms.
FEWEST_ROWS = 512
MOST_STEPS = 32  # taken in one call; five are usual


class RestrictedProblem(Restricted):
    """Sums over pairs in memory, plus one diagonal entry per point.

    It may hold only a block of rows. Vectors are then local: the points of the block come first,
    then the other columns.

    Parameters
    ----------
    pairs
        The candidate pairs with their costs.
    diagonal
        Cost of keeping mass at a point: 0 with self-loops, infinite without them, or the price of
        unplaced mass, which keeps a problem on too few pairs feasible.
    workers
        Threads that share the rows.

    Attributes
    ----------
    bipartite
        Whether all pairs are between two clouds. Then the Hessian is a Laplacian up to signs, and
        its systems may need a `Multilevel`. Those of one cloud need few products, and a cluster,
        which has no `Multilevel`, must give the same bits.
    """

    bipartite = False

    def __init__(self, pairs: Pairs, diagonal: FloatArray, workers: Workers) -> None:
        self._candidates = _Candidates(pairs)
        self.diagonal = diagonal
        self.n = len(diagonal)
        self._workers = workers
        self._rows = SharedRows.of(self.n, workers)

    @property
    def pairs(self) -> Pairs:
        """The candidate pairs with their costs."""
        pairs = self._candidates.pairs
        assert pairs is not None, "these candidates were released"
        return pairs

    @property
    def n_pairs(self) -> int:
        """Number of stored pairs, each counted once."""
        return self.pairs.n_pairs

    def with_diagonal(self, diagonal: FloatArray) -> RestrictedProblem:
        """The same pairs with other diagonal costs."""
        other = object.__new__(type(self))  # a third of the time of `copy`
        other.__dict__.update(self.__dict__, diagonal=diagonal)
        return other

    def forget(self) -> None:
        """Free what was computed at the last potentials; it is computed again when needed."""
        self._candidates.active = self._candidates.latest = None

    def release(self) -> None:
        """Free the pairs, for all problems on them; none of these can be used any more."""
        self.forget()
        self._candidates.pairs = None

    def start(self, target: FloatArray) -> FloatArray:
        """Solve every row by itself, as if its neighbors had the same potential as the point."""
        # With 2 u_i in the place of u_i, neighbors at 0 and a diagonal of twice the size, these are
        # the equations of `lift`.
        twice = self.with_diagonal(2.0 * self.diagonal)
        n_columns = max(self.n, int(self.pairs.indices.max(initial=-1)) + 1)  # of a block of rows
        return 0.5 * twice.lift(np.zeros(n_columns), np.arange(self.n), target)

    def lift(self, u: FloatArray, rows: LongArray, target: FloatArray) -> FloatArray:
        """Potentials of some rows that meet their targets while all others stay fixed."""
        lifted = np.empty(len(rows))
        pairs = self.pairs
        source = (pairs.indptr, pairs.indices, pairs.costs, self.diagonal, u)
        SharedRows.of(len(rows), self._workers).run(
            lambda a, b: kernels.lift_rows(*source, rows, target, a, b, lifted)
        )
        return lifted

    def largest_costs(self) -> FloatArray:
        """Largest candidate cost of every row, 0 for a row without candidates."""
        pairs, out = self.pairs, np.empty(self.n)
        self._rows.run(lambda a, b: kernels.largest_of_rows(pairs.indptr, pairs.costs, a, b, out))
        return out

    def entries_of(self, rows: LongArray) -> tuple[LongArray, IntArray, FloatArray]:
        """The pairs of some points, sorted: number per point, partners, costs."""
        pairs = self.pairs
        counts = pairs.indptr[rows + 1] - pairs.indptr[rows]
        ends = np.cumsum(counts)
        n_entries = int(ends[-1]) if len(ends) else 0
        partners, costs = np.empty(n_entries, dtype=np.int32), np.empty(n_entries)
        source = (pairs.indptr, pairs.indices, pairs.costs, rows, ends)
        SharedRows.of(len(rows), self._workers).run(
            lambda a, b: kernels.copy_rows(*source, a, b, partners, costs)
        )
        return counts, partners, costs

    def places_of(self, rows: LongArray) -> Places:
        """Nothing is copied: at ten million points it would be two gigabytes."""
        pairs = self.pairs
        return pairs.indptr[rows], pairs.indptr[rows + 1], pairs.indices, pairs.costs

    def evaluate(self, u: FloatArray) -> Evaluation:
        """Row sums and square sum at ``u``; the last result is cached."""
        return self._at(u).sums

    def hessian(self, u: FloatArray) -> Hessian:
        """Generalized Hessian diag(sigma 1) + sigma at ``u``, valid until the next evaluation."""
        latest = self._at(u)
        if latest.hessian is None:
            starts = self.pairs.indptr[:-1]
            degrees, diagonal = np.empty((2, self.n))
            source = (starts, latest.ends, self.diagonal, u)
            self._rows.run(lambda a, b: kernels.fill_degrees(*source, a, b, degrees, diagonal))
            assert self._candidates.active is not None  # computed together with the sums
            latest.hessian = Hessian(
                starts, latest.ends, self._candidates.active, degrees, diagonal, self._rows,
                self.bipartite,
            )  # fmt: skip
        return latest.hessian

    def _at(self, u: FloatArray) -> _Latest:
        """Sums and active pairs at ``u``, found in one pass.

        The list of active pairs is overwritten, because allocating memory would take longer than
        filling it.
        """
        latest = self._latest(u)
        if latest is not None:
            return latest
        shared, pairs, active = self._candidates, self.pairs, self._active_room()
        row_sums, square_sums = np.empty((2, self.n))
        ends = np.empty(self.n, dtype=np.int64)
        source = (pairs.indptr, pairs.indices, pairs.costs, self.diagonal, u)
        target = (row_sums, square_sums, ends, active)
        shared.latest = None
        self._rows.run(lambda a, b: kernels.evaluate(*source, a, b, *target))
        sums = Evaluation(row_sums, square_sums)
        shared.latest = _Latest(u, self.diagonal, pairs.indptr, sums, ends)
        return shared.latest

    def _latest(self, u: FloatArray) -> _Latest | None:
        """What was computed last, if it was at ``u``."""
        latest = self._candidates.latest
        return latest if latest is not None and latest.is_of(u, self.diagonal, self.pairs) else None

    def _active_room(self) -> IntArray:
        """The list of active pairs, to be filled."""
        shared, length = self._candidates, len(self.pairs.indices)
        if shared.active is None or len(shared.active) < length:
            shared.active = None
            return_free_memory(4 * length)
            shared.active = np.empty(length, dtype=np.int32)
        return shared.active

    def full_steps(
        self, u: FloatArray, target: FloatArray, tol: float, most: int
    ) -> FullSteps | None:
        """The first Newton steps in one call, if there are few points."""
        if self.n > FEWEST_ROWS or len(u) > self.n or self.bipartite:
            return None
        shared, pairs, latest = self._candidates, self.pairs, self._latest(u)
        if latest is not None and (error := latest.sums.error(target)) <= tol:
            return FullSteps(u, latest.sums, u, [error], (0, 0, error, np.inf, 0))
        room, errors = np.empty((4, self.n)), np.empty(1 + min(most, MOST_STEPS))
        row_sums, square_sums, last, improved = room
        if latest is None:
            ends = np.empty(self.n, dtype=np.int64)
        else:
            ends = latest.ends.copy()
            row_sums[:], square_sums[:] = latest.sums.row_sums, latest.sums.square_sums
        active, shared.latest = self._active_room(), None
        counts = full_steps(
            pairs.indptr, pairs.indices, pairs.costs, self.diagonal, target, tol,
            u, latest is not None, room, ends, active, errors,
        )  # fmt: skip
        errors, best = errors[: counts[0] + 1].tolist(), u
        if counts[0]:
            best = last if counts[2] == errors[-1] else improved if counts[2] < errors[0] else u
            u = last
        now = Evaluation(row_sums, square_sums)
        now.set_error(target, errors[-1])
        shared.latest = _Latest(u, self.diagonal, pairs.indptr, now, ends)
        return FullSteps(u, now, best, errors, counts)

    def plan(self, u: FloatArray, eps: float) -> Plan:
        """The transport plan of ``u`` on the stored pairs."""
        indptr = self._plan_rows(u)
        if len(self.pairs.indices) > MANY_ENTRIES:
            self.forget()  # it is needed again only if more steps are
            return_free_memory(20 * indptr[-1])
        return PlanRecipe(self.pairs, u, eps, indptr, self.diagonal, self._rows).made()

    def late_plan(self, u: FloatArray, eps: float) -> LatePlan:
        """The same with sums of its rows only; its entries are made when they are needed."""
        indptr, sums, pairs = self._plan_rows(u), np.empty((4, self.n)), self.pairs
        pairs.keep()
        recipe = PlanRecipe(pairs, u, eps, indptr, self.diagonal, self._rows)
        source = (pairs.indptr, pairs.indices, pairs.costs, u, eps)
        self._rows.run(lambda a, b: kernels.sums_of_plan(*source, a, b, sums))
        return LatePlan(indptr, recipe.loops, self.diagonal, self._rows, sums, recipe)

    def _plan_rows(self, u: FloatArray) -> LongArray:
        """Where the rows of a plan begin and end."""
        indptr = np.zeros(self.n + 1, dtype=np.int64)
        np.subtract(self._at(u).ends, self.pairs.indptr[:-1]).cumsum(out=indptr[1:])
        return indptr


@dataclass
class _Latest:
    """What was computed at some potentials, for some diagonal."""

    u: FloatArray
    diagonal: FloatArray
    indptr: LongArray  # of the pairs, which may grow
    sums: Evaluation
    ends: LongArray
    hessian: Hessian | None = None

    def is_of(self, u: FloatArray, diagonal: FloatArray, pairs: Pairs) -> bool:
        """Whether this was computed from the same objects."""
        return self.u is u and self.diagonal is diagonal and self.indptr is pairs.indptr


@dataclass
class _Candidates:
    """Pairs that problems with different diagonals share, with one list of active pairs.

    The list is as long as that of the pairs, and only the last evaluation needs it.
    """

    pairs: Pairs | None
    active: IntArray | None = None
    latest: _Latest | None = None


@dataclass(frozen=True)
class SharedRows:
    """Blocks of rows and the threads that process them; threads are not pickled."""

    blocks: list[tuple[int, int]]
    workers: Workers

    @classmethod
    def of(cls, n: int, workers: Workers) -> SharedRows:
        """Blocks of rows; they depend only on the number of rows."""
        size = max(n, 1) if n <= FEW_ROWS else max(BLOCK_ROWS, n // MOST_BLOCKS)
        return cls(equal_blocks(n, size), workers)

    def run(self, kernel: Callable[[int, int], None]) -> None:
        """Call a kernel for every block of rows."""
        if len(self.blocks) == 1:
            kernel(*self.blocks[0])
            return
        self.workers.run(lambda block: kernel(*block), self.blocks)


@dataclass(frozen=True)
class Hessian(Curvature):
    """Active pairs in memory.

    The active columns of row i are ``indices[starts[i]:ends[i]]``; the rest of the row is unused.
    """

    starts: LongArray
    ends: LongArray
    indices: IntArray
    degrees: FloatArray
    diagonal: FloatArray
    rows: SharedRows
    bipartite: bool = False

    @cached_property
    def n_active(self) -> int:
        """Number of active ordered pairs, without the diagonal."""
        return int((self.ends - self.starts).sum())

    def product(self, v: FloatArray) -> FloatArray:
        """Hessian times ``v``."""
        out = np.empty(len(self.starts))
        source = (self.starts, self.ends, self.indices, self.diagonal, v)
        self.rows.run(lambda a, b: kernels.hessian_product(*source, a, b, out))
        return out

    @property
    def run(self) -> Callable[[Callable[[int], None], Iterable[int]], None]:
        """Calls a function for several items, in threads."""
        return self.rows.workers.run

    def reached(self, points: BoolArray, hops: int = 1) -> BoolArray:
        """The points, and those that up to so many active pairs connect with one of them.

        Only the rows of these points are read, where a product reads all.
        """
        reached = points.copy()
        for _ in range(hops):
            rows = np.flatnonzero(reached)
            kernels.mark_columns(self.starts, self.ends, self.indices, rows, reached)
        return reached

    def shifted(self, shift: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Products with the Hessian plus a shift of its diagonal, all in the same memory.

        From four million points on, the system would fill every new vector with zeros.
        """
        out = np.empty(len(self.starts))
        matrix = (self.starts, self.ends, self.indices, self.diagonal, shift)

        def product(v: FloatArray) -> FloatArray:
            self.rows.run(lambda a, b: kernels.shifted_product(*matrix, v, a, b, out))
            return out

        return product

    def solve(
        self,
        shift: FloatArray,
        rhs: FloatArray,
        weights: FloatArray,
        rtol: float,
        most: int,
        n_fixed: int = 0,
    ) -> tuple[FloatArray, int] | None:
        """Conjugate gradients in one call, if there is one block of rows, nothing to share.

        The last ``n_fixed`` columns belong to points that do not move.
        """
        if len(self.rows.blocks) > 1:
            return None
        x, residual, z, q = np.empty((4, len(rhs)))
        p = np.zeros(len(rhs) + n_fixed)
        source = (self.starts, self.ends, self.indices, self.diagonal)
        count = solve_cg(*source, shift, rhs, weights, rtol, most, x, residual, z, p, q)
        return x, count

    def parts(self) -> LongArray:
        """The part of every row; no active pair connects two parts."""
        return labels_of_rows(self.starts, self.ends, self.indices)

    def multilevel(self, shift: FloatArray) -> Multilevel | None:
        """A preconditioner for the Hessian plus a shift of its diagonal, between two clouds."""
        if not self.bipartite:
            return None
        entries = Entries(self.starts, self.ends, self.indices)
        return Multilevel(self.shifted(shift), self.diagonal + shift, entries)


@dataclass(frozen=True)
class LocalPlan(TransportPlan):
    """A plan in this process; symmetric if all rows are present.

    ``entry_sums`` are the sums of weights, of costs times weights and of squares in every row, and
    the smallest weight or cost, if they are known.
    """

    indptr: LongArray
    loops: FloatArray
    loop_costs: FloatArray
    rows: SharedRows
    entry_sums: FloatArray | None

    @cached_property
    def degrees(self) -> LongArray:
        """Number of entries of every row, without the diagonal."""
        return self.indptr[1:] - self.indptr[:-1]

    @property
    def n_entries(self) -> int:
        """Number of entries, without the diagonal."""
        return int(self.indptr[-1])

    @cached_property
    def row_sums(self) -> FloatArray:
        """Row sums of the plan, with the diagonal."""
        assert self.entry_sums is not None  # otherwise the entries are there
        return self.entry_sums[0] + self.loops

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        if self.entry_sums is None:
            return super()._sums
        return self.entry_sums[1], self.entry_sums[2]

    @cached_property
    def positive(self) -> bool:
        """Whether no weight and no cost is zero."""
        assert self.entry_sums is not None
        return bool(np.all(self.entry_sums[3] > 0.0))


@dataclass(frozen=True)
class LatePlan(LocalPlan):
    """The sums of a plan, and what its entries are made of."""

    recipe: PlanRecipe

    @cached_property
    def _kept(self) -> Plan:
        """The plan for many products, of which a gap needs some if row sums miss the masses."""
        return self.recipe.made()

    def product(self, v: FloatArray, diagonal: FloatArray) -> FloatArray:
        """(diag(row sums) + plan) times ``v``, given its diagonal."""
        return self._kept.product(v, diagonal)

    def scaled_sums(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Row sums of c·q and q² for q_ij = pi_ij (1 + w_i + w_j), without the diagonal."""
        return self._kept.scaled_sums(w)

    def with_entries(self, weights: Pairs, costs: Pairs) -> Plan:
        """The plan with the weights and costs of some entries set."""
        return self.recipe.made().with_entries(weights, costs)

    def component_labels(self) -> LongArray:
        """Connected component of every point."""
        return self.recipe.made().component_labels()


@dataclass(frozen=True)
class PlanRecipe:
    """What a plan is made of: pairs, potentials, and where the rows of the plan begin.

    The plans of a path take far more memory than this, and most of them are never asked for.
    """

    pairs: Pairs
    u: FloatArray
    eps: float
    indptr: LongArray
    loop_costs: FloatArray
    rows: SharedRows

    @property
    def degrees(self) -> LongArray:
        """Number of entries of every row, without the diagonal."""
        return self.indptr[1:] - self.indptr[:-1]

    @property
    def loops(self) -> FloatArray:
        """Mass that each point keeps."""
        return np.maximum(2.0 * self.u[: len(self.loop_costs)] - self.loop_costs, 0.0) / self.eps

    def made(self) -> Plan:
        """The plan with its entries, which are not kept here."""
        pairs, indptr, length = self.pairs, self.indptr, int(self.indptr[-1] * PLAN_ROOM)
        room = np.empty(length, np.int32), np.empty(length), np.empty(length)
        used = slice(indptr[-1])
        indices, weights, costs = room[0][used], room[1][used], room[2][used]
        source = (pairs.indptr, pairs.indices, pairs.costs, self.u, self.eps)
        sums = np.empty((4, len(indptr) - 1))
        target = (indptr, indices, costs, weights, sums)
        self.rows.run(lambda a, b: kernels.select_plan(*source, a, b, *target))
        return Plan(
            indptr, self.loops, self.loop_costs, self.rows, sums, indices, weights, costs, room
        )


@dataclass(frozen=True)
class Plan(LocalPlan):
    """Entries in memory; ``room`` are the arrays of which they are the first part."""

    indices: IntArray
    weights: FloatArray
    costs: FloatArray
    room: Room | None = None

    def __getstate__(self) -> dict[str, object]:
        """What is pickled; the arrays with room hold the same entries again."""
        return {**self.__dict__, "room": None}

    def made(self) -> Plan:
        """The plan itself."""
        return self

    @cached_property
    def row_sums(self) -> FloatArray:
        """Row sums of the plan, with the diagonal."""
        if self.entry_sums is not None:
            return super().row_sums
        sums = self.loops.copy()
        self.rows.run(lambda a, b: kernels.sums_of_rows(self.indptr, self.weights, a, b, sums))
        return sums

    @cached_property
    def positive(self) -> bool:
        """Whether no weight and no cost is zero."""
        if self.entry_sums is not None:
            return super().positive
        return bool(self.weights.all() and self.costs.all())

    def with_entries(self, weights: Pairs, costs: Pairs) -> Plan:
        """The plan with the weights and costs of some entries set; this one is used up."""
        if self.room is not None and len(self.room[0]) >= self.indptr[-1] + len(weights.indices):
            return self._filled(self.room, weights, costs)
        ours = replace(weights, indptr=self.indptr, indices=self.indices, costs=self.weights)
        merged = weights.merged(ours, self.rows.workers)
        ours, found = replace(ours, costs=self.costs), np.empty(len(merged.costs))
        costs.fill_merged(ours, replace(merged, costs=found), self.rows.workers)
        return replace(
            self,
            indptr=merged.indptr,
            indices=merged.indices,
            weights=merged.costs,
            costs=found,
            entry_sums=None,
        )

    def _filled(self, room: Room, weights: Pairs, costs: Pairs) -> Plan:
        """The same where the entries are."""
        columns, own_weights, own_costs = room
        ours = replace(
            weights, indptr=self.indptr, indices=self.indices, costs=self.weights,
            room=(columns, own_weights),
        )  # fmt: skip
        merged = ours.overlaid(weights, self.rows.workers, (own_costs, costs))
        replace(merged, costs=own_costs).restore(lambda: costs)
        used = merged.indptr[-1]
        return replace(
            self, indptr=merged.indptr, indices=columns[:used], weights=own_weights[:used],
            costs=own_costs[:used], room=None, entry_sums=None,
        )  # fmt: skip

    def component_labels(self) -> LongArray:
        """Connected component of every point."""
        return component_labels(self.indptr, self.indices)

    def product(self, v: FloatArray, diagonal: FloatArray) -> FloatArray:
        """(diag(row sums) + plan) times ``v``, given its diagonal."""
        out = np.empty(len(self.loops))
        self.rows.run(
            lambda a, b: kernels.plan_product(
                self.indptr, self.indices, self.weights, diagonal, v, a, b, out
            )
        )
        return out

    def scaled_sums(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Row sums of c·q and q² for q_ij = pi_ij (1 + w_i + w_j), without the diagonal."""
        linear, square = np.empty((2, len(self.loops)))
        self.rows.run(
            lambda a, b: kernels.scaled_plan_values(
                self.indptr, self.indices, self.weights, self.costs, w, a, b, linear, square
            )
        )
        return linear, square
