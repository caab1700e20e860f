"""AnnData in, AnnData out: the line of a scanpy script that makes the graph, and what follows.

>>> import otgraph.singlecell as ogs  # doctest: +SKIP
>>> ogs.pp.neighbors(adata, mean_degree=15)  # instead of sc.pp.neighbors  # doctest: +SKIP
>>> sc.tl.umap(adata)  # all that reads a neighborhood graph reads this one  # doctest: +SKIP
"""

from __future__ import annotations

from otgraph.singlecell import pl, pp, tl
from otgraph.singlecell._slots import read_graph, write_slots

__all__ = ["pl", "pp", "read_graph", "tl", "write_slots"]
