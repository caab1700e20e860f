"""Eigenmaps as a transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from otgraph.estimators._on_graph import OnGraph
from otgraph.estimators._transformer import unchanged_by_failure
from otgraph.methods import eigenmaps

if TYPE_CHECKING:
    from typing import Self

    from otgraph.typing import FloatArray


class GraphEigenmaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OnGraph):
    """Coordinates from the slowest modes of the random walk on a graph.

    :func:`otgraph.eigenmaps` as a transformer. ``fit_transform`` gives the coordinates of the
    fitted points, ``transform`` those of new points by Nyström's formula.

    Parameters
    ----------
    n_components
        Number of coordinates.
    graph
        Where the graph comes from: a transformer from points to weights (or a pipeline),
        a :class:`otgraph.Graph` on the points, or ``"precomputed"``. Then X holds
        the weights and ``transform`` takes rows of new points. None stands for
        ``QuadraticOTTransformer()``.
    tol
        Accuracy of the eigenvectors.
    max_restarts
        Limit of the eigenvalue solver.

    Attributes
    ----------
    embedding_
        Coordinates of the fitted points, one row each.
    eigenvalues_
        Of the random walk, one per coordinate.
    graph_
        The graph that was embedded.
    transformer_
        The fitted transformer, or None.

    Examples
    --------
    >>> import otgraph
    >>> from otgraph.estimators import GraphEigenmaps, QuadraticOTTransformer
    >>> X = otgraph.datasets.noisy_spiral(n=300).X
    >>> eigenmaps = GraphEigenmaps(2, graph=QuadraticOTTransformer(eps=3.0)).fit(X[:250])
    >>> eigenmaps.transform(X[250:]).shape
    (50, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        graph: Any = None,
        tol: float = 1e-10,
        max_restarts: int = 500,
    ) -> None:
        self.n_components = n_components
        self.graph = graph
        self.tol = tol
        self.max_restarts = max_restarts

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the graph and embed it.

        Parameters
        ----------
        X
            Points, one per row; the weights of the graph with ``graph="precomputed"``.
        y
            Not used.
        """
        with unchanged_by_failure(self):
            graph, transformer = self._source(self._checked(X, ensure_min_samples=2))
            self._embedding = eigenmaps(
                graph, self.n_components, tol=self.tol, max_restarts=self.max_restarts
            )
            self.embedding_ = self._embedding.coordinates
            self.eigenvalues_ = self._embedding.eigenvalues
            self.transformer_, self.graph_ = transformer, graph
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Coordinates of the fitted points.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        """
        return self.fit(X).embedding_

    def transform(self, X: Any) -> FloatArray:
        """Coordinates of new points.

        Parameters
        ----------
        X
            New points; their rows of weights with ``graph="precomputed"``.
        """
        rows = self._rows(self._checked_new(X))
        return self._embedding.extend(rows)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
