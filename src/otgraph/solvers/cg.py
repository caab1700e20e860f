"""Preconditioned conjugate gradients for the Newton systems."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._kernels import cg as kernels
from otgraph._parallel import row_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from otgraph.costs.branches import Branches
    from otgraph.costs.coarse import Multilevel
    from otgraph.solvers.passes import System
    from otgraph.typing import FloatArray

    Run = Callable[[Callable[[int], None], Iterable[int]], None]

# Products after which a preconditioner is made, where there is one. Making it takes as long as some
# twenty products, and most systems need fewer than these. The systems that follow are alike.
PLAIN_PRODUCTS = 40


def solve(
    system: System,
    rhs: FloatArray,
    *,
    rtol: float,
    max_products: int,
    weights: FloatArray,
) -> tuple[FloatArray, int]:
    """Solve a system, with its better preconditioner, if it has one, where it takes long."""
    product, multilevel = system.product, system.multilevel
    most = max_products if multilevel is None else PLAIN_PRODUCTS
    x, count = conjugate_gradients(
        product, system.diagonal, rhs, rtol=rtol, max_products=most, weights=weights
    )
    if count < most or multilevel is None:
        return x, count
    x, more = flexible_gradients(
        product, multilevel, rhs, x,
        rtol=rtol, max_products=max_products - count, weights=weights,
    )  # fmt: skip
    return x, count + more


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    diagonal: FloatArray,
    rhs: FloatArray,
    *,
    rtol: float,
    max_products: int,
    weights: FloatArray | None = None,
    branches: Branches | None = None,
    run: Run | None = None,
) -> tuple[FloatArray, int]:
    """Solve A x = rhs to a relative residual, with the diagonal of A as preconditioner.

    ``branches`` of A are taken out: their equations hold from the beginning, and each direction
    keeps them so. The diagonal is then that of the system for the other rows.

    ``weights`` are those of the squared residuals (`residual_weights`). Without them, a row that is
    a million times smaller than the others would not be solved at all. ``run`` calls a function for
    several items, in threads if there are any; vectors of a million points take half as long as
    products.

    A may be singular, as it is for a bipartite component. If the right-hand side is in the
    range of A, so are the iterates. A direction without curvature ends the iteration.
    Returns the solution and the number of products.
    """
    weights = np.ones_like(rhs) if weights is None else weights
    preconditioner = 1.0 / (diagonal if branches is None else branches.diagonal)
    residual, z, p = np.empty((3, len(rhs)))
    residual[:] = rhs
    x = np.zeros_like(rhs)
    vectors = _Vectors(row_blocks(len(rhs), kernels.SUM_ROWS), run)
    rz, rr = vectors.sums(kernels.start_cg, residual, preconditioner, weights, z)
    goal = rtol * rtol * rr
    if branches is not None:
        kernels.solve_branches(*branches.arrays, x, residual)
        _, rr = vectors.sums(kernels.start_cg, residual, preconditioner, weights, z)
        kernels.with_branches(*branches.arrays, z)
        rz = vectors.sums(kernels.dot, residual, z)[0]
    p[:] = z
    for count in range(max_products):
        if rr <= goal:
            return x, count
        q = product(p)
        curvature = vectors.sums(kernels.dot, p, q)[0]
        if curvature <= 0.0:
            return x, count + 1
        previous = rz
        advance = partial(kernels.advance_cg, previous / curvature)
        rz, rr = vectors.sums(advance, p, q, preconditioner, weights, x, residual, z)
        if branches is not None:
            kernels.with_branches(*branches.arrays, z)
            rz = vectors.sums(kernels.dot, residual, z)[0]
        vectors.sums(partial(kernels.next_direction, rz / previous), z, p)
    return x, max_products


class _Vectors:
    """Updates of vectors in blocks, which threads may share; sums are those of the blocks."""

    def __init__(self, blocks: list[tuple[int, int]], run: Run | None) -> None:
        self._blocks, self._run = blocks, run

    def sums(self, kernel: Callable[..., Any], *vectors: FloatArray) -> FloatArray:
        """Call a kernel for the same block of all vectors, and add up what it returns, in order."""
        if len(self._blocks) == 1:
            return np.atleast_1d(kernel(*vectors))
        found: list[Any] = [None] * len(self._blocks)

        def update(place: int) -> None:
            here = slice(*self._blocks[place])
            found[place] = kernel(*(vector[here] for vector in vectors))

        if self._run is None:
            for place in range(len(found)):
                update(place)
        else:
            self._run(update, range(len(found)))
        if found[0] is None:  # nothing to add up
            return np.empty(0)
        return np.atleast_1d(reduce(np.add, found, np.zeros(np.shape(found[0]))))


def flexible_gradients(
    product: Callable[[FloatArray], FloatArray],
    precondition: Multilevel,
    rhs: FloatArray,
    x: FloatArray,
    *,
    rtol: float,
    max_products: int,
    weights: FloatArray,
) -> tuple[FloatArray, int]:
    """Go on from ``x`` with another preconditioner, which need not be quite linear.

    Directions are made conjugate to the last one by a formula that does not assume the same of the
    preconditioner. Returns the solution and the number of products, those of the preconditioner
    included.
    """
    goal = rtol * rtol * float((weights * rhs * rhs).sum())
    residual = rhs - product(x)
    count = 1
    p, q, rz, step = np.zeros_like(rhs), np.zeros_like(rhs), 1.0, 0.0
    while count < max_products and float((weights * residual * residual).sum()) > goal:
        z = precondition(residual)
        kernels.next_direction(-step * kernels.dot(z, q) / rz, z, p)
        q = product(p)
        count += 1 + precondition.n_products
        rz, curvature = kernels.dot(z, residual), kernels.dot(p, q)
        if curvature <= 0.0 or rz <= 0.0:
            break
        step = rz / curvature
        x = x + step * p
        residual -= step * q
    return x, count


def residual_weights(units: FloatArray) -> FloatArray:
    """Weights of squared residuals that are measured in units of the rows."""
    return np.asarray(np.square(units.max() / units))
