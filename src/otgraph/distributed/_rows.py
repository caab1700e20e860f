"""Questions about a restricted problem, answered by the workers for the rows of one block.

Vectors come as the pieces that a block needs, and answers are a few numbers for each of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._parallel import Workers
from otgraph.costs.restricted import Hessian, Plan, RestrictedProblem
from otgraph.distributed._blocks import Held

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from otgraph.costs.interface import Evaluation
    from otgraph.distributed._blocks import PairBlock
    from otgraph.typing import FloatArray, IntArray, LongArray

    Pieces = Sequence[FloatArray]


def start(block: PairBlock, diagonal: FloatArray, target: FloatArray) -> FloatArray:
    """Potentials that solve every row by itself."""
    return _problem(block, diagonal).start(target)


def lift(
    block: PairBlock,
    diagonal: FloatArray,
    rows: LongArray,
    target: FloatArray,
    piece_rows: int,
    u: Pieces,
) -> FloatArray:
    """Potentials of some rows that meet their targets while all others stay."""
    local = block.columns.take(piece_rows, u)
    return _problem(block, diagonal).lift(local, rows - block.columns.first, target)


def row_excess(block: PairBlock, rank: int) -> FloatArray:
    """Sum by which the nearest candidates of a row are nearer than the next one."""
    return _problem(block).row_excess(rank)


def largest_costs(block: PairBlock) -> FloatArray:
    """Largest candidate cost of every row."""
    return _problem(block).largest_costs()


@dataclass(frozen=True)
class EvaluatedRows(Held):
    """Sums of every row at some potentials, and its active pairs."""

    sums: Evaluation
    starts: LongArray
    ends: LongArray
    active: IntArray
    degrees: FloatArray
    diagonal: FloatArray


def evaluate(block: PairBlock, diagonal: FloatArray, piece_rows: int, u: Pieces) -> EvaluatedRows:
    """All that is asked about some potentials; the list of active pairs stays here."""
    problem, local = _problem(block, diagonal), block.columns.take(piece_rows, u)
    sums, rows = problem.evaluate(local), problem.hessian(local)
    return EvaluatedRows(sums, rows.starts, rows.ends, rows.indices, rows.degrees, rows.diagonal)


def sums_of(rows: EvaluatedRows) -> FloatArray:
    """Row sums, sums of squares and degrees, one column each."""
    return np.stack((rows.sums.row_sums, rows.sums.square_sums, rows.degrees), axis=1)


def hessian_product(
    block: PairBlock, rows: EvaluatedRows, piece_rows: int, v: Pieces
) -> FloatArray:
    """Hessian times a vector."""
    run = _one_thread(len(rows.starts))
    hessian = Hessian(rows.starts, rows.ends, rows.active, rows.degrees, rows.diagonal, run)
    return hessian.product(block.columns.take(piece_rows, v))


@dataclass(frozen=True)
class PlanRows(Held):
    """Rows of a transport plan, with local columns."""

    indptr: LongArray
    indices: IntArray
    weights: FloatArray
    costs: FloatArray
    loops: FloatArray
    loop_costs: FloatArray

    @property
    def plan(self) -> Plan:
        """The same, able to answer."""
        return Plan(
            self.indptr, self.indices, self.weights, self.costs, self.loops, self.loop_costs,
            _one_thread(len(self.loops)),
        )  # fmt: skip


def plan(
    block: PairBlock, diagonal: FloatArray, eps: float, piece_rows: int, u: Pieces
) -> PlanRows:
    """Rows of the transport plan."""
    found = _problem(block, diagonal).plan(block.columns.take(piece_rows, u), eps)
    return PlanRows(
        found.indptr, found.indices, found.weights, found.costs, found.loops, found.loop_costs
    )


def plan_sums(rows: PlanRows) -> FloatArray:
    """Degrees and row sums, one column each."""
    return np.stack((rows.plan.degrees, rows.plan.row_sums), axis=1)


def plan_product(
    block: PairBlock, rows: PlanRows, diagonal: FloatArray, piece_rows: int, v: Pieces
) -> FloatArray:
    """Plan plus a diagonal, times a vector."""
    return rows.plan.product(block.columns.take(piece_rows, v), diagonal)


def scaled_sums(block: PairBlock, rows: PlanRows, piece_rows: int, w: Pieces) -> FloatArray:
    """Sums of costs and of squares of the plan scaled by 1 + w_i + w_j, one column each."""
    return np.stack(rows.plan.scaled_sums(block.columns.take(piece_rows, w)), axis=1)


def _problem(block: PairBlock, diagonal: FloatArray | None = None) -> RestrictedProblem:
    # One thread: the worker runs as many blocks side by side as it may.
    if diagonal is None:
        diagonal = np.full(block.columns.last - block.columns.first, np.inf)
    return RestrictedProblem(block.pairs, diagonal, Workers(1))


def _one_thread(n_rows: int) -> Callable[[Callable[[int, int], None]], None]:
    return lambda kernel: kernel(0, n_rows)
