"""Spectral clustering as a clusterer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import ClusterMixin

from otgraph.estimators._on_graph import OnGraph
from otgraph.estimators._transformer import unchanged_by_failure
from otgraph.methods import cluster

if TYPE_CHECKING:
    from typing import Self

    from otgraph.typing import RandomState


class GraphSpectralClustering(ClusterMixin, OnGraph):
    """Clusters of points between which a random walk on their graph rarely moves.

    :func:`otgraph.cluster` as an estimator. Clusters are those of the fitted points; new points
    have none.

    Parameters
    ----------
    n_clusters
        Number of clusters; None chooses it by the gap of the eigenvalues.
    graph
        Where the graph comes from: a transformer from points to weights (or a pipeline),
        a :class:`otgraph.Graph` on the points, or ``"precomputed"``. Then X holds
        the weights. None stands for ``QuadraticOTTransformer()``.
    max_clusters
        Largest number of clusters that None may give.
    tol
        Accuracy of the eigenvectors.
    max_restarts
        Limit of the eigenvalue solver.
    random_state
        Seed of k-means.

    Attributes
    ----------
    labels_
        Cluster of every fitted point, by falling size; -1 for points that no edge connects to any.
    n_clusters_
        Number of clusters.
    eigenvalues_
        Of the random walk, those that were used first.
    graph_
        The graph that was clustered.
    transformer_
        The fitted transformer, or None.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from otgraph.estimators import GraphSpectralClustering
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> GraphSpectralClustering().fit(X).n_clusters_
    2
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        graph: Any = None,
        max_clusters: int = 20,
        tol: float = 1e-8,
        max_restarts: int = 500,
        random_state: RandomState = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.max_clusters = max_clusters
        self.tol = tol
        self.max_restarts = max_restarts
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the graph and cluster it.

        Parameters
        ----------
        X
            Points, one per row; the weights of the graph with ``graph="precomputed"``.
        y
            Not used.
        """
        with unchanged_by_failure(self):
            graph, transformer = self._source(self._checked(X, ensure_min_samples=2))
            found = cluster(
                graph, self.n_clusters, max_clusters=self.max_clusters, tol=self.tol,
                max_restarts=self.max_restarts, random_state=self.random_state,
            )  # fmt: skip
            self.labels_ = found.labels
            self.n_clusters_ = found.n_clusters
            self.eigenvalues_ = found.eigenvalues
            self.transformer_, self.graph_ = transformer, graph
        return self
