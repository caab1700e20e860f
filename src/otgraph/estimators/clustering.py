"""Spectral clustering as a clusterer."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from sklearn.base import ClusterMixin

from otgraph.estimators._on_graph import OnGraphAlone
from otgraph.methods import cluster

if TYPE_CHECKING:
    from otgraph.graphs import Graph
    from otgraph.typing import RandomState


@dataclass(eq=False, repr=False)
class GraphSpectralClustering(ClusterMixin, OnGraphAlone):
    """Clusters of points between which a random walk on their graph rarely moves.

    :func:`otgraph.cluster` as an estimator. Clusters are those of the fitted points; new points
    have none.

    Parameters
    ----------
    n_clusters
        Number of clusters; None chooses it by the gap of the eigenvalues.
    graph
        Where the graph comes from; see :class:`GraphEigenmaps`.
    max_clusters, tol, max_restarts, random_state
        As in :func:`otgraph.cluster`.

    Attributes
    ----------
    labels_
        Cluster of every fitted point, by falling size; -1 for points that no edge connects to any.
    n_clusters_
        Number of clusters.
    eigenvalues_
        Of the random walk, those that were used first.
    graph_, transformer_
        The graph, and the fitted transformer that made it, or None.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from otgraph.estimators import GraphSpectralClustering
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> GraphSpectralClustering().fit(X).n_clusters_
    2
    """

    n_clusters: int | None = None
    _: KW_ONLY
    max_clusters: int = 20
    tol: float = 1e-8
    random_state: RandomState = 0

    def _fit_graph(self, graph: Graph) -> None:
        found = cluster(
            graph, self.n_clusters, max_clusters=self.max_clusters, tol=self.tol,
            max_restarts=self.max_restarts, random_state=self.random_state,
        )  # fmt: skip
        self.labels_ = found.labels
        self.n_clusters_ = found.n_clusters
        self.eigenvalues_ = found.eigenvalues
