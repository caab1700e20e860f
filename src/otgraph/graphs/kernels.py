"""Gaussian weights, on nearest neighbors or on all pairs."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._parallel import Workers
from otgraph.costs import check_input, direct_cost, kept_points
from otgraph.costs.direct import fill_symmetric
from otgraph.costs.near import all_but
from otgraph.costs.pairs import union_of_nearest
from otgraph.costs.powers import can_list
from otgraph.exceptions import DisconnectedWarning
from otgraph.graphs._canonical import (
    csr_from_dense,
    plain_params,
    require_dense_memory,
    with_small_indices,
)
from otgraph.graphs._kernel_rows import (
    check_neighbor_count,
    gaussian_in_place,
    gaussian_weights,
    kernel_rows,
)
from otgraph.graphs.cutoff import cut, resolved_error, weights_of_pairs
from otgraph.graphs.extension import costs_and_queries, rows_of_lists, stacked_rows
from otgraph.graphs.graph import Graph
from otgraph.graphs.options import GaussianOptions, KNNGaussianOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.costs import DirectCost
    from otgraph.graphs.options import Symmetrize
    from otgraph.typing import FloatArray, LongArray, Metric, PointsLike, SparseMatrix


def knn_gaussian_graph(
    X: PointsLike,
    n_neighbors: int = KNNGaussianOptions.n_neighbors,
    eps: float | None = KNNGaussianOptions.eps,
    *,
    metric: Metric = KNNGaussianOptions.metric,
    power: float = KNNGaussianOptions.power,
    normalize: bool = KNNGaussianOptions.normalize,
    include_self: bool = KNNGaussianOptions.include_self,
    symmetrize: Symmetrize = KNNGaussianOptions.symmetrize,
    progress: bool = False,
    n_jobs: int | None = -1,
) -> Graph:
    r"""Graph of nearest neighbors, with Gaussian or with equal weights.

    .. math:: W_{ij} = e^{-c_{ij}/\varepsilon} \quad \text{where } j \text{ is among the } k
              \text{ nearest points of } i \text{, or } i \text{ among those of } j.

    Neighbors are exact. Of dense points, in Euclidean metrics and cosine, those at the same
    distance are taken in the order of the input; otherwise ties are broken arbitrarily.

    Parameters
    ----------
    X
        Points, dense or sparse, or the dense cost matrix with ``metric="precomputed"``.
    n_neighbors
        Least number of neighbors of a point; points that many others choose have more.
    eps
        Scale of the weights, in units of the mean cost if `normalize`. None, the default,
        gives every edge weight one.
    metric, power, normalize
        The cost c_ij, as in :func:`otgraph.quadratic_ot_graph`.
    include_self
        Count a point as the first of its own neighbors: it keeps a self-loop of weight one
        and has `n_neighbors` − 1 others, possibly none. The published comparisons do so.
    symmetrize
        ``"union"``: an edge found from one side has its full weight. ``"average"``:
        (K + Kᵀ)/2, so that an edge found from one side has half of it, as in the published
        comparisons.
    progress
        Show a progress bar where costs of all pairs are needed for their mean.
    n_jobs
        As in :func:`otgraph.quadratic_ot_graph`.

    Examples
    --------
    >>> import otgraph
    >>> X = [[0.0], [1.0], [3.0]]
    >>> otgraph.knn_gaussian_graph(X, n_neighbors=1).weights.toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    >>> otgraph.knn_gaussian_graph(X, n_neighbors=1, symmetrize="average").weights.toarray()
    array([[0. , 1. , 0. ],
           [1. , 0. , 0.5],
           [0. , 0.5, 0. ]])
    """
    options = KNNGaussianOptions(
        n_neighbors=n_neighbors, eps=eps, metric=metric, power=power, normalize=normalize,
        include_self=include_self, symmetrize=symmetrize,
    )  # fmt: skip
    eps = options.eps
    checked = check_input(X, metric, candidates=False)
    n = checked.shape[0]
    k = check_neighbor_count(n_neighbors, "n_neighbors", n - 1 + include_self)
    workers = Workers(n_jobs, progress=progress)
    try:
        cost = direct_cost(checked, **options.cost(), workers=workers)
        indices, values = cost.nearest(k - include_self)
        warn_of_duplicates(values)
        weights = _symmetrized(cost, indices, values, eps, options)
    finally:
        workers.close()
    params = {"method": "knn", **options.record(), "n_neighbors": k, "scale": cost.scale}
    points = kept_points(X, checked, metric)
    graph = Graph(with_small_indices(weights.tocsr()), plain_params(params), points=points)
    _warn_of_isolated(graph, eps, loops_alone=k == include_self)
    return graph


def _symmetrized(
    cost: DirectCost,
    indices: LongArray,
    values: FloatArray,
    eps: float | None,
    options: KNNGaussianOptions,
) -> SparseMatrix:
    """The weights of lists of nearest points, in both directions."""
    if options.symmetrize == "union" and can_list(cost):
        pairs = union_of_nearest(indices, values, cost.workers)
        if eps is None:
            pairs.costs[:] = 1.0
        else:
            gaussian_in_place(pairs.costs, eps)
        return weights_of_pairs(pairs, pairs.costs, float(options.include_self))
    kernel = kernel_rows(indices, gaussian_weights(values, eps), cost.n)
    if options.include_self:
        kernel = kernel + sp.identity(cost.n, format="csr")
    if options.symmetrize == "union":  # costs may differ in their last digits
        return kernel.maximum(kernel.T)
    return (kernel + kernel.T) * 0.5


def gaussian_graph(
    X: PointsLike,
    eps: float = GaussianOptions.eps,
    *,
    metric: Metric = GaussianOptions.metric,
    power: float = GaussianOptions.power,
    normalize: bool = GaussianOptions.normalize,
    self_loops: bool = GaussianOptions.self_loops,
    max_error: float | None = GaussianOptions.max_error,
    progress: bool = False,
    n_jobs: int | None = -1,
) -> Graph:
    r"""Gaussian kernel between all pairs of points.

    .. math:: W_{ij} = e^{-c_{ij}/\varepsilon}

    Weights that underflow to zero are not stored, and small ones need not be; see `max_error`.

    Parameters
    ----------
    X
        Points, dense or sparse, or the dense cost matrix with ``metric="precomputed"``.
    eps
        Scale of the weights, in units of the mean cost if `normalize`.
    metric, power, normalize
        The cost c_ij, as in :func:`otgraph.quadratic_ot_graph`.
    self_loops
        Keep the ones on the diagonal.
    max_error
        Share of the weight of a row that may be left out, so that the graph is sparse: the weights
        that a row lacks sum to at most this times its sum. By default all weights are kept up to
        10 000 points, with n² of them in memory. Above that, 1e-6, if at most a quarter of the
        pairs are left, and all of them otherwise. Small `eps` leaves few pairs, `eps` about 1
        nearly all. Only dense points in Euclidean metrics and cosine save time and memory. The
        value that was used is in ``graph.params``; None means all pairs.
    progress, n_jobs
        As in :func:`otgraph.quadratic_ot_graph`.

    Examples
    --------
    >>> import otgraph
    >>> graph = otgraph.gaussian_graph([[0.0], [1.0]], eps=1.0, normalize=False)
    >>> graph.weights.toarray().round(3)
    array([[0.   , 0.368],
           [0.368, 0.   ]])
    """
    options = GaussianOptions(
        eps=eps, metric=metric, power=power, normalize=normalize, self_loops=self_loops,
        max_error=max_error,
    )  # fmt: skip
    eps = options.eps
    checked = check_input(X, metric, candidates=False)
    workers = Workers(n_jobs, progress=progress)
    try:
        cost = direct_cost(checked, **options.cost(), workers=workers)
        error = resolved_error(cost, eps, options.max_error)
        weights = _gaussian_weights(cost, eps, error, self_loops=options.self_loops)
    finally:
        workers.close()
    params = {"method": "gaussian", **options.record(), "max_error": error, "scale": cost.scale}
    points = kept_points(X, checked, metric)
    graph = Graph(weights, plain_params(params), points=points)
    _warn_of_isolated(graph, eps)
    return graph


def _gaussian_weights(
    cost: DirectCost, eps: float, max_error: float | None, *, self_loops: bool
) -> SparseMatrix:
    if max_error is not None and can_list(cost):
        pairs = cost.heavy_pairs(np.zeros(cost.n), eps, max_error)
        return weights_of_pairs(pairs, gaussian_weights(pairs.costs, eps), float(self_loops))
    require_dense_memory(cost.n)
    matrix = cost.matrix()
    fill_symmetric(matrix, lambda block, a, b: gaussian_in_place(block, eps), cost.workers)
    np.fill_diagonal(matrix, 0.0)
    if max_error is not None:
        cut(matrix, max_error)
    if self_loops:
        np.fill_diagonal(matrix, 1.0)
    return csr_from_dense(matrix)


def warn_of_duplicates(costs: FloatArray) -> None:
    """Warn about points whose neighbors are all duplicates: they may be disconnected."""
    stuck = np.count_nonzero(costs.max(axis=1, initial=0.0) == 0.0) if costs.shape[1] else 0
    if 0 < stuck < len(costs):  # not if all points are identical
        warnings.warn(
            f"{stuck} point(s) have only duplicates of themselves among their {costs.shape[1]} "
            "neighbors and may be disconnected from the rest. Raise `n_neighbors`, or drop "
            "duplicates.",
            DisconnectedWarning,
            stacklevel=3,
        )


def _warn_of_isolated(graph: Graph, eps: float | None, *, loops_alone: bool = False) -> None:
    isolated = int(np.count_nonzero(graph.degrees == 0))
    if loops_alone:
        msg = (
            "With `n_neighbors`=1 and `include_self=True` every point is its own and only neighbor:"
            " the graph has no edges. Raise `n_neighbors`."
        )
    elif isolated and eps is not None:
        msg = (
            f"{isolated} point(s) have no neighbor left, because all their weights exp(-c/eps) "
            f"underflow to zero at `eps`={eps}. Raise `eps`."
        )
    else:
        return
    warnings.warn(msg, DisconnectedWarning, stacklevel=3)


def knn_gaussian_rows(
    graph: Graph, X_new: PointsLike, mass: ArrayLike | None, metric: Metric | None
) -> SparseMatrix:
    """Rows of new points: exp(−c*_j / ε), or ones, for the k nearest points."""
    costs, queries = costs_and_queries(graph, X_new, metric)
    k = min(int(graph.params["n_neighbors"]), costs.n)  # type: ignore[arg-type]
    indices, values = costs.nearest(k, queries)
    eps = graph.params["eps"]
    weights = gaussian_weights(values, None if eps is None else float(eps))
    return kernel_rows(indices, weights, costs.n)


def gaussian_rows(
    graph: Graph, X_new: PointsLike, mass: ArrayLike | None, metric: Metric | None
) -> SparseMatrix:
    """Rows of new points: exp(−c*_j / ε) for all points."""
    costs, queries = costs_and_queries(graph, X_new, metric)
    eps = float(graph.params["eps"])  # type: ignore[arg-type]
    max_error = graph.params.get("max_error")
    if max_error is not None and can_list(costs):
        found = costs.lists(all_but(float(max_error), eps, costs.n), np.zeros(costs.n), queries)
        gaussian_in_place(found.values, eps)
        return rows_of_lists(found, costs.n)
    return stacked_rows(costs, queries, lambda block, a, b: gaussian_weights(block, eps))
