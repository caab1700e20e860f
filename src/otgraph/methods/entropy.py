"""How many neighbors a point effectively has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph.methods._graphs import as_graph

if TYPE_CHECKING:
    from otgraph.graphs import Graph
    from otgraph.typing import SparseMatrix


def perplexity(graph: Graph | SparseMatrix) -> float:
    """Effective number of neighbors: the mean over the points of exp(entropy of the random walk).

    A point with k equal weights counts as k. Unequal weights count less than their number, which
    makes dense graphs comparable with sparse ones.

    Parameters
    ----------
    graph
        Graph, or a symmetric sparse matrix of weights.

    Examples
    --------
    >>> import otgraph
    >>> ring = otgraph.knn_gaussian_graph([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], 2)
    >>> otgraph.methods.perplexity(ring)
    2.0
    """
    P = as_graph(graph).transition().tocoo()
    entropies = np.bincount(P.row, -P.data * np.log(P.data), minlength=P.shape[0])
    return float(np.exp(entropies).mean())
