"""Questions about a restricted problem, answered by the workers for the rows of one block.

Vectors come as the pieces that a block needs, and answers are one number for each of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._parallel import Workers
from otgraph.costs.restricted import RestrictedProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.costs.restricted import Hessian, Plan
    from otgraph.distributed._blocks import PairBlock
    from otgraph.typing import FloatArray, LongArray

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


def evaluate(
    block: PairBlock, diagonal: FloatArray, piece_rows: int, u: Pieces
) -> tuple[FloatArray, FloatArray]:
    """Row sums and sums of squares."""
    result = _problem(block, diagonal).evaluate(block.columns.take(piece_rows, u))
    return result.row_sums, result.square_sums


def hessian(block: PairBlock, diagonal: FloatArray, piece_rows: int, u: Pieces) -> Hessian:
    """The active pairs of every row."""
    return _problem(block, diagonal).hessian(block.columns.take(piece_rows, u))


def hessian_degrees(rows: Hessian) -> FloatArray:
    """Number of active pairs of every row, the diagonal included."""
    return rows.degrees


def hessian_product(block: PairBlock, rows: Hessian, piece_rows: int, v: Pieces) -> FloatArray:
    """Hessian times a vector."""
    return rows.product(block.columns.take(piece_rows, v))


def plan(block: PairBlock, diagonal: FloatArray, eps: float, piece_rows: int, u: Pieces) -> Plan:
    """Rows of the transport plan."""
    return _problem(block, diagonal).plan(block.columns.take(piece_rows, u), eps)


def plan_sums(rows: Plan) -> tuple[LongArray, FloatArray]:
    """Degrees and row sums."""
    return rows.degrees, rows.row_sums


def plan_product(
    block: PairBlock, rows: Plan, diagonal: FloatArray, piece_rows: int, v: Pieces
) -> FloatArray:
    """Plan plus a diagonal, times a vector."""
    return rows.product(block.columns.take(piece_rows, v), diagonal)


def scaled_sums(
    block: PairBlock, rows: Plan, piece_rows: int, w: Pieces
) -> tuple[FloatArray, FloatArray]:
    """Sums of costs and of squares of the plan scaled by 1 + w_i + w_j."""
    return rows.scaled_sums(block.columns.take(piece_rows, w))


def _problem(block: PairBlock, diagonal: FloatArray | None = None) -> RestrictedProblem:
    # One thread: the worker runs as many blocks side by side as it may.
    if diagonal is None:
        diagonal = np.full(block.columns.last - block.columns.first, np.inf)
    return RestrictedProblem(block.pairs, diagonal, Workers(1))
