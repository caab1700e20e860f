"""Connected components of a graph whose rows are on the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.distributed._cluster import Cluster
    from otgraph.typing import IntArray

    Edges = tuple[IntArray, IntArray]


def components(cluster: Cluster, n: int, forests: list[Any]) -> tuple[int, IntArray]:
    """Number of components and labels, from spanning forests of the blocks, joined in pairs."""
    while len(forests) > 1:
        forests = [
            cluster.submit("forest", _join_forests, n, forests[a : a + 2])
            for a in range(0, len(forests), 2)
        ]
    rows, columns = cluster.result(forests[0])
    tree = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    count, labels = connected_components(tree, directed=False)
    return int(count), labels.astype(np.int32, copy=False)


# Tasks ---------------------------------------------------------------------------------


def forest(n: int, rows: IntArray, columns: IntArray) -> Edges:
    """A spanning forest of some edges."""
    graph = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    tree = minimum_spanning_tree(graph).tocoo()
    return tree.row.astype(np.int32), tree.col.astype(np.int32)


def _join_forests(n: int, edges: Sequence[Edges]) -> Edges:
    """A spanning forest of several forests together."""
    rows, columns = zip(*edges, strict=True)
    return forest(n, np.concatenate(rows), np.concatenate(columns))
