"""Spectral clustering: groups of points between which a random walk rarely moves.

A graph of k groups has k slow modes, whose rows differ between groups and hardly within them. The
slowest modes of real graphs often describe something else: a fragment of a few points, cut off or
held by one weak edge. Such modes live on few points, and would use up the clusters that were asked
for. They are left out, and so are their points: the other modes say nothing about them. Afterwards
they get the label that spreads to them along the edges, if there are any.

On the 65 labeled sets of `benchmarks.usefulness` (up to 1200 points of each), at mean degrees 5 and
15:

    mean NMI                          ours        kNN         kNN with Gaussian weights
    all modes                         0.58 0.70   0.70 0.65   0.71 0.68
    without fragments (as here)       0.69 0.73   0.70 0.65   0.71 0.68
    the same, pivoted QR, no k-means  0.69 0.71   0.69 0.65   0.71 0.68

The label -1 counts as a group. Where it joins the largest cluster instead, the second row is 0.63
and 0.72 on our graphs. The constants below were chosen on the same sets.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from otgraph._blas import single_threaded_blas
from otgraph._optional import importing
from otgraph._parallel import in_own_thread
from otgraph._validation import check_count, check_positive, check_seed
from otgraph.exceptions import ConvergenceWarning, DisconnectedWarning, invalid
from otgraph.graphs import Graph
from otgraph.graphs._canonical import row_sums
from otgraph.methods._graphs import as_product_graph
from otgraph.methods.spectral import components_of, walk_modes
from otgraph.methods.spreading import spread_labels

if TYPE_CHECKING:
    from otgraph.typing import (
        BoolArray,
        FloatArray,
        IntArray,
        LongArray,
        ProductGraph,
        RandomState,
        SparseMatrix,
    )

# A mode that lives on fewer points than this share of a mean cluster describes a fragment. Between
# 0.05 and 0.2 the mean NMI of the table above changes by 0.01. Above, rare cell types are lost.
FRAGMENT_SHARE = 0.1
# Modes to compute beyond those that are needed: fragments take some. The second is tried if the
# first leaves too few.
SPARE_MODES = (10, 40)
N_STARTS = 10  # of k-means, of which the best counts


@dataclass(frozen=True, eq=False)
class Clustering:
    """Clusters of the points of a graph.

    Attributes
    ----------
    labels
        Cluster of every point, numbered from 0 by falling size; -1 for points of fragments that
        no edge connects to a cluster, and for outliers that the graph has dropped.
    n_clusters
        Number of clusters.
    eigenvalues
        Of the random walk, in falling order: `n_clusters` that were used, and those that follow.
        Eigenvalues of fragments are left out. :func:`otgraph.plots.plot_eigenvalues` shows them.
    coordinates
        Rows of the eigenvectors that were used, scaled to norm one; zero for points of fragments.

    Examples
    --------
    >>> import otgraph
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> found = otgraph.cluster(otgraph.quadratic_ot_graph(X, connect=False))
    >>> found.n_clusters, found.labels.shape
    (3, (90,))
    """

    labels: IntArray
    n_clusters: int
    eigenvalues: FloatArray
    coordinates: FloatArray


def cluster(
    graph: Graph | SparseMatrix | ProductGraph,
    n_clusters: int | None = None,
    *,
    max_clusters: int = 20,
    tol: float = 1e-8,
    max_restarts: int = 500,
    random_state: RandomState = 0,
) -> Clustering:
    r"""Spectral clustering: groups of points between which a random walk rarely moves.

    The rows of the leading eigenvectors of the random walk, scaled to norm one, are grouped by
    k-means (Ng, Jordan and Weiss 2002). Unlike :func:`otgraph.eigenmaps`, components of the graph
    are told apart. Each has an eigenvector of its own with eigenvalue one.

    Eigenvectors that live on few points are left out: with them, fragments of a few points would
    be clusters, and large groups would be merged. Points of a fragment get the cluster to which
    their edges lead. Without such an edge they have the label -1, with a warning. Outliers that
    a graph with `outlier_cost` has dropped have it without a warning, and take no part.

    Parameters
    ----------
    graph
        A Graph, a graph on a cluster, or any symmetric scipy sparse matrix of weights.
    n_clusters
        Number of clusters. If the graph has more components of sufficient size, the largest are
        the clusters and the others have the label -1. None, the default, takes a number from 2 on
        with the largest gap :math:`(f_{k+1} - f_k) / \sqrt{f_{k+1}}` between the frequencies
        :math:`f_k = \sqrt{1 - \lambda_k}`. On half of 64 labeled sets this is the number of labels;
        look at :func:`otgraph.plots.plot_eigenvalues` before you rely on it.
    max_clusters
        Largest number that None may give.
    tol, max_restarts
        As in :func:`otgraph.eigenmaps`.
    random_state
        Seed of k-means, which takes the best of ten starts. Clear groups do not depend on it.

    Returns
    -------
    Clustering

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [9.0]], 30, axis=0)
    >>> found = otgraph.cluster(otgraph.quadratic_ot_graph(X, mean_degree=5))
    >>> found.n_clusters, np.bincount(found.labels)
    (2, array([30, 30]))
    """
    whole = as_product_graph(graph)
    graph, kept = _without_dropped(whole)
    k = None if n_clusters is None else _checked_number(n_clusters, "n_clusters", graph.n)
    most = min(check_count(max_clusters, "max_clusters"), graph.n) if k is None else k
    tol, seed = check_positive(tol, "tol"), check_seed(random_state)
    max_restarts = check_count(max_restarts, "max_restarts")
    with single_threaded_blas():  # the same result for any number of threads
        modes = _enough_modes(graph, most, tol, max_restarts)
        k = _by_gap(modes, most) if k is None else k
        used = modes.for_clusters(k)
        coordinates = _unit_rows(graph.n, used[:k])
        labels = _grouped_rows(coordinates, ~_fragments(modes, used[:k], graph.n), k, seed)
        labels = _numbered(_followed_edges(graph, labels))
    _warn(graph, k, labels)
    values = np.array([mode.value for mode in used[: most + SPARE_MODES[0]]])
    if graph is whole:
        return Clustering(labels, k, values, coordinates)
    every_label, every_row = np.full(whole.n, -1, dtype=np.int32), np.zeros((whole.n, k))
    every_label[kept], every_row[kept] = labels, coordinates
    return Clustering(every_label, k, values, every_row)


def _without_dropped(graph: Graph | ProductGraph) -> tuple[Graph | ProductGraph, LongArray]:
    """The graph without outliers that were let go, and the points that are left."""
    kept = np.flatnonzero(~graph.dropped)
    if len(kept) == graph.n:
        return graph, kept
    if not isinstance(graph, Graph):
        msg = "has dropped points, and is on a cluster. Pass `graph.to_graph()`, if it fits."
        raise invalid("graph", msg)
    if not len(kept):
        msg = "has no edge: all points were dropped. Build it with a larger `outlier_cost`."
        raise invalid("graph", msg)
    return Graph(graph.weights[kept][:, kept].tocsr()), kept


@dataclass(frozen=True, eq=False)
class _Mode:
    """An eigenvector of the random walk that is zero outside of one component."""

    value: float
    vector: FloatArray  # mean square one under the stationary distribution
    members: LongArray
    share: float  # of all points, on which it lives: 1 / sum q_i^4 for q_i^2 of sum one


class _Modes(list[_Mode]):
    """Modes by falling eigenvalue; those of larger components first among equal ones."""

    def counted(self, k: int) -> list[_Mode]:
        """Modes that do not describe fragments, if there are k clusters."""
        return [mode for mode in self if mode.share >= FRAGMENT_SHARE / k]

    def for_clusters(self, k: int) -> list[_Mode]:
        """At least k modes; those of fragments only where there are no others."""
        counted = self.counted(k)
        if len(counted) >= k:
            return counted
        others = [mode for mode in self if mode.share < FRAGMENT_SHARE / k]
        kept = counted + others[: k - len(counted)]
        return [mode for mode in self if mode in kept]


def _checked_number(n_clusters: int, name: str, n: int) -> int:
    k = check_count(n_clusters, name)
    if k > n:
        raise invalid(name, f"must be at most the number of points, {n}, got {k}.")
    return k


def _enough_modes(graph: Graph | ProductGraph, most: int, tol: float, max_restarts: int) -> _Modes:
    """So many modes that enough are left without fragments."""
    for spare in SPARE_MODES:
        modes = _leading_modes(graph, most + 1 + spare, most, tol, max_restarts)
        if len(modes.counted(most)) > most:
            break
    return modes


def _leading_modes(
    graph: Graph | ProductGraph, wanted: int, most: int, tol: float, max_restarts: int
) -> _Modes:
    found, missing = [], 0
    sizes = np.bincount(graph.component_labels)
    # A component has no mode on more points than it has. The largest ones are always there, in
    # case that the whole graph consists of fragments.
    large = np.argsort(-sizes, kind="stable")[:most]
    needed = set(large) | set(np.flatnonzero(sizes >= FRAGMENT_SHARE / most * graph.n))
    for label, members, W in components_of(graph):
        if label not in needed:
            continue
        asked = min(wanted, len(members)) - 1
        values, vectors = np.ones(1), np.ones((len(members), 1))
        if asked:
            slow = walk_modes(W, asked, tol, max_restarts)
            missing += asked - len(slow.values)
            values, vectors = np.r_[values, slow.values], np.c_[vectors, slow.vectors]
        weight = row_sums(W) if len(members) > 1 else np.ones(1)
        squares = weight[:, None] / weight.sum() * vectors**2
        shares = 1.0 / (squares**2).sum(axis=0) / graph.n
        found += [
            _Mode(float(value), vector, members, float(share))
            for value, vector, share in zip(values, vectors.T, shares, strict=True)
        ]
    if missing:
        msg = (
            f"{missing} eigenvector(s) did not converge in {max_restarts} restarts and are not "
            "used. Raise `max_restarts` or `tol`."
        )
        warnings.warn(msg, ConvergenceWarning, stacklevel=4)
    found.sort(key=lambda mode: (-mode.value, -len(mode.members), mode.members[0]))
    return _Modes(found[:wanted])


def _by_gap(modes: _Modes, most: int) -> int:
    """The number of clusters after which the frequency of the modes rises most.

    Along a curve without any groups 1 - λ grows like k², and its root f by equal steps. A step of f
    that is larger than others is a sign of groups. On the labeled sets differences of λ gave the
    true number in 13 % of cases, differences of f in 32 %, and this quotient in 39 %, with the best
    NMI. It lies between the difference, which favors many clusters, and the relative one.
    """
    best, widest = 1, 0.0
    for k in range(2, most + 1):
        values = [mode.value for mode in modes.counted(k)[: k + 1]]
        if len(values) == k + 1:
            before, after = np.sqrt(1.0 - np.array(values[-2:]))
            gap = (after - before) / np.sqrt(after) if after > before else 0.0
            best, widest = (k, gap) if gap > widest else (best, widest)
    return best


def _unit_rows(n: int, modes: list[_Mode]) -> FloatArray:
    rows = np.zeros((n, len(modes)))
    for column, mode in enumerate(modes):
        rows[mode.members, column] = mode.vector
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms == 0.0, 1.0, norms))


def _fragments(modes: _Modes, used: list[_Mode], n: int) -> BoolArray:
    """Points of the modes that were passed over."""
    inside = np.zeros(n, dtype=bool)
    for mode in modes[: modes.index(used[-1])]:
        if mode not in used:
            # On the points where a mode lives its mean square is that of the whole over its share.
            typical = len(mode.members) / (n * mode.share)
            inside[mode.members[mode.vector**2 > 0.5 * typical]] = True
    return inside


def _grouped_rows(rows: FloatArray, chosen: BoolArray, k: int, seed: int) -> IntArray:
    """Clusters of the chosen rows by k-means; -1 for the others.

    Rows of zeros, in components that have no eigenvector here, are others too.
    """
    if k == 1:
        return np.zeros(len(rows), dtype=np.int32)
    with importing():  # slow to import, and nothing else needs it
        from sklearn.cluster import KMeans

    labels = np.full(len(rows), -1, dtype=np.int32)
    placed = rows.any(axis=1)
    placed &= chosen if np.count_nonzero(placed & chosen) >= k else True
    means = KMeans(k, n_init=N_STARTS, random_state=seed)

    def fit() -> IntArray:
        with threadpool_limits(1, "openmp"):  # OpenMP has a number for each thread
            return np.asarray(means.fit_predict(rows[placed]), dtype=np.int32)

    labels[placed] = in_own_thread(fit)
    return labels


def _followed_edges(graph: Graph | ProductGraph, labels: IntArray) -> IntArray:
    """Labels of fragments from the clusters to which their edges lead."""
    clustered = np.zeros(graph.n_connected, dtype=bool)
    clustered[graph.component_labels[labels >= 0]] = True
    reached = np.flatnonzero(clustered[graph.component_labels])
    if labels[reached].min() >= 0:
        return labels
    if isinstance(graph, Graph):
        part = Graph(graph.weights[reached][:, reached])
        spread = spread_labels(part, labels[reached]).labels
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisconnectedWarning)  # of components without a cluster
            spread = spread_labels(graph, labels).labels[reached]
    labels[reached] = np.where(labels[reached] < 0, spread, labels[reached])
    return labels


def _numbered(labels: IntArray) -> IntArray:
    """Clusters by falling size, then by their first point."""
    names, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    order = order[names[order] >= 0]
    rank = np.full(labels.max() + 2, -1, dtype=np.int32)  # the last is that of -1
    rank[names[order]] = np.arange(len(order))
    return rank[labels]


def _warn(graph: Graph | ProductGraph, k: int, labels: IntArray) -> None:
    outside = labels < 0
    if not outside.any():
        return
    parts = np.unique(graph.component_labels[outside], return_counts=True)[1]
    msg = (
        f"{int(outside.sum())} point(s) have the label -1: they are in {len(parts)} component(s) "
        f"of at most {parts.max()} point(s), which no edge connects to any of the {k} clusters. "
        "Build the graph with `min_degree=4`, a larger `eps` or more neighbors to connect them; "
        "more clusters make clusters of the largest."
    )
    warnings.warn(msg, DisconnectedWarning, stacklevel=3)
