"""The plan in blocks of rows on the workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from otgraph.costs.interface import TransportPlan
from otgraph.distributed._blocks import Blocks, Columns, components, forest
from otgraph.distributed._cluster import Kept

if TYPE_CHECKING:
    from otgraph.costs.restricted import Plan
    from otgraph.distributed._blocks import Edges, Part
    from otgraph.distributed._pairs import DistributedPairs, PairBlock
    from otgraph.typing import FloatArray, LongArray

ALL_SUMS = 4  # that a block reports of each row, where they were found with its entries


@dataclass(frozen=True)
class DistributedPlan(TransportPlan):
    """A plan on the workers; each of the ``blocks`` is a `PlanBlock`.

    ``sums`` are the degree and the sum of every row, then the sums of c·pi and pi² if they are
    known.
    """

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

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        if self.sums.shape[1] == ALL_SUMS:
            return self.sums[:, 2].copy(), self.sums[:, 3].copy()
        return super()._sums

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


# Tasks, each for the rows of one block ---------------------------------------------------


@dataclass(frozen=True)
class PlanBlock:
    """Entries of a plan in some rows, with local columns."""

    columns: Columns
    plan: Plan


def keep_plan(block: PlanBlock) -> Kept[PlanBlock, FloatArray]:
    plan = block.plan
    more = () if plan.entry_sums is None else plan.entry_sums[1:3]
    return Kept(block, np.stack((plan.degrees, plan.row_sums, *more), axis=1))


def _with_entries(
    block: PlanBlock, weights: PairBlock, costs: PairBlock
) -> Kept[PlanBlock, FloatArray]:
    columns, plan = block.columns, block.plan
    whole = replace(plan, indices=columns.to_global(plan.indices), room=None)
    whole = whole.with_entries(weights.global_pairs(), costs.global_pairs())
    plan = replace(whole, indices=columns.to_local(whole.indices))
    return keep_plan(PlanBlock(columns, plan))


def _forest(block: PlanBlock) -> Edges:
    rows = np.arange(block.columns.first, block.columns.last, dtype=np.int32)
    columns = block.columns.to_global(block.plan.indices)
    return forest(block.columns.n, np.repeat(rows, block.plan.degrees), columns)


def _plan_product(block: PlanBlock, diagonal: FloatArray, v: Part) -> FloatArray:
    return block.plan.product(block.columns.take(v), diagonal)


def _scaled_sums(block: PlanBlock, w: Part) -> FloatArray:
    return np.stack(block.plan.scaled_sums(block.columns.take(w)), axis=1)
