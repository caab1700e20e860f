"""Base class of the transformers from points to graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from otgraph.costs.metrics import is_precomputed
from otgraph.graphs.constructions import CONSTRUCTIONS

if TYPE_CHECKING:
    from typing import Self

    from otgraph.graphs import Graph
    from otgraph.typing import Metric, PointsLike, SparseMatrix


def checked_data(estimator: BaseEstimator, X: PointsLike, **options: Any) -> Any:
    """What scikit-learn checks, but for finiteness: errors of our functions give count and row."""
    return validate_data(
        estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32],
        ensure_all_finite=False, **options,
    )  # fmt: skip


class GraphTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Points in, weights of a graph out.

    ``fit_transform`` gives the graph on the points that were fitted, symmetric and square.
    ``transform`` treats all rows as new points, even fitted ones, and returns their weights to the
    fitted points.
    """

    _construction: str  # its name in the table
    metric: Metric
    graph_: Graph

    def _fit(self, X: PointsLike, **fit_options: Any) -> Self:
        X = checked_data(self, X, ensure_min_samples=2)
        build = CONSTRUCTIONS[self._construction].build
        self.graph_ = build(X, **self.get_params(deep=False), **fit_options)
        return self

    def fit(self, X: PointsLike, y: object = None) -> Self:
        """Build the graph.

        Parameters
        ----------
        X
            Points, one per row, or costs of all pairs with ``metric="precomputed"``.
        y
            Not used.
        """
        return self._fit(X)

    def fit_transform(self, X: PointsLike, y: object = None) -> SparseMatrix:
        """Build the graph and return its weights.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        """
        return as_configured(self.fit(X).graph_.weights.copy())

    def transform(self, X: PointsLike) -> SparseMatrix:
        """Weights of new points to the fitted ones; see :meth:`otgraph.Graph.extend`.

        Parameters
        ----------
        X
            New points, or their costs to the fitted points with ``metric="precomputed"``.
        """
        check_is_fitted(self, "graph_")
        X = checked_data(self, X, reset=False)
        metric = self.metric if callable(self.metric) else None
        return as_configured(self.graph_.extend(X, metric=metric))

    @property
    def _n_features_out(self) -> int:
        return int(self.graph_.n)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.input_tags.positive_only = tags.input_tags.pairwise
        return tags


def as_configured(matrix: SparseMatrix) -> SparseMatrix:
    """CSR in scikit-learn's configured container: ``spmatrix``, or ``sparray`` from 1.9 on."""
    wants_array = sklearn.get_config().get("sparse_interface") == "sparray"
    return sp.csr_array(matrix) if wants_array else sp.csr_matrix(matrix)
