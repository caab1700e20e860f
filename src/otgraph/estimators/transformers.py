"""One transformer per construction, with the parameters of its function."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from otgraph.estimators._transformer import GraphTransformer
from otgraph.graphs.options import (
    CostOptions,
    EntropicOptions,
    GaussianOptions,
    KNNGaussianOptions,
    MAGICOptions,
    QuadraticOptions,
)

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from otgraph.graphs.options import Eps, OnFailure, OutlierCost, Search, Symmetrize
    from otgraph.typing import PointsLike, RandomState, SparseMatrix


@dataclass(eq=False, repr=False, kw_only=True)
class _CostTransformer(GraphTransformer):
    """Transformers that take powers of distances as costs."""

    power: float = CostOptions.power
    normalize: bool = CostOptions.normalize


@dataclass(eq=False, repr=False, kw_only=True)
class _TransportTransformer(_CostTransformer):
    """Transformers whose points may have masses."""

    self_loops: bool = QuadraticOptions.self_loops
    tol: float = QuadraticOptions.tol
    max_iter: int = QuadraticOptions.max_iter
    on_failure: OnFailure = QuadraticOptions.on_failure

    def fit(self, X: PointsLike, y: object = None, *, mass: ArrayLike | None = None) -> Self:
        """Build the graph.

        Parameters
        ----------
        X
            Points, one per row, or costs of all pairs with ``metric="precomputed"``.
        y
            Not used.
        mass
            Wanted row sums, ones by default.
        """
        self._fit(X, mass=mass)
        self.n_iter_ = self.graph_.certificate.n_steps  # type: ignore[attr-defined]
        return self

    def fit_transform(
        self, X: PointsLike, y: object = None, *, mass: ArrayLike | None = None
    ) -> SparseMatrix:
        """Build the graph and return its weights, or its distances.

        Parameters
        ----------
        X, y, mass
            As in :meth:`fit`.
        """
        return self.fit(X, mass=mass)._fitted_matrix()


@dataclass(eq=False, repr=False, kw_only=True)
class _QuadraticTransformer(_TransportTransformer):
    """Transformers that solve quadratic problems."""

    collapse: bool = QuadraticOptions.collapse
    min_degree: int | None = QuadraticOptions.min_degree
    connect: bool | None = QuadraticOptions.connect
    outlier_cost: OutlierCost = QuadraticOptions.outlier_cost
    search: Search = QuadraticOptions.search
    max_missing: float = QuadraticOptions.max_missing
    n_candidates: int | None = QuadraticOptions.n_candidates
    random_state: RandomState = QuadraticOptions.random_state


@dataclass(eq=False, repr=False)
class QuadraticOTTransformer(_QuadraticTransformer):
    """Sparse graph by quadratic optimal transport: similarities, not distances.

    The adaptive graph of this package, as a transformer: :func:`otgraph.quadratic_ot_graph`
    explains the parameters. Degrees differ from point to point, and rows sum to one.

    Parameters
    ----------
    eps
        Regularization in units of the mean cost; larger values give more neighbors. ``"auto"``
        chooses it by prediction.
    mean_degree
        Wanted mean number of neighbors, instead of `eps`; 15 if neither is given.
    metric, power, normalize, self_loops, collapse, min_degree, connect, outlier_cost, tol, \
search, max_missing, n_candidates, max_iter, on_failure, n_jobs, random_state
        As in :func:`otgraph.quadratic_ot_graph`.
    mode
        ``"affinity"``: weights, large where points are near. ``"distance"``: distances along the
        same edges, for scikit-learn's estimators with ``metric="precomputed"``.
    min_neighbors
        With ``mode="distance"``, the least number of neighbors in a row. The nearest other points
        fill shorter rows, because some estimators need as many as they look at.

    Attributes
    ----------
    graph_
        The :class:`otgraph.TransportGraph` of the fitted points, with its certificate.
    n_iter_
        Newton steps of the solver.

    Examples
    --------
    >>> from sklearn.cluster import SpectralClustering
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.pipeline import make_pipeline
    >>> from otgraph.estimators import QuadraticOTTransformer
    >>> X, y = make_blobs(60, centers=[[0, 0], [4, 4]], random_state=0)
    >>> clustering = SpectralClustering(2, affinity="precomputed", random_state=0)
    >>> labels = make_pipeline(QuadraticOTTransformer(eps=5.0), clustering).fit_predict(X)
    >>> bool(((labels == labels[0]) == (y == y[0])).all())
    True
    """

    _construction = "quadratic"

    eps: Eps | None = None
    _: KW_ONLY
    mean_degree: float | None = None


@dataclass(eq=False, repr=False)
class MultiscaleOTTransformer(_QuadraticTransformer):
    """Sparse graph that holds several scales, the mean of quadratic plans: similarities.

    :func:`otgraph.multiscale_graph` explains the parameters.

    Parameters
    ----------
    eps
        Regularizations of the plans.
    mean_degree
        Mean degrees of the plans, instead of `eps`; a single number is that of the widest, and the
        others have halves of it. 15 if neither is given.
    metric, power, normalize, self_loops, collapse, min_degree, connect, outlier_cost, tol, \
