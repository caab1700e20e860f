"""Graphs as objects of other packages, which are imported only here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require

if TYPE_CHECKING:
    from otgraph.graphs.graph import Graph


def to_networkx(graph: Graph) -> Any:
    """A ``networkx.Graph``; see :meth:`Graph.to_networkx`."""
    return require("networkx").from_scipy_sparse_array(graph.weights)


def to_igraph(graph: Graph) -> Any:
    """An ``igraph.Graph``; see :meth:`Graph.to_igraph`."""
    upper = sp.triu(graph.weights, format="coo")
    pairs = np.column_stack((upper.row, upper.col))
    edges = {"weight": upper.data.tolist()}
    return require("igraph").Graph(n=graph.n, edges=pairs, edge_attrs=edges)


def to_pyg(graph: Graph) -> Any:
    """A ``torch_geometric.data.Data``; see :meth:`Graph.to_pyg`."""
    torch, data = require("torch"), require("torch_geometric.data")
    both_ways = graph.weights.tocoo()
    index = np.vstack((both_ways.row, both_ways.col)).astype(np.int64)
    points = graph.points.toarray() if sp.issparse(graph.points) else graph.points
    return data.Data(
        x=None if points is None else torch.as_tensor(points, dtype=torch.float32),
        edge_index=torch.as_tensor(index),
        edge_weight=torch.as_tensor(both_ways.data, dtype=torch.float32),
        num_nodes=graph.n,
    )
