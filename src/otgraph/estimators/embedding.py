"""Eigenmaps as a transformer."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from otgraph.estimators._on_graph import OnGraphAlone
from otgraph.graphs.geometry import KEPT
from otgraph.methods import eigenmaps

if TYPE_CHECKING:
    from otgraph.graphs import Graph
    from otgraph.typing import FloatArray, PointsLike


@dataclass(eq=False, repr=False)
class GraphEigenmaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OnGraphAlone):
    """Coordinates from the slowest modes of the random walk on a graph.

    :func:`otgraph.eigenmaps` as a transformer. ``fit_transform`` gives the coordinates of the
    fitted points, ``transform`` those of new points by Nyström's formula.

    Parameters
    ----------
    n_components
        Number of coordinates.
    graph
        Where the graph comes from: a transformer from points to weights, such as
        ``make_pipeline(PCA(50), QuadraticOTTransformer())``, a :class:`otgraph.Graph` on the
        points, or ``"precomputed"``. Then X holds the weights, and new points are given by their
        rows of weights. None stands for ``QuadraticOTTransformer()``.
    density, dim, tol, max_restarts
        As in :func:`otgraph.eigenmaps`.

    Attributes
    ----------
    embedding_
        Coordinates of the fitted points, one row each.
    eigenvalues_
        Of the random walk, one per coordinate.
    laplacian_eigenvalues_
        Estimates of those of Laplace-Beltrami; None if the density is kept.
    graph_, transformer_
        The graph, and the fitted transformer that made it, or None.

    Examples
    --------
    >>> import otgraph
    >>> from otgraph.estimators import GraphEigenmaps, QuadraticOTTransformer
    >>> X = otgraph.datasets.noisy_spiral(n=300).X
    >>> eigenmaps = GraphEigenmaps(2, graph=QuadraticOTTransformer(eps=3.0)).fit(X[:250])
    >>> eigenmaps.transform(X[250:]).shape
    (50, 2)
    """

    n_components: int = 2
    _: KW_ONLY
    density: str = KEPT
    dim: float | None = None
    tol: float = 1e-10

    def _fit_graph(self, graph: Graph) -> None:
        self._embedding = eigenmaps(
            graph, self.n_components, density=self.density, dim=self.dim, tol=self.tol,
            max_restarts=self.max_restarts,
        )  # fmt: skip
        self.embedding_ = self._embedding.coordinates
        self.eigenvalues_ = self._embedding.eigenvalues
        self.laplacian_eigenvalues_ = self._embedding.laplacian_eigenvalues

    def fit_transform(self, X: PointsLike, y: object = None) -> FloatArray:
        """Coordinates of the fitted points.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        """
        return self.fit(X).embedding_

    def transform(self, X: PointsLike) -> FloatArray:
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