search, max_missing, n_candidates, max_iter, on_failure, n_jobs, random_state
        As in :func:`otgraph.quadratic_ot_graph`.
    mode, min_neighbors
        As in :class:`QuadraticOTTransformer`.

    Attributes
    ----------
    graph_
        The :class:`otgraph.MultiscaleGraph` of the fitted points, with its certificate.
    n_iter_
        Newton steps of the solver, in all plans together.

    Examples
    --------
    >>> from otgraph import datasets
    >>> from otgraph.estimators import MultiscaleOTTransformer
    >>> transformer = MultiscaleOTTransformer(mean_degree=20).fit(datasets.noisy_spiral(n=100).X)
    >>> transformer.graph_.n_parts
    3
    """

    _construction = "multiscale"

    eps: ArrayLike | None = None
    _: KW_ONLY
    mean_degree: ArrayLike | None = None


@dataclass(eq=False, repr=False)
class EntropicOTTransformer(_TransportTransformer):
    """Dense graph by entropic optimal transport: similarities, not distances.

    Every pair of points has a weight. Many points keep only those that matter; see `max_error`.

    Parameters
    ----------
    eps
        Regularization in units of the mean cost.
    metric, power, normalize, self_loops, max_error, tol, max_iter, on_failure, n_jobs
        As in :func:`otgraph.entropic_ot_graph`.
    mode, min_neighbors
        As in :class:`QuadraticOTTransformer`.

    Attributes
    ----------
    graph_
        The :class:`otgraph.TransportGraph` of the fitted points, with its certificate.
    n_iter_
        Passes over all pairs.

    Examples
    --------
    >>> from otgraph.estimators import EntropicOTTransformer
    >>> EntropicOTTransformer(eps=0.5).fit_transform([[0.0], [1.0], [3.0]]).shape
    (3, 3)
    """

    _construction = "entropic"

    eps: float = 1.0
    _: KW_ONLY
    max_error: float | None = EntropicOptions.max_error
    tol: float = EntropicOptions.tol
    max_iter: int = EntropicOptions.max_iter


@dataclass(eq=False, repr=False)
class KNNGaussianTransformer(_CostTransformer):
    """Graph of nearest neighbors, Gaussian or equal weights: similarities, not distances.

    ``transform`` gives the k nearest fitted points of every new one, while the fitted graph is
    symmetrized: some of its points have more than k neighbors.

    Parameters
    ----------
    n_neighbors
        Least number of neighbors of a point.
    eps
        Scale of the weights in units of the mean cost; None gives every edge weight one.
    metric, power, normalize, include_self, symmetrize, n_jobs
        As in :func:`otgraph.knn_gaussian_graph`.
    mode, min_neighbors
        As in :class:`QuadraticOTTransformer`.

    Attributes
    ----------
    graph_
        The :class:`otgraph.Graph` of the fitted points.

    Examples
    --------
    >>> from otgraph.estimators import KNNGaussianTransformer
    >>> transformer = KNNGaussianTransformer(n_neighbors=1).fit([[0.0], [1.0], [3.0]])
    >>> transformer.transform([[2.9]]).toarray()
    array([[0., 0., 1.]])
    """

    _construction = "knn"

    n_neighbors: int = KNNGaussianOptions.n_neighbors
    eps: float | None = KNNGaussianOptions.eps
    _: KW_ONLY
    include_self: bool = KNNGaussianOptions.include_self
    symmetrize: Symmetrize = KNNGaussianOptions.symmetrize


@dataclass(eq=False, repr=False)
class GaussianTransformer(_CostTransformer):
    """Graph with a Gaussian weight between all pairs: similarities, not distances.

    Many points keep only the weights that matter; see `max_error`.

    Parameters
    ----------
    eps
        Scale of the weights in units of the mean cost.
    metric, power, normalize, self_loops, max_error, n_jobs
        As in :func:`otgraph.gaussian_graph`.
    mode, min_neighbors
        As in :class:`QuadraticOTTransformer`.

    Attributes
    ----------
    graph_
        The :class:`otgraph.Graph` of the fitted points.

    Examples
    --------
    >>> from otgraph.estimators import GaussianTransformer
    >>> GaussianTransformer(normalize=False).fit_transform([[0.0], [1.0]]).toarray().round(3)
    array([[0.   , 0.368],
           [0.368, 0.   ]])
    """

    _construction = "gaussian"

    eps: float = GaussianOptions.eps
    _: KW_ONLY
    self_loops: bool = GaussianOptions.self_loops
    max_error: float | None = GaussianOptions.max_error


@dataclass(eq=False, repr=False)
class MAGICTransformer(GraphTransformer):
    """Graph with the adaptive kernel of MAGIC: similarities, not distances.

    ``transform`` gives the kernel of new points before symmetrization.

    Parameters
    ----------
    n_neighbors
        Neighbor whose distance sets the bandwidth of a point.
    decay, knn_max, thresh, metric, n_pca, random_state, n_jobs
        As in :func:`otgraph.magic_graph`.
    mode, min_neighbors
        As in :class:`QuadraticOTTransformer`.

    Attributes
    ----------
    graph_
        The :class:`otgraph.Graph` of the fitted points.

    Examples
    --------
    >>> from otgraph.estimators import MAGICTransformer
    >>> MAGICTransformer(n_neighbors=2).fit_transform([[0.0], [1.0], [3.0], [4.0]]).shape
    (4, 4)
    """

    _construction = "magic"

    n_neighbors: int = MAGICOptions.n_neighbors
    _: KW_ONLY
    decay: float = MAGICOptions.decay
    knn_max: int | None = MAGICOptions.knn_max
    thresh: float = MAGICOptions.thresh
    n_pca: int | None = MAGICOptions.n_pca
    random_state: RandomState = MAGICOptions.random_state
