"""What a graph is good for, as numbers: the same code for every graph.

Spectral clustering is written out here and is not the library's, so that a change of
`otgraph.cluster` does not change what graphs are compared by.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import otgraph
from otgraph.exceptions import ConvergenceWarning, DisconnectedWarning

DENSE_LIMIT = 2000  # up to this many points of a component LAPACK, which needs no start vector
N_INIT = 10
LABELED = 0.03
DRAWS = 5
MU = 1.0  # default of `spread_labels`
RESOLUTION = 1.0  # default of scanpy
SMALL_SHARE = 0.03  # components with a smaller share of the points are fragments
SCORES = ("nmi", "leiden_ari", "accuracy")


def score(weights: Any, y: Any, seed: int = 0) -> dict[str, float]:
    """Scores of a symmetric CSR matrix against the true groups y.

    Keys: ``nmi`` of spectral clustering with the true number of groups, ``leiden_ari`` (NaN
    without igraph), ``accuracy`` from few labels, ``components``, ``fragments`` (components with
    less than 3 % of the points), ``min_degree`` and ``mean_degree``.
    """
    y = np.asarray(y)
    sizes = np.bincount(connected_components(weights, directed=False)[1])
    degrees = np.diff(weights.indptr) - (weights.diagonal() != 0)
    with warnings.catch_warnings():  # components are counted, warnings of them are not needed
        warnings.simplefilter("ignore", DisconnectedWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = spectral_labels(weights, len(np.unique(y)), seed)
        accuracy = label_accuracy(weights, y, seed)
    return {
        "nmi": float(normalized_mutual_info_score(y, found)),
        "leiden_ari": leiden_ari(weights, y, seed),
        "accuracy": accuracy,
        "components": len(sizes),
        "fragments": int(np.count_nonzero(sizes < SMALL_SHARE * len(y))),
        "min_degree": int(degrees.min()),
        "mean_degree": float(degrees.mean()),
    }


def spectral_labels(weights: Any, k: int, seed: int = 0) -> Any:
    """Spectral clustering: rows of the k leading eigenvectors, normalized, by k-means."""
    return grouped_rows(leading_vectors(weights, k), k, seed)


def grouped_rows(vectors: Any, k: int, seed: int = 0) -> Any:
    """The rows of eigenvectors, normalized, in k groups by k-means."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = vectors / np.where(norms == 0.0, 1.0, norms)
    return KMeans(k, n_init=N_INIT, random_state=seed).fit_predict(rows)


def leading_vectors(weights: Any, k: int) -> Any:
    """The k leading eigenvectors of D^(-1/2) W D^(-1/2), found component by component.

    Each component has the eigenvalue one. If there are more than k components, the vectors of
    the largest are taken, and points of the others are at the origin.
    """
    n = weights.shape[0]
    labels = connected_components(weights, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))
    found = []
    for a, b in zip(np.r_[0, ends[:-1]], ends, strict=True):
        members = order[a:b]
        values, vectors = _of_component(weights[members][:, members], min(k, b - a))
        found += [(-v, a - b, a, members, x) for v, x in zip(values, vectors.T, strict=True)]
    found.sort(key=lambda mode: mode[:3])  # largest eigenvalue first, then largest component
    whole = np.zeros((n, k))
    for column, (*_, members, vector) in enumerate(found[:k]):
        whole[members, column] = vector
    return whole


def _of_component(weights: Any, k: int) -> tuple[Any, Any]:
    """Leading eigenpairs of a connected graph in falling order; the first value is one."""
    n = weights.shape[0]
    mass = np.asarray(weights.sum(axis=1)).ravel()
    if n == 1 or k == 1:
        return np.ones(1), np.sqrt(mass if n > 1 else np.ones(1))[:, None]
    scale = sp.diags(1.0 / np.sqrt(mass))
    S = (scale @ weights @ scale).tocsr()
    if n <= DENSE_LIMIT or k >= n - 1:
        values, vectors = _dense(S.toarray(), k)
    else:
        start = np.random.default_rng(0).standard_normal(n)
        values, vectors = eigsh(S, k, which="LA", v0=start, ncv=min(n - 1, max(60, 4 * k)))
    values = values[::-1].copy()
    values[0] = 1.0
    return values, vectors[:, ::-1]


def _dense(S: Any, k: int) -> tuple[Any, Any]:
    n = len(S)
    try:
        return scipy.linalg.eigh(S, subset_by_index=[n - k, n - 1])
    except np.linalg.LinAlgError:  # the fast driver fails on some clusters of eigenvalues
        values, vectors = scipy.linalg.eigh(S, driver="evd")
        return values[-k:], vectors[:, -k:]


def leiden_ari(weights: Any, y: Any, seed: int = 0) -> float:
    """Agreement of communities by modularity with the groups."""
    try:
        import igraph
    except ImportError:
        return float("nan")
    upper = sp.triu(weights, k=1, format="coo")
    edges = np.column_stack([upper.row, upper.col])
    network = igraph.Graph(n=len(y), edges=edges.tolist())
    igraph.set_random_number_generator(random.Random(seed))
    parts = network.community_leiden(
        "modularity", weights=upper.data.tolist(), resolution=RESOLUTION, n_iterations=-1
    )
    return float(adjusted_rand_score(y, parts.membership))


def label_accuracy(weights: Any, y: Any, seed: int = 0) -> float:
    """Share of unlabeled points that get their label from 3 % of the labels; mean over draws."""
    graph = otgraph.Graph.from_weights(weights)
    shares = []
    for draw in range(DRAWS):
        known = otgraph.datasets.label_mask(y, LABELED, random_state=DRAWS * seed + draw)
        found = otgraph.spread_labels(graph, np.where(known, y, -1), MU).labels
        shares.append(np.mean((found == y)[~known]))
    return float(np.mean(shares))
