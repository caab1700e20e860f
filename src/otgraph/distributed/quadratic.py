"""Quadratically regularized optimal transport graphs on a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph._validation import check_count, check_positive
from otgraph.distributed._cluster import Cluster
from otgraph.distributed._problem import ClusterProblem

if TYPE_CHECKING:
    from otgraph.distributed.graph import DistributedGraph


def quadratic_ot_graph(
    X: Any,
    eps: float | None = None,
    *,
    mean_degree: float | None = None,
    client: Any = None,
    block_rows: int | None = None,
    u0: Any = None,
    **options: Any,
) -> DistributedGraph:
    """Slice."""
    cluster = Cluster(client)
    with cluster.running():
        problem = ClusterProblem(X, cluster=cluster, block_rows=block_rows, **options)
        if eps is not None:
            return problem.distributed_graph(problem.solve(eps, u0=u0))
        return problem.distributed_graph(
            problem.solve_for_degree(mean_degree), mean_degree=mean_degree
        )
