"""Labels of a few points, spread over the graph: learning with local and global consistency.

The minimizer of Σ W_ij |Q_i - Q_j|² + μ Σ |Q_i - P_i|² solves

    (D - M + μ I) Q = μ P,    M = W + Wᵀ,  D = diag(M 1).

The matrix is symmetric, its row sums are μ, and no entry off the diagonal is positive. Its inverse
A is therefore non-negative, with rows that sum to 1/μ. This has two consequences. First, an
approximation with residual R has an error of at most max|R|/μ in every entry, a proven bound.
Second, Q decreases geometrically away from the labels. A point twenty steps from the nearest label
may have 10^-9 of the mass of a labeled point, and at forty steps only rounding errors are left.

The result is the *proportion* of the classes at every point, however small their sum. The system is
therefore solved in rounds. Each round decides the points whose sum is large compared with the
error. The others are solved again, with the decided points fixed and everything scaled up to size
one. One round is usual. No point that a label reaches is left to rounding errors.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph._labels import decode_labels, encode_labels
from otgraph._validation import check_count, check_positive
from otgraph.exceptions import ConvergenceWarning, DisconnectedWarning
from otgraph.graphs._canonical import entry_rows
from otgraph.methods._block_cg import Stop, solve_columns
from otgraph.methods._graphs import as_product_graph, spreading_matrix, transition_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph._labels import EncodedLabels
    from otgraph.graphs import Graph
    from otgraph.methods._graphs import SquareOperator
    from otgraph.typing import (
        Array,
        BoolArray,
        FloatArray,
        HasComponents,
        PointsLike,
        ProductGraph,
        SparseMatrix,
    )

# A round decides the points with at least this share of the largest sum. Smaller values mean fewer
# rounds, but errors must be smaller still, and double precision limits them.
DECIDED_SHARE = 1e-6
# Share of the tolerance for one round, because errors of rounds add up. This is enough for a
# hundred rounds, or a thousand steps from the nearest label.
TOLERANCE_SHARE = 1e-2


@dataclass(frozen=True, eq=False)
class LabelSpread:
    """Labels of all points, with probabilities.

    Attributes
    ----------
    labels
        Most probable class of every point. Unreachable points keep the mark of unknown labels:
        -1, or None among strings and objects.
    probabilities
        One row per point that sums to one, one column per class; uniform where no label reaches.
    classes
        The classes in sorted order.
    unreachable
        Mask of the points that no label reaches, among them outliers that the graph has dropped.
    log_mass
        Logarithm of the sum over the classes before rows were scaled to one. It is small far from
        labels, and ``-inf`` where no label reaches.
    n_iter
        Number of products of the graph with all classes at once.
    error
        Proven bound of the error of a probability due to the iteration.

    Examples
    --------
    >>> import otgraph
    >>> graph = otgraph.quadratic_ot_graph([[0.0], [1.0], [3.0], [4.0]], eps=0.5)
    >>> spread = otgraph.spread_labels(graph, ["left", None, None, "right"])
    >>> spread.labels.tolist()
    ['left', 'left', 'right', 'right']
    """

    labels: Array
    probabilities: FloatArray
    classes: Array
    unreachable: BoolArray
    log_mass: FloatArray
    n_iter: int
    error: float

    def extend(self, rows: PointsLike) -> LabelSpread:
        """Labels of new points from their rows, such as ``graph.extend(X_new)``.

        A new point gets the mean of its neighbors, weighted by its row: the minimizer of the
        same objective with all others held fixed.

        Parameters
        ----------
        rows
            Weights of the new points, one column for each point of the graph.
        """
        P, _ = transition_rows(rows, len(self.probabilities))
        row_of = entry_rows(P)
        mass = self.log_mass[P.indices]
        strongest = np.full(P.shape[0], -np.inf)
        np.maximum.at(strongest, row_of, mass)
        reached = np.isfinite(strongest)
        # Relative to the largest neighbor of each row, because masses may be far below 1e-300.
        with np.errstate(invalid="ignore", under="ignore"):
            P.data *= np.where(reached[row_of], np.exp(mass - strongest[row_of]), 0.0)
        Q = np.asarray(P @ self.probabilities)
        with np.errstate(divide="ignore"):
            log_mass = np.where(reached, np.log(Q.sum(axis=1)) + strongest, -np.inf)
        _warn_of_unreached(reached, "new point(s)")
        return _result(self.classes, _Solution(Q, log_mass, 0, self.error))


def spread_labels(
    graph: Graph | SparseMatrix | ProductGraph,
    labels: ArrayLike,
    mu: float = 1.0,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000,
) -> LabelSpread:
    r"""Labels for all points from a few known ones, with probabilities.

    Learning with local and global consistency (Zhou et al. 2004), in the form of Matsumoto et
    al. (2022), section 3.2:

    .. math:: \min_Q \sum_{ij} W_{ij} \lVert Q_i - Q_j \rVert^2
              + \mu \sum_i \lVert Q_i - P_i \rVert^2,

    where W is the random walk on the graph (rows sum to one) and P has a one for each known
    label. The sum is over ordered pairs. For doubly stochastic W the solution satisfies
    :math:`(2 (I - W) + \mu I) Q = \mu P`.

    Parameters
    ----------
    graph
        A Graph, a :class:`~otgraph.distributed.DistributedGraph`, or any symmetric scipy sparse
        matrix of weights.
    labels
        One label per point; -1 means unknown. Strings go into an array of dtype object, with -1
        or None for unknown.
    mu
        Weight of the known labels. With small values labels spread far, and a known label can be
        outvoted by its neighbors. On doubly stochastic W it corresponds to α = 2/(2 + mu) of Zhou
        et al., the share of a point's label that comes from its neighbors: 2/3 for the default.
        The paper names no mu; its authors' scripts take α = 1/2, which is ``mu=2``.
    tol
        Largest error of a probability.
    max_iter
        Limit of iterations. Twenty to fifty are usual for ``mu=1``; their number grows like
        ``mu ** -0.5``.

    Returns
    -------
    LabelSpread

    Examples
    --------
    >>> import otgraph
    >>> path = otgraph.knn_gaussian_graph([[0.0], [1.0], [2.1], [3.0], [4.0]], n_neighbors=1)
    >>> otgraph.spread_labels(path, [0, -1, -1, -1, 1]).labels
    array([0, 0, 1, 1, 1])
    """
    graph = as_product_graph(graph)
    mu, tol = check_positive(mu, "mu"), check_positive(tol, "tol")
    max_iter = check_count(max_iter, "max_iter")
    encoded = encode_labels(labels, graph.n)
    reached = _reached(graph, encoded)
    A = spreading_matrix(graph, mu)
    with single_threaded_blas():  # the same result for any number of threads
        solution = _solve(A, encoded.one_hot(), reached, mu, tol, max_iter)
    _warn_of_unreached(reached, "point(s)")
    if solution.error > tol:
        msg = (
            f"Probabilities may be off by up to {solution.error:.1e} after {solution.n_iter} "
            f"iterations (`tol` is {tol:.1e}). Raise `max_iter`, or raise `mu`."
        )
        warnings.warn(msg, ConvergenceWarning, stacklevel=2)
    return _result(encoded.classes, solution)


def _reached(graph: HasComponents, encoded: EncodedLabels) -> BoolArray:
    """Points whose component holds a label."""
    labeled = np.zeros(graph.n_connected, dtype=bool)
    labeled[graph.component_labels[encoded.codes >= 0]] = True
    return labeled[graph.component_labels]


class _Solution(NamedTuple):
    Q: FloatArray  # rows proportional to the solution
    log_mass: FloatArray  # logarithm of their sums
    n_iter: int
    error: float


def _solve(
    A: SquareOperator, P: FloatArray, reached: BoolArray, mu: float, tol: float, max_iter: int
) -> _Solution:
    """Solve in rounds over fewer and fewer points; see the top of this file."""
    Q = np.zeros_like(P)
    log_mass = np.full(len(P), -np.inf)
    todo = np.flatnonzero(reached)
    source = mu * P[todo]
    if not reached.all():  # a copy of a large matrix takes longer than some of its products
        A = A[todo][:, todo]
    stop = Stop(rtol=TOLERANCE_SHARE * tol * mu, span=DECIDED_SHARE)
    log_scale, n_iter, error = 0.0, 0, 0.0
    while len(todo) and n_iter < max_iter:
        size = float(source.max())
        if size == 0.0:
            break  # weights that underflow count as no edge
        log_scale += np.log(size)
        source /= size
        X, residual, used = solve_columns(A, source, stop, max_products=max_iter - n_iter)
        n_iter += used
        np.maximum(X, 0.0, out=X)
        sums = X.sum(axis=1)
        near = sums >= DECIDED_SHARE * sums.max()
        error += residual / mu / float(sums[near].min())
        Q[todo[near]] = X[near] / sums[near, None]
        log_mass[todo[near]] = np.log(sums[near]) + log_scale
        far = ~near
        if not far.any():
            todo = todo[far]
            break
        source = source[far] - A[far][:, near] @ X[near]
        A, todo = A[far][:, far], todo[far]
    return _Solution(
        Q, log_mass, n_iter, 1.0 if n_iter >= max_iter and len(todo) else min(error, 1.0)
    )


def _result(classes: Array, solution: _Solution) -> LabelSpread:
    """Probabilities and labels; uniform where no label reaches."""
    Q, log_mass, n_iter, error = solution
    unreachable = np.isneginf(log_mass)
    probabilities = np.full(Q.shape, 1.0 / len(classes))
    np.divide(Q, Q.sum(axis=1, keepdims=True), out=probabilities, where=~unreachable[:, None])
    labels = decode_labels(classes, probabilities.argmax(axis=1), unreachable)
    return LabelSpread(labels, probabilities, classes, unreachable, log_mass, n_iter, error)


def _warn_of_unreached(reached: BoolArray, what: str) -> None:
    if not reached.all():
        msg = (
            f"No label reaches {int(np.count_nonzero(~reached))} of {len(reached)} {what}; their "
            "probabilities are uniform. Label a point in each connected component, or build "
            "the graph with `connect=True`."
        )
        warnings.warn(msg, DisconnectedWarning, stacklevel=3)
