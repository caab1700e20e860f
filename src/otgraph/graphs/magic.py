"""The adaptive kernel of MAGIC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import scipy.sparse as sp

from otgraph._parallel import Workers
from otgraph._validation import check_count, check_seed
from otgraph.costs import check_input, direct_cost, kept_points
from otgraph.graphs._canonical import plain_params, with_small_indices
from otgraph.graphs._kernel_rows import (
    check_neighbor_count,
    decayed,
    kernel_rows,
    principal_components,
)
from otgraph.graphs.extension import metric_cost, stacked_rows
from otgraph.graphs.graph import Graph
from otgraph.graphs.kernels import warn_of_duplicates
from otgraph.graphs.options import MAGICOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.typing import Keywords, Metric, PointsLike, RandomState, SparseMatrix

KNN_MAX_FACTOR = 3  # default of `knn_max`, relative to `n_neighbors`, as in MAGIC


def magic_graph(
    X: PointsLike,
    n_neighbors: int = MAGICOptions.n_neighbors,
    *,
    decay: float = MAGICOptions.decay,
    knn_max: int | None = MAGICOptions.knn_max,
    thresh: float = MAGICOptions.thresh,
    metric: Metric = MAGICOptions.metric,
    n_pca: int | None = MAGICOptions.n_pca,
    random_state: RandomState = MAGICOptions.random_state,
    n_jobs: int | None = -1,
) -> Graph:
    r"""Nearest-neighbor graph with a bandwidth for every point: the kernel of MAGIC.

    .. math:: K_{ij} = e^{-(d_{ij}/\sigma_i)^\alpha} \quad \text{for the } k_{\max}
              \text{ nearest } j, \qquad W = (K + K^\top)/2,

    where σ_i is the distance from i to its k-th nearest neighbor (van Dijk et al. 2018). The
    diagonal is one. Equal to the kernel of graphtools, the package that MAGIC builds on, and
    ``transition()`` to its diffusion operator, up to rounding and the choice among ties.

    Parameters
    ----------
    X
        Points, dense or sparse, or a dense matrix of distances with ``metric="precomputed"``.
    n_neighbors
        Rank of the neighbor that sets the bandwidth; the point itself does not count.
    decay
        The exponent α: larger values give a kernel that falls off more sharply at σ_i.
    knn_max
        Most neighbors with a weight; three times `n_neighbors` by default, as in MAGIC. In
        ``extend`` only `thresh` limits the neighbors of new points, as in graphtools.
    thresh
        Smaller values of K are dropped.
    metric, n_jobs
        As in :func:`otgraph.quadratic_ot_graph`.
    n_pca
        Number of principal components for the distances; MAGIC takes 100. None, the default,
        computes distances between the points themselves.
    random_state
        Seed of the approximate decomposition behind `n_pca`.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> graph = otgraph.magic_graph(X, n_neighbors=3)
    >>> float(graph.weights.diagonal().min())
    1.0
    """
    options = MAGICOptions(
        n_neighbors=n_neighbors, decay=decay, knn_max=knn_max, thresh=thresh, metric=metric,
        n_pca=n_pca, random_state=random_state,
    )  # fmt: skip
    workers, seed = Workers(n_jobs), check_seed(options.random_state)
    features = points = check_input(X, metric, candidates=False)
    if n_pca is not None:
        features = principal_components(points, n_pca, seed, metric)
    n = points.shape[0]
    k = check_neighbor_count(n_neighbors, "n_neighbors", n - 1)
    knn_max = KNN_MAX_FACTOR * k if knn_max is None else check_count(knn_max, "knn_max", minimum=k)
    distances = direct_cost(features, metric=metric, workers=workers)
    indices, values = distances.nearest(min(knn_max, n - 1))
    warn_of_duplicates(values[:, :k])
    kernel = kernel_rows(indices, decayed(values, k, decay, thresh), n)
    kernel = kernel + sp.identity(n, format="csr")
    found = {"n_neighbors": k, "knn_max": min(knn_max, n - 1)}
    params = {"method": "magic", **options.record(), **found}
    return Graph(
        weights=with_small_indices(((kernel + kernel.T) * 0.5).tocsr()),
        params=plain_params(params),
        points=kept_points(X, points, metric),
    )


def magic_rows(
    graph: Graph, X_new: PointsLike, mass: ArrayLike | None, metric: Metric | None
) -> SparseMatrix:
    """Rows of new points: exp(−(d*_j / σ*)^α), σ* the distance to the k-th nearest point.

    As in graphtools, `knn_max` limits the neighbors of the points of the graph, not those of new
    points.
    """
    params: Keywords = dict(graph.params)
    costs, queries = metric_cost(graph, metric, X_new)
    kernel = params["n_neighbors"], params["decay"], params["thresh"]
    return stacked_rows(costs, queries, lambda block, a, b: decayed(block, *kernel))
