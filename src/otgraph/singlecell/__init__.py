"""Graphs and methods for AnnData, in place of ``scanpy.pp.neighbors``.

.. code-block:: python

    import otgraph.singlecell as ogs

    ogs.pp.neighbors(adata, mean_degree=15)  # instead of sc.pp.neighbors(adata)
    sc.tl.umap(adata)  # scanpy's tools use this graph
"""

from __future__ import annotations

from otgraph.singlecell import pl, pp, tl
from otgraph.singlecell._representation import representation
from otgraph.singlecell._slots import read_graph, write_slots

__all__ = ["pl", "pp", "read_graph", "representation", "tl", "write_slots"]
