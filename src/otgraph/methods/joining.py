"""Small groups of near points that stand for their points: fewer nodes, with masses.

Two groups a and b exchange the mass P_ab, the sum of the weights between them. If mass were
exchanged at random, it would be proportional to M_a M_b, the product of their masses. The pair
with the largest ratio P_ab / (M_a M_b) is joined, and so on (Bonald et al. 2018, "Hierarchical
graph clustering using node pair sampling"). The ratio of a joined pair to any other group is a
mean of the two ratios before. So two groups that are each other's best stay so, whatever else is
joined, and all such pairs can be joined at once.

Large groups have small ratios, so that groups grow evenly. The weights between groups are again a
symmetric plan, and its row sums are their masses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_count, check_points
from otgraph.exceptions import invalid
from otgraph.graphs import Graph
from otgraph.methods._graphs import as_graph

if TYPE_CHECKING:
    from otgraph.typing import FloatArray, LongArray, PointsLike, SparseMatrix


@dataclass(frozen=True, eq=False)
class Metacells:
    """Groups of points, and the graph between them.

    Attributes
    ----------
    labels
        Group of every point, numbered from 0 in the order of their first points.
    graph
        The weights between groups, summed over their points; what stays within a group is on the
        diagonal. For a transport graph its row sums are the masses of the groups.

    Examples
    --------
    >>> import otgraph
    >>> arms = otgraph.datasets.spiral_arms(100, n_arms=3, noise=0.2)
    >>> found = otgraph.metacells(otgraph.quadratic_ot_graph(arms.X), 30)
    >>> found.graph.n, int(found.sizes.sum())
    (30, 300)
    """

    labels: LongArray
    graph: Graph

    @property
    def sizes(self) -> LongArray:
        """Number of points of every group: masses for a graph of their means."""
        return np.bincount(self.labels, minlength=self.graph.n)

    def means(self, values: PointsLike) -> FloatArray:
        """Means of points, genes or other values over every group.

        Parameters
        ----------
        values
            One row per point.

        Examples
        --------
        >>> import numpy as np, otgraph
        >>> X = np.arange(8.0)[:, None] ** 2
        >>> found = otgraph.metacells(otgraph.quadratic_ot_graph(X, mean_degree=2), 4)
        >>> means = found.means(X)
        >>> coarse = otgraph.quadratic_ot_graph(means, mean_degree=2, mass=found.sizes)
        """
        checked = check_points(values, name="values", min_samples=1)
        n = len(self.labels)
        if checked.shape[0] != n:
            msg = f"must have {n} rows, one per point of the graph, got {checked.shape[0]}."
            raise invalid("values", msg)
        share = (1.0 / self.sizes)[self.labels]
        average = sp.csr_matrix((share, (self.labels, np.arange(n))), shape=(self.graph.n, n))
        found = average @ checked
        return np.asarray(found.toarray() if sp.issparse(found) else found)


def metacells(graph: Graph | SparseMatrix, n_metacells: int) -> Metacells:
    """Groups of near points, joined along the heaviest edges, that stand for their points.

    Use them where a method is too slow for all points. They are no clusters: choose ten to a
    hundred times as many as there are kinds of points.

    Parameters
    ----------
    graph
        A Graph or any symmetric scipy sparse matrix of weights.
    n_metacells
        Number of groups, at least the number of components of the graph.

    Returns
    -------
    Metacells

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> graph = otgraph.quadratic_ot_graph(X)
    >>> found = otgraph.metacells(graph, 20)
    >>> bool(np.allclose(found.graph.weights.sum(axis=1).A1, found.sizes))
    True
    """
    graph = as_graph(graph)
    wanted = check_count(n_metacells, "n_metacells")
    if not graph.n_connected <= wanted <= graph.n:
        msg = (
            f"must be at least the number of components, {graph.n_connected}, and at most that of "
            f"points, {graph.n}, got {wanted!r}."
        )
        raise invalid("n_metacells", msg)
    weights = graph.weights
    labels = np.arange(graph.n)
    while weights.shape[0] > wanted:
        i, j = _best_pairs(weights, weights.shape[0] - wanted)
        first = np.arange(weights.shape[0])
        first[j] = i
        _, group = np.unique(first, return_inverse=True)
        labels, weights = group[labels], _joined(weights, group)
    return Metacells(labels, Graph.from_weights(weights))


def _best_pairs(weights: SparseMatrix, most: int) -> tuple[LongArray, LongArray]:
    """Pairs i < j that are each other's best, at most so many of them."""
    n = weights.shape[0]
    mass = np.asarray(weights.sum(axis=1)).ravel()
    pairs = weights.tocoo()
    apart = pairs.row != pairs.col
    i, j = pairs.row[apart], pairs.col[apart]
    ratio = pairs.data[apart] / (mass[i] * mass[j])
    best = np.zeros(n)
    np.maximum.at(best, i, ratio)
    candidate = (ratio == best[i]) & (ratio == best[j])
    i, j, ratio = i[candidate], j[candidate], ratio[candidate]
    # Several partners may be equally good: the first counts, as it does for the first of them.
    partner = np.full(n, n)
    np.minimum.at(partner, i, j)
    chosen = np.flatnonzero((i < j) & (partner[i] == j) & (partner[j] == i))
    chosen = chosen[np.argsort(-ratio[chosen], kind="stable")[:most]]
    return i[chosen], j[chosen]


def _joined(weights: SparseMatrix, group: LongArray) -> SparseMatrix:
    """Weights between groups, exactly symmetric."""
    n = int(group.max()) + 1
    pairs = weights.tocoo()
    i, j = group[pairs.row], group[pairs.col]
    upper = (i < j) | ((i == j) & (pairs.row <= pairs.col))
    i, j, values = i[upper], j[upper], pairs.data[upper]
    # A pair within a group is there in both directions.
    values = np.where((i == j) & (pairs.row != pairs.col)[upper], 2.0, 1.0) * values
    half = sp.csr_matrix((values, (i, j)), shape=(n, n))
    return sp.csr_matrix(half + sp.triu(half, 1).T)
