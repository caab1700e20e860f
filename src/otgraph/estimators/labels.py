"""Label spreading as a semi-supervised classifier."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing, column_or_1d

from otgraph._labels import encode_labels
from otgraph.estimators._on_graph import OnGraph
from otgraph.estimators._transformer import unchanged_by_failure
from otgraph.methods import spread_labels

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from otgraph.methods import LabelSpread
    from otgraph.typing import Array, FloatArray, PointsLike


@dataclass(eq=False, repr=False)
class GraphLabelSpreading(ClassifierMixin, OnGraph):
    """Classifier that learns from a few labels and the graph of all points.

    :func:`otgraph.spread_labels` as an estimator. Points without a label take part in ``fit``
    with ``y = -1``. Their labels are in ``transduction_``; ``predict`` is for new points.

    Parameters
    ----------
    mu, tol, max_iter
        As in :func:`otgraph.spread_labels`.
    graph
        Where the graph comes from; see :class:`GraphEigenmaps`.

    Attributes
    ----------
    classes_
        The classes in sorted order, without the unknown -1.
    transduction_
        Label of every fitted point; -1 or None where no label reaches.
    label_distributions_
        Probabilities of the fitted points, one column per class.
    unreachable_
        Mask of fitted points that no label reaches; their distribution is uniform.
    n_iter_
        Iterations of the solver.
    graph_, transformer_
        The graph, and the fitted transformer that made it, or None.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> from otgraph.estimators import GraphLabelSpreading, QuadraticOTTransformer
    >>> arms = otgraph.datasets.spiral_arms(50, n_arms=3, noise=0.2)
    >>> y = np.where(otgraph.datasets.label_mask(arms.labels, 0.05), arms.labels, -1)
    >>> spreading = GraphLabelSpreading(graph=QuadraticOTTransformer(eps=0.3)).fit(arms.X, y)
    >>> bool((spreading.transduction_ == arms.labels).mean() > 0.9)
    True
    """

    mu: float = 1.0
    _: KW_ONLY
    tol: float = 1e-4
    max_iter: int = 10_000

    def fit(self, X: PointsLike, y: ArrayLike) -> Self:
        """Build the graph and spread the labels over it.

        Parameters
        ----------
        X
            Points, one per row; the weights of the graph with ``graph="precomputed"``.
        y
            One label per point, -1 where it is unknown. Strings go into an array of dtype
            object, with -1 or None for unknown.
        """
        with unchanged_by_failure(self):
            X, y = self._checked(X, y=y, ensure_min_samples=2)
            graph, transformer = self._source(X)
            self._spread = spread_labels(graph, y, self.mu, tol=self.tol, max_iter=self.max_iter)
            self.classes_ = self._spread.classes
            self.transduction_ = self._spread.labels
            self.label_distributions_ = self._spread.probabilities
            self.unreachable_ = self._spread.unreachable
            self.n_iter_ = self._spread.n_iter
            self.transformer_, self.graph_ = transformer, graph
        return self

    def predict(self, X: PointsLike) -> Array:
        """Labels of new points; -1 or None for those that no label reaches.

        Parameters
        ----------
        X
            New points; their rows of weights with ``graph="precomputed"``.
        """
        return self._extended(X).labels

    def predict_proba(self, X: PointsLike) -> FloatArray:
        """Probabilities of the classes for new points; uniform where no label reaches.

        Parameters
        ----------
        X
            As in :meth:`predict`.
        """
        return self._extended(X).probabilities

    def score(self, X: PointsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the known labels that :meth:`predict` gives; unknown ones do not count.

        Parameters
        ----------
        X
            As in :meth:`predict`.
        y
            One label per point; those that :meth:`fit` takes for unknown are left out.
        sample_weight
            Weights of the points.
        """
        labels: Array = column_or_1d(y)
        known = np.flatnonzero(encode_labels(labels, len(labels)).codes >= 0)
        right = self.predict(_safe_indexing(X, known)) == labels[known]
        weights = None if sample_weight is None else column_or_1d(sample_weight)[known]
        return float(np.average(right, weights=weights))

    def _extended(self, X: PointsLike) -> LabelSpread:
        rows = self._rows(self._checked_new(X))
        return self._spread.extend(rows)
