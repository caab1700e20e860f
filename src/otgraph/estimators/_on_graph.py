"""Base class of the estimators that work on any graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from otgraph.estimators._transformer import GraphTransformer, checked_data, unchanged_by_failure
from otgraph.estimators.transformers import QuadraticOTTransformer
from otgraph.exceptions import invalid
from otgraph.graphs import Graph

if TYPE_CHECKING:
    from typing import Self

    from sklearn.base import TransformerMixin
    from sklearn.utils import Tags

    from otgraph.typing import Points, PointsLike, SparseMatrix

PRECOMPUTED = "precomputed"


@dataclass(eq=False, repr=False, kw_only=True)
class OnGraph(BaseEstimator):
    """Gets a graph from its parameter ``graph``, and rows of new points from the same source."""

    graph: TransformerMixin | Graph | str | None = None

    def _source(self, X: Points) -> tuple[Graph, TransformerMixin | None]:
        """The graph on checked X, and the fitted transformer if there is one."""
        if isinstance(self.graph, Graph):
            if X.shape[0] != self.graph.n:
                msg = f"must have a row for each of the {self.graph.n} points of `graph`, got "
                msg += f"{X.shape[0]}."
                raise invalid("X", msg)
            return self.graph, None
        if self._is_precomputed:
            if X.shape[0] != X.shape[1]:
                msg = "must hold the weights of all pairs with graph='precomputed', got "
                msg += f"{X.shape[0]} rows and {X.shape[1]} columns. Leave `graph` out for points."
                raise invalid("X", msg)
            return Graph.from_weights(X), None
        transformer = self._new_transformer()
        weights = transformer.fit_transform(X)
        if isinstance(transformer, GraphTransformer):
            return transformer.graph_, transformer
        if weights.shape[0] != weights.shape[1]:
            msg = "must be a transformer from points to weights of all pairs, such as "
            msg += f"QuadraticOTTransformer(), or end in one, got {self.graph!r}."
            raise invalid("graph", msg)
        return Graph.from_weights(weights), transformer

    def _rows(self, X: PointsLike) -> SparseMatrix:
        """Weights of new points to the fitted ones."""
        if self.transformer_ is not None:
            return self.transformer_.transform(X)
        return X if self._is_precomputed else self.graph_.extend(X)

    def _checked(self, X: PointsLike, **options: Any) -> Any:
        return checked_data(self, X, **options)

    def _checked_new(self, X: PointsLike) -> Any:
        check_is_fitted(self, "graph_")  # `fit` sets this attribute last
        return self._checked(X, reset=False)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.graph, str) and self.graph == PRECOMPUTED

    def _new_transformer(self) -> TransformerMixin:
        if self.graph is None:
            return QuadraticOTTransformer()
        if hasattr(self.graph, "fit_transform"):
            last = self.graph.steps[-1][1] if hasattr(self.graph, "steps") else self.graph
            if getattr(last, "mode", None) == "distance":
                msg = "must give weights, got a transformer with mode='distance'; pass "
                msg += "mode='affinity'."
                raise invalid("graph", msg)
            return clone(self.graph)
        msg = (
            "must be a transformer such as QuadraticOTTransformer(), a Graph, or 'precomputed', "
            f"got {self.graph!r}."
        )
        raise invalid("graph", msg, TypeError)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.positive_only = self._is_precomputed
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class OnGraphAlone(OnGraph, ABC):
    """Estimators whose results follow from the graph: neither features nor labels take part."""

    max_restarts: int = 500

    def fit(self, X: PointsLike, y: object = None) -> Self:
        """Build the graph, and do on it what the class says.

        Parameters
        ----------
        X
            Points, one per row; the weights of the graph with ``graph="precomputed"``.
        y
            Not used.
        """
        with unchanged_by_failure(self):
            graph, transformer = self._source(self._checked(X, ensure_min_samples=2))
            self._fit_graph(graph)
            self.transformer_, self.graph_ = transformer, graph
        return self

    @abstractmethod
    def _fit_graph(self, graph: Graph) -> None:
        """Set the attributes that are computed from the graph."""
