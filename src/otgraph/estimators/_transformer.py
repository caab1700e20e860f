"""Base class of the transformers from points to graphs."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from otgraph._validation import check_kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from otgraph.graphs import Graph
    from otgraph.typing import SparseMatrix


@contextmanager
def unchanged_by_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Give an estimator back all its attributes if `fit` fails.

    scikit-learn's validation records names and number of the features before anything is computed.
    """
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class GraphTransformer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, metaclass=ABCMeta
):
    """Points in, weights of a graph out.

    ``fit_transform`` gives the graph on the points that were fitted, symmetric and square.
    ``transform`` treats all rows as new points, even fitted ones, and returns their weights to the
    fitted points.
    """

    metric: Any

    @abstractmethod
    def _build(self, X: Any, **fit_options: Any) -> Graph:
        """The graph of checked points."""

    def _fit(self, X: Any, **fit_options: Any) -> Self:
        # Finiteness is checked by the function behind it, whose error gives count and row.
        with unchanged_by_failure(self):
            check_kind(X, "X")
            X = validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32],
                ensure_all_finite=False, ensure_min_samples=2,
            )  # fmt: skip
            self.graph_ = self._build(X, **fit_options)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the graph.

        Parameters
        ----------
        X
            Points, one per row, or costs of all pairs with ``metric="precomputed"``.
        y
            Not used.
        """
        return self._fit(X)

    def fit_transform(self, X: Any, y: Any = None) -> SparseMatrix:
        """Build the graph and return its weights.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        """
        return as_configured(self.fit(X).graph_.weights.copy())

    def transform(self, X: Any) -> SparseMatrix:
        """Weights of new points to the fitted ones; see :meth:`otgraph.Graph.extend`.

        Parameters
        ----------
        X
            New points, or their costs to the fitted points with ``metric="precomputed"``.
        """
        check_is_fitted(self, "graph_")
        check_kind(X, "X")
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32],
            ensure_all_finite=False, reset=False,
        )  # fmt: skip
        metric = self.metric if callable(self.metric) else None
        return as_configured(self.graph_.extend(X, metric=metric))

    @property
    def _n_features_out(self) -> int:
        return int(self.graph_.n)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.positive_only = tags.input_tags.pairwise
        return tags


def as_configured(matrix: SparseMatrix) -> SparseMatrix:
    """CSR in scikit-learn's configured container: ``spmatrix``, or ``sparray`` from 1.9 on."""
    wants_array = sklearn.get_config().get("sparse_interface") == "sparray"
    return sp.csr_array(matrix) if wants_array else sp.csr_matrix(matrix)
