"""Numbers that compare graphs: angles between subspaces, effective numbers of neighbors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import subspace_angles

from otgraph.exceptions import invalid
from otgraph.methods._graphs import as_graph

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.graphs import Graph
    from otgraph.methods.spectral import Embedding
    from otgraph.typing import FloatArray, SparseMatrix


def subspace_angle(A: ArrayLike | Embedding, B: ArrayLike | Embedding) -> float:
    """Mean principal angle between the spans of two sets of columns, in radians.

    Zero if one span contains the other, π/2 if they are orthogonal. It compares eigenvectors
    of two graphs on the same points. Signs, order and mixing of eigenvectors with nearly equal
    eigenvalues do not matter (Knyazev and Argentati 2002; Matsumoto et al. 2022, section 3.1).

    Parameters
    ----------
    A
        Columns with one row per point, or an :class:`otgraph.Embedding`.
    B
        The same; the number of columns may differ. There are as many angles as the smaller span
        has dimensions.

    Examples
    --------
    >>> import otgraph
    >>> round(otgraph.subspace_angle([[1.0], [0.0]], [[1.0], [1.0]]), 4)
    0.7854
    """
    A, B = _columns(A, "A"), _columns(B, "B")
    if len(A) != len(B):
        raise invalid("A", f"and `B` must have the same rows, got {len(A)} and {len(B)}.")
    return float(subspace_angles(A, B).mean())


def _columns(value: object, name: str) -> FloatArray:
    columns = np.asarray(getattr(value, "coordinates", value), dtype=np.float64)
    if columns.ndim != 2 or not columns.size:
        raise invalid(name, f"must be a matrix with one row per point, got shape {columns.shape}.")
    if not np.isfinite(columns).all():
        raise invalid(name, f"must be finite, got {columns[~np.isfinite(columns)][0]}.")
    if not columns.any():
        raise invalid(name, "must have a column that is not zero, got zeros only.")
    return columns


def perplexity(graph: Graph | SparseMatrix) -> float:
    """Effective number of neighbors: the mean over the points of exp(entropy of the random walk).

    A point with k equal weights counts as k. Unequal weights count less than their number, which
    makes dense graphs comparable with sparse ones.

    Parameters
    ----------
    graph
        Graph, or a symmetric sparse matrix of weights.

    Examples
    --------
    >>> import otgraph
    >>> ring = otgraph.knn_gaussian_graph([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], 2)
    >>> otgraph.methods.perplexity(ring)
    2.0
    """
    P = as_graph(graph).transition().tocoo()
    entropies = np.bincount(P.row, -P.data * np.log(P.data), minlength=P.shape[0])
    return float(np.exp(entropies).mean())
