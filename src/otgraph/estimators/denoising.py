"""Denoising as a transformer."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from otgraph._validation import check_count
from otgraph.estimators._on_graph import OnGraph
from otgraph.estimators._transformer import unchanged_by_failure
from otgraph.exceptions import invalid
from otgraph.methods import denoise, diffusion_time
from otgraph.methods._columns import ColumnReader
from otgraph.methods._graphs import transition_rows
from otgraph.methods.diffusion import rescale_factors

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from otgraph.typing import Array, BoolArray, FloatArray, Points, PointsLike


@dataclass(eq=False, repr=False)
class GraphDenoiser(OneToOneFeatureMixin, TransformerMixin, OnGraph):
    """Features smoothed by a random walk on a graph, as MAGIC does.

    :func:`otgraph.denoise` as a transformer. ``fit_transform`` smooths the fitted points;
    ``transform`` starts with one step from new points to fitted ones and continues on the graph.

    Parameters
    ----------
    t
        Number of steps, or ``"auto"``.
    graph
        Where the graph comes from; see :class:`GraphEigenmaps`. With ``"precomputed"``, `y` holds
        the features to denoise.
    columns, rescale
        As in :func:`otgraph.denoise`.

    Attributes
    ----------
    t_
        Number of steps taken.
    diffused_
        Features of the fitted points after all steps but the last.
    columns_
        Numbers of the features that are returned.
    graph_, transformer_
        The graph, and the fitted transformer that made it, or None.

    Examples
    --------
    >>> import otgraph
    >>> from otgraph.estimators import GraphDenoiser, QuadraticOTTransformer
    >>> X = otgraph.datasets.noisy_spiral(n=300).X
    >>> denoiser = GraphDenoiser(t=2, graph=QuadraticOTTransformer(eps=1.0)).fit(X[:250])
    >>> denoiser.transform(X[250:]).shape
    (50, 100)
    """

    t: int | Literal["auto"] = 3
    _: KW_ONLY
    columns: ArrayLike | slice | None = None
    rescale: bool = False

    def fit(self, X: PointsLike, y: object = None) -> Self:
        """Build the graph and walk on it.

        Parameters
        ----------
        X
            Points, one per row; the weights of the graph with ``graph="precomputed"``.
        y
            The features to denoise with ``graph="precomputed"``, not used otherwise.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: PointsLike, y: object = None) -> FloatArray:
        """Denoised features of the fitted points.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        """
        with unchanged_by_failure(self):
            return self._smoothed(X, y)

    def transform(self, X: PointsLike) -> FloatArray:
        """Denoised features of new points.

        Parameters
        ----------
        X
            New points; their rows of weights with ``graph="precomputed"``. A point without any
            neighbor stays as it is.
        """
        X = self._checked_new(X)
        P, empty = transition_rows(self._rows(X), len(self.diffused_))
        smooth = np.asarray(P @ self.diffused_) * self._factors
        if empty.any():
            smooth[empty] = self._left_alone(X, empty)
        return smooth

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Names of the denoised features.

        Parameters
        ----------
        input_features
            Names to use where the fitted points had none.
        """
        if self._is_precomputed:  # X holds weights, and the features have no names
            prefix = type(self).__name__.lower()
            return np.array([f"{prefix}{i}" for i in self.columns_], dtype=object)
        return np.asarray(super().get_feature_names_out(input_features)[self.columns_])

    def _smoothed(self, X: PointsLike, y: object) -> FloatArray:
        X = self._checked(X, ensure_min_samples=2)
        features = self._features(X, y)
        graph, transformer = self._source(X)
        reader = ColumnReader(features, graph.n, self.columns)
        if isinstance(self.t, str) and self.t == "auto":
            t = diffusion_time(graph, features, columns=self.columns)
        else:
            t = check_count(self.t, "t")
        diffused = denoise(graph, features, t - 1, columns=self.columns)
        smooth = np.asarray(graph.transition() @ diffused)
        factors = np.ones(smooth.shape[1])
        if self.rescale:
            for place, block in reader.blocks():
                factors[place] = rescale_factors(block, smooth[:, place])
        self.t_, self.columns_ = t, reader.indices
        self.diffused_, self._factors = diffused, factors
        self.transformer_, self.graph_ = transformer, graph
        return smooth * factors

    def _features(self, X: PointsLike, y: object) -> object:
        if not self._is_precomputed:
            return X
        if y is None:
            msg = (
                "must hold the features to denoise with graph='precomputed', got None. To denoise "
                "X itself, pass a transformer or a Graph as `graph`."
            )
            raise invalid("y", msg)
        return y

    def _left_alone(self, X: Points, empty: BoolArray) -> Array | float:
        msg = f"{int(empty.sum())} new point(s) have no neighbor among the fitted ones and "
        if self._is_precomputed:
            warnings.warn(msg + "get zeros.", UserWarning, stacklevel=3)
            return 0.0
        warnings.warn(msg + "stay as they are.", UserWarning, stacklevel=3)
        own = X[empty][:, self.columns_]
        return own if isinstance(own, np.ndarray) else own.toarray()
