"""Base class of the transformers from points to graphs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from otgraph._validation import check_choice, check_count, check_kind
from otgraph.costs.metrics import is_precomputed
from otgraph.exceptions import invalid
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.graphs.distances import distances, new_distances
from otgraph.graphs.options import CostOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from otgraph.typing import Metric, PointsLike, SparseMatrix

Mode: TypeAlias = Literal["affinity", "distance"]
# Parameters that say what a transformer returns, and not how its graph is built.
OF_THE_OUTPUT = ("mode", "min_neighbors")


def checked_data(estimator: BaseEstimator, X: PointsLike, **options: Any) -> Any:
    """Scikit-learn's checks except for finiteness: our own error gives the count and the row."""
    check_kind(X, "X")
    return validate_data(
        estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32],
        ensure_all_finite=False, **options,
    )  # fmt: skip


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


@dataclass(eq=False, repr=False, kw_only=True)
class GraphTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Points in, weights of a graph out: similarities, or distances with ``mode="distance"``.

    ``fit_transform`` gives the graph on the points that were fitted, symmetric and square.
    ``transform`` treats all rows as new points, even fitted ones, and returns their weights to the
    fitted points.

    Transformers are data classes, whose constructors do what scikit-learn asks for: every parameter
    is a keyword with a default, and is stored under its name.
    """

    _construction: ClassVar[str]  # its name in the table
    metric: Metric = CostOptions.metric
    n_jobs: int | None = -1
    mode: Mode = "affinity"
    min_neighbors: int = 0

    def _fit(self, X: PointsLike, **fit_options: ArrayLike | None) -> Self:
        with unchanged_by_failure(self):
            X = checked_data(self, X, ensure_min_samples=2)
            check_choice(self.mode, "mode", get_args(Mode))
            least = check_count(self.min_neighbors, "min_neighbors", minimum=0)
            if least and self.mode != "distance":
                msg = (
                    "must be 0 with mode='affinity', where a graph has the edges that it has; got "
                    f"{least}."
                )
                raise invalid("min_neighbors", msg)
            params = self.get_params(deep=False)
            options = {name: params[name] for name in params if name not in OF_THE_OUTPUT}
            self.graph_ = CONSTRUCTIONS[self._construction].build(X, **options, **fit_options)
        return self

    @property
    def _metric_function(self) -> Callable[..., float] | None:
        return self.metric if callable(self.metric) else None

    def _fitted_matrix(self) -> SparseMatrix:
        if self.mode == "affinity":
            return as_configured(self.graph_.weights.copy())
        return as_configured(
            distances(self.graph_, self._metric_function, least=self.min_neighbors)
        )

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
        """Build the graph and return its weights, or its distances.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        """
        return self.fit(X)._fitted_matrix()

    def transform(self, X: PointsLike) -> SparseMatrix:
        """Weights, or distances, of new points to the fitted ones; see `otgraph.Graph.extend`.

        Parameters
        ----------
        X
            New points, or their costs to the fitted points with ``metric="precomputed"``.
        """
        check_is_fitted(self, "graph_")
        X = checked_data(self, X, reset=False)
        metric = self._metric_function
        rows = self.graph_.extend(X, metric=metric)
        if self.mode == "distance":
            rows = new_distances(self.graph_, X, rows, metric, least=self.min_neighbors)
        return as_configured(rows)

    @property
    def _n_features_out(self) -> int:
        return int(self.graph_.n)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.input_tags.positive_only = tags.input_tags.pairwise
        return tags


def as_configured(matrix: SparseMatrix) -> SparseMatrix:
    """CSR in scikit-learn's configured container: ``spmatrix``, or ``sparray`` from 1.9 on."""
    wants_array = sklearn.get_config().get("sparse_interface") == "sparray"
    return sp.csr_array(matrix) if wants_array else sp.csr_matrix(matrix)
