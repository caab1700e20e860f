"""The same graphs on a Dask cluster."""

from __future__ import annotations

from otgraph.distributed.graph import DistributedGraph
from otgraph.distributed.quadratic import quadratic_ot_graph

__all__ = ["DistributedGraph", "quadratic_ot_graph"]
