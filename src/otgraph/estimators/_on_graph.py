"""Base class of the estimators that work on any graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from otgraph._validation import check_kind
from otgraph.estimators._transformer import GraphTransformer
from otgraph.estimators.transformers import QuadraticOTTransformer
from otgraph.exceptions import argument_error
from otgraph.graphs import Graph

if TYPE_CHECKING:
    from otgraph.typing import SparseMatrix

PRECOMPUTED = "precomputed"


class OnGraph(BaseEstimator):
    """Gets a graph from its parameter ``graph``, and rows of new points from the same source."""

    graph: Any
    graph_: Graph
    transformer_: Any

    def _source(self, X: Any) -> tuple[Graph, Any]:
        """The graph on checked X, and the fitted transformer if there is one."""
        if isinstance(self.graph, Graph):
            if X.shape[0] != self.graph.n:
                msg = f"`X` must have a row for each of the {self.graph.n} points of `graph`, got "
                msg += f"{X.shape[0]}."
                raise argument_error(ValueError, "X", msg)
            return self.graph, None
        if self._is_precomputed:
            return Graph.from_weights(X), None
        transformer = self._new_transformer()
        weights = transformer.fit_transform(X)
        if isinstance(transformer, GraphTransformer):
            return transformer.graph_, transformer
        return Graph.from_weights(weights), transformer

    def _rows(self, X: Any) -> SparseMatrix:
        """Weights of new points to the fitted ones."""
        if self.transformer_ is not None:
            return self.transformer_.transform(X)
        return X if self._is_precomputed else self.graph_.extend(X)

    def _checked(self, X: Any, **options: Any) -> Any:
        # Finiteness is checked by the functions, whose errors give count and row.
        check_kind(X, "X")
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32],
            ensure_all_finite=False, **options,
        )  # fmt: skip

    def _checked_new(self, X: Any) -> Any:
        check_is_fitted(self, "graph_")  # `fit` sets this attribute last
        return self._checked(X, reset=False)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.graph, str) and self.graph == PRECOMPUTED

    def _new_transformer(self) -> Any:
        if self.graph is None:
            return QuadraticOTTransformer()
        if hasattr(self.graph, "fit_transform"):
            return clone(self.graph)
        msg = (
            "`graph` must be a transformer such as QuadraticOTTransformer(), a Graph, or "
            f"'precomputed', got {self.graph!r}."
        )
        raise argument_error(TypeError, "graph", msg)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.positive_only = self._is_precomputed
        return tags
