"""A transport problem whose points, pairs and plan are on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.distributed import _weights
from otgraph.distributed._checks import ask_workers, check_memory, choose_block_rows
from otgraph.distributed._cost import DistributedCost
from otgraph.distributed._layout import layout_of, shuffle
from otgraph.distributed._pairs import DistributedPlan
from otgraph.distributed._source import find_source, submit_cost
from otgraph.distributed.graph import DistributedGraph
from otgraph.exceptions import argument_error
from otgraph.graphs.transport import TransportProblem, report_clumps

if TYPE_CHECKING:
    from otgraph.distributed._cluster import Cluster
    from otgraph.distributed._source import Source
    from otgraph.solvers import Solution


class ClusterProblem(TransportProblem):
    """Everything but eps; keywords as in `otgraph.distributed.quadratic_ot_graph`."""

    cost: DistributedCost

    def __init__(self, X: Any, *, cluster: Cluster, block_rows: int | None, **options: Any) -> None:
        self._cluster = cluster
        self._block_rows = block_rows
        super().__init__(X, **options)
        self.points = X if isinstance(X, np.ndarray) else None

    def _check(self, X: Any, metric: Any) -> Source:
        if isinstance(metric, str) and metric == "precomputed":
            msg = (
                "`metric` must compute costs from points on a cluster, got 'precomputed': whoever "
                "holds all costs needs no cluster; use otgraph.quadratic_ot_graph."
            )
            raise argument_error(ValueError, "metric", msg)
        return find_source(X, self._cluster)

    def _make_cost(self, X: Source, **options: Any) -> DistributedCost:
        workers = options.pop("workers")
        block_rows = choose_block_rows(X.shape[0], self._block_rows)
        facts = ask_workers(self._cluster)
        return DistributedCost(
            self._cluster,
            submit_cost(self._cluster, X, **options),
            block_rows=block_rows,
            pair_bytes=check_memory(facts, X.n_bytes, block_rows),
            workers=workers,
        )

    def distributed_graph(self, solution: Solution, **params: Any) -> DistributedGraph:
        """The plan in the caller's order, still on the workers."""
        plan, cluster = solution.plan, self._cluster
        assert isinstance(plan, DistributedPlan)  # this problem's cost makes no others
        layout = layout_of(self.cost.n, plan.pairs.layout.block_rows)
        n_blocks = len(layout.ranges)
        loops = plan.pairs.rows_of(plan.loops) if self.self_loops else [None] * n_blocks
        parcels = plan.pairs.each(
            "plan-entries", _weights.plan_entries,
            plan.pairs.blocks, plan.rows, loops, [layout.block_rows] * n_blocks,
            vector=self.cost.order,
        )  # fmt: skip
        flags, blocks = shuffle(cluster, layout, "weights", parcels, _weights.join_weights)
        facts = cluster.gather([cluster.submit("facts", _weights.row_facts, b) for b in blocks])
        segments, lengths, sums, has_loop = zip(*facts, strict=True)
        row_lengths = np.concatenate(lengths)
        graph = DistributedGraph(
            params=self._params_of(solution, params),
            certificate=solution.certificate,
            potentials=self._in_given_order(solution.u),
            mass=self._in_given_order(self.mass),
            degrees=(row_lengths - np.concatenate(has_loop)).astype(np.int32),
            row_sums=np.concatenate(sums),
            points=self.points,
            cluster=cluster,
            layout=layout,
            blocks=blocks,
            row_lengths=row_lengths,
            segments=list(segments),
        )
        copies = np.concatenate([flag.at_same_place for flag in flags])
        if copies.any() and not self.cost.identical:
            elsewhere = np.concatenate([flag.elsewhere for flag in flags])
            report_clumps(graph, self._in_given_order(elsewhere))
        return graph
