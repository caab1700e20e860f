"""Graphs that are compared: one line of `CONTENDERS` each.

A contender takes points and the wanted mean degree, or None for its own default, and returns a
symmetric CSR matrix of weights. Contenders that choose their own degree are in `DEFAULT_ONLY`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

import otgraph

if TYPE_CHECKING:
    from collections.abc import Callable

N_NEIGHBORS = 15  # default of scanpy, and of this package for kNN
MAGIC_NEIGHBORS = 5  # default of MAGIC


def ours(X: Any, mean_degree: float | None, **options: Any) -> Any:
    """Quadratic optimal transport."""
    return otgraph.quadratic_ot_graph(X, mean_degree=mean_degree, n_jobs=1, **options).weights


def multiscale(X: Any, mean_degree: float | None) -> Any:
    """Mean of plans, the widest with this degree and the others with halves of it."""
    return otgraph.multiscale_graph(X, mean_degree=mean_degree, n_jobs=1).weights


def knn(X: Any, mean_degree: float | None) -> Any:
    """Every edge has weight one."""
    return at_degree(
        lambda k: otgraph.knn_gaussian_graph(X, k, n_jobs=1).weights,
        len(X), mean_degree, N_NEIGHBORS,
    )  # fmt: skip


def knn_gaussian(X: Any, mean_degree: float | None) -> Any:
    """Weights exp(-d²/(s_i s_j)), where s_i is the distance to the k-th neighbor."""
    return at_degree(lambda k: _self_tuned(X, k), len(X), mean_degree, N_NEIGHBORS)


def umap(X: Any, mean_degree: float | None) -> Any:
    """Graph of scanpy, whose number of neighbors counts the point itself."""
    import anndata
    import scanpy as sc

    def build(k: int) -> Any:
        adata = anndata.AnnData(np.asarray(X))
        sc.pp.neighbors(adata, k, use_rep="X")
        weights = adata.obsp["connectivities"]
        return sp.csr_matrix((weights + weights.T) * 0.5, dtype=np.float64)

    return at_degree(build, len(X), mean_degree, N_NEIGHBORS, smallest=2)


def magic(X: Any, mean_degree: float | None) -> Any:
    """Kernel of MAGIC."""
    return at_degree(
        lambda k: otgraph.magic_graph(X, k, n_jobs=1).weights,
        len(X), mean_degree, MAGIC_NEIGHBORS,
    )  # fmt: skip


def ours_auto(X: Any, mean_degree: float | None) -> Any:
    """Quadratic optimal transport whose eps predicts unseen features best."""
    if mean_degree is not None:
        msg = f"This graph chooses its own degree; `mean_degree` must be None, got {mean_degree!r}."
        raise ValueError(msg)
    return otgraph.quadratic_ot_graph(X, "auto", n_jobs=1).weights


# Keywords of our function are one line each. Names that begin with "ours" are compared with the
# rivals.
CONTENDERS: dict[str, Callable[[Any, float | None], Any]] = {
    "ours": ours,
    "ours connected": partial(ours, connect=True),
    "ours plain": partial(ours, min_degree=0, connect=False),
    "ours auto": ours_auto,
    "ours multiscale": multiscale,
    "kNN": knn,
    "kNN+Gaussian": knn_gaussian,
    "umap": umap,
    "MAGIC": magic,
}
# Contenders that take no mean degree: only their default is compared.
DEFAULT_ONLY = ("ours auto",)
# The better of these two is what we are compared with, set by set.
RIVALS = ("kNN", "kNN+Gaussian")
# Packages that a contender needs, beyond ours.
NEEDS = {"umap": "scanpy"}


def at_degree(
    build: Callable[[int], Any],
    n: int,
    mean_degree: float | None,
    default: int,
    *,
    smallest: int = 1,
) -> Any:
    """Graph whose mean degree is nearest to the wanted one, by bisection.

    The degree rises with the number of neighbors k, from which it differs by a factor of three at
    most: an edge counts for both of its ends, and MAGIC keeps three times k neighbors.
    """
    if mean_degree is None:
        return build(min(default, n - 1))
    low = max(smallest, int(mean_degree / 6))
    high = min(int(np.ceil(mean_degree)) + smallest, n - 1)
    graphs = {k: build(k) for k in (low, high)}
    while high - low > 1:
        middle = (low + high) // 2
        graphs[middle] = build(middle)
        low, high = (middle, high) if degree(graphs[middle]) < mean_degree else (low, middle)
    nearest = min((low, high), key=lambda k: abs(degree(graphs[k]) - mean_degree))
    return graphs[nearest]


def degree(weights: Any) -> float:
    """Mean number of neighbors; a point itself does not count."""
    return float((weights.nnz - np.count_nonzero(weights.diagonal())) / weights.shape[0])


def _self_tuned(X: Any, k: int) -> Any:
    distances, indices = NearestNeighbors(n_neighbors=k).fit(X).kneighbors()
    n = len(X)
    rows = np.repeat(np.arange(n), k)
    scale = distances[:, -1]
    positive = scale[scale > 0.0]  # duplicates are at distance zero
    scale = np.maximum(scale, positive.min() if len(positive) else 1.0)
    columns = indices.ravel()
    weights = np.exp(-(distances.ravel() ** 2) / (scale[rows] * scale[columns]))
    kernel = sp.csr_matrix((weights, (rows, columns)), shape=(n, n))
    return kernel.maximum(kernel.T).tocsr()
