"""Leading eigenpairs of a random walk in its symmetric form, without the known first one.

One of three methods is chosen by the size and the shape of the graph:

* up to a few hundred points, LAPACK on the dense matrix;
* Lanczos on the matrix itself. The number of products grows like (1 - λ)^(-1/2): hundreds for
  graphs of high dimension, tens of thousands for long thin ones, which mix slowly;
* Lanczos on the inverse for points along a curve, which needs only tens of solves. Such points can
  be numbered so that all edges lie in a narrow band. The band has an exact factor of the same
  width, so its size is known in advance.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.linalg
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from otgraph.graphs.products import Threaded, threaded

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import FloatArray, IntArray, Keywords, SparseMatrix

# Up to this many points LAPACK is faster than Lanczos, and it needs no start vector.
DENSE_LIMIT = 500
# Multiple of the projection on the known vector that is added to the matrix. It moves the known
# eigenvalue from 1 to -2, below all others, which lie in [-1, 1].
DEFLATION = 3.0
# Number of Lanczos vectors. More need fewer products, but each product is made orthogonal to all of
# them. Of 24, 30, 40 and 60 vectors, 30 were fastest for a million points in 50 dimensions (48, 39,
# 44, 55 s), and of 30, 40 and 60 40 for 40,000 points in 2 dimensions (2.6, 2.4, 2.9 s), where
# eigenvalues are close to 1 and to each other.
LANCZOS_VECTORS = 40
LANCZOS_PER_EIGENVECTOR = 3
# Least number of eigenvectors to compute, because they are kept in restarts: 10 eigenvectors of a
# noisy spiral of 10^4 points took a fifth of the products that 2 took.
MIN_REQUESTED = 10
START_SEED = 0

# Limits for the band: numbers in it (270 MB), and multiplications to factorize it (a few seconds).
BAND_ENTRIES = 1 << 25
BAND_PRODUCTS = 1e10
# Shift that keeps the band positive definite; far below any 1 - λ that is not rounding error.
SHIFT = 1e-10


class Eigenpairs(NamedTuple):
    """Eigenvalues and normalized eigenvectors as columns, in any order; those that converged."""

    values: FloatArray
    vectors: FloatArray


def leading_eigenpairs(
    S: SparseMatrix, known: FloatArray, k: int, *, tol: float, max_restarts: int
) -> Eigenpairs:
    """The k largest eigenvalues of symmetric S in [-1, 1], without the known eigenvector."""
    n = S.shape[0]
    if n <= DENSE_LIMIT or k + 1 >= n:
        dense = S.toarray() - DEFLATION * np.outer(known, known)
        return _dense(dense, k)
    order = reverse_cuthill_mckee(S, symmetric_mode=True)
    solve = _band_solver(S, order)
    if solve is None:
        matrix = threaded(S, order)
        if not isinstance(matrix, Threaded) or matrix.order is None:
            return lanczos(lambda x: matrix @ x, known, k, tol=tol, max_restarts=max_restarts)
        found = lanczos(matrix.inside, known[order], k, tol=tol, max_restarts=max_restarts)
        vectors = np.empty_like(found.vectors)
        vectors[order] = found.vectors
        return Eigenpairs(found.values, vectors)
    inverse = lanczos(solve, known, k, tol=tol, max_restarts=max_restarts)
    return Eigenpairs(1.0 + SHIFT - 1.0 / inverse.values, inverse.vectors)


def _dense(S: FloatArray, k: int) -> Eigenpairs:
    n = len(S)
    try:
        return Eigenpairs(*scipy.linalg.eigh(S, subset_by_index=[n - k, n - 1]))
    except np.linalg.LinAlgError:  # LAPACK's fast driver fails on some clusters of eigenvalues
        values, vectors = scipy.linalg.eigh(S, driver="evd")
        return Eigenpairs(values[n - k :], vectors[:, n - k :])


def lanczos(
    product: Callable[[FloatArray], FloatArray],
    known: FloatArray,
    k: int,
    *,
    tol: float,
    max_restarts: int,
) -> Eigenpairs:
    """The k largest eigenvalues of a symmetric matrix, as `leading_eigenpairs`."""
    n = len(known)

    def deflated(x: FloatArray) -> FloatArray:
        x = x.ravel()
        overlap = float(known @ x)
        y = product(x - overlap * known)
        # Removes rounding errors along the known vector, and moves its eigenvalue to the bottom.
        return np.asarray(y - (float(known @ y) + (DEFLATION - 1.0) * overlap) * known)

    requested = min(max(k, MIN_REQUESTED), n - 2)
    options: Keywords = {
        "which": "LA",
        "v0": np.random.default_rng(START_SEED).standard_normal(n),
        "ncv": min(n - 1, max(LANCZOS_VECTORS, LANCZOS_PER_EIGENVECTOR * requested)),
        "tol": tol,
        "maxiter": max_restarts,
    }
    if "rng" in inspect.signature(eigsh).parameters:
        # Newer versions of scipy draw a random vector if they find an invariant subspace.
        options["rng"] = np.random.default_rng(START_SEED)
    operator = LinearOperator((n, n), matvec=deflated, dtype=np.float64)
    try:
        return Eigenpairs(*eigsh(operator, requested, **options))
    except ArpackNoConvergence as failure:
        return Eigenpairs(failure.eigenvalues, failure.eigenvectors)


def _band_solver(S: SparseMatrix, order: IntArray) -> Callable[[FloatArray], FloatArray] | None:
    """Solutions x of ((1 + shift) I - S) x = b, if S fits into a narrow band in an order."""
    n = S.shape[0]
    place = np.empty(n, dtype=S.indices.dtype)
    place[order] = np.arange(n)
    rows, columns = np.repeat(place, np.diff(S.indptr)), place[S.indices]
    width = int(np.abs(rows - columns).max(initial=0))
    if n * (width + 1) > BAND_ENTRIES or n * width**2 > BAND_PRODUCTS:
        return None
    lower = rows >= columns
    band = np.zeros((width + 1, n))
    band[(rows - columns)[lower], columns[lower]] = -S.data[lower]
    band[0] += 1.0 + SHIFT
    try:
        factor = scipy.linalg.cholesky_banded(
            band, lower=True, overwrite_ab=True, check_finite=False
        )
    except np.linalg.LinAlgError:  # not solvable in double precision: mixing takes 10^15 steps
        return None

    def solve(b: FloatArray) -> FloatArray:
        x = scipy.linalg.cho_solve_banded((factor, True), b[order], check_finite=False)
        return np.asarray(x[place])

    return solve
