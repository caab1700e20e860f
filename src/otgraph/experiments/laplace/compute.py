r"""Graphs of random points on a manifold, and their distance from an operator of known spectrum.

All graphs are compared at the same mean square step (see :mod:`.manifolds`), which shrinks with
growing n such that the radius of the quadratic OT graph is :math:`\propto n^{-1/(d+4)}`. Then the
bias, of the order of the radius squared, and the scatter of a random sample fall at the same
rate :math:`n^{-2/(d+4)}`, degrees grow like :math:`n^{4/(d+4)}`, and eps grows like
:math:`n^{2/(d+4)}`. For comparison eps is also held fixed; then the radius is
:math:`\propto n^{-1/(d+2)}` and degrees grow like :math:`n^{2/(d+2)}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

import otgraph
from otgraph.experiments._framework.style import ENTROPIC, HOLLOW, KNN
from otgraph.experiments.laplace.manifolds import MANIFOLDS, mode_values, modes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from otgraph.experiments._framework import Task
    from otgraph.experiments._framework.experiment import Row
    from otgraph.experiments.laplace.manifolds import Manifold
    from otgraph.typing import FloatArray, SparseMatrix

FIXED = "quadratic OT, hollow, fixed eps"
CORRECTED = "quadratic OT, density divided out"

EVEN, UNEVEN = "even", "uneven"
EIGENVALUES = "eigenvalue error"
EIGENFUNCTIONS = "eigenfunction error"
OWN_EIGENVALUES = "eigenvalue error, own limit"
OWN_EIGENFUNCTIONS = "eigenfunction error, own limit"
STEP_RATIO = "first eigenvalue over theory"
DEGREE = "mean degree"

REFERENCE_N = 500  # where `degree` holds
# Sampling scatters eigenvectors by percents; more digits would be of no use.
EIGENVECTOR_TOL = 1e-8
# Of rows that sum to one: thousands of these are below that tolerance. Most pairs are.
NEGLIGIBLE_WEIGHT = 1e-13


@dataclass(frozen=True)
class Parameters:
    """Sizes; `degree` is that of quadratic OT on 500 even points, `dense_n` ends entropic OT."""

    n: tuple[int, ...] = (500, 1000, 2000, 4000, 8000)
    dense_n: int = 4000
    manifolds: tuple[str, ...] = tuple(MANIFOLDS)
    degree: float = 30.0
    concentration: float = 0.5


QUICK = Parameters(n=(250, 500, 1000), dense_n=500)


def methods(parameters: Parameters, variant: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The largest graphs first: they take longest."""
    for n in sorted(parameters.n, reverse=True):
        for manifold in parameters.manifolds:
            for density in (EVEN, UNEVEN):
                at = {"manifold": manifold, "density": density, "n": n}
                if n <= parameters.dense_n:
                    yield ENTROPIC, at
                for method in (HOLLOW, CORRECTED, KNN):
                    yield method, at
                if density == EVEN:
                    yield FIXED, at


def run(task: Task, parameters: Parameters) -> Iterator[Row]:
    """Errors against Laplace-Beltrami and, if that differs, against the method's own limit."""
    name, n = task.params["manifold"], task.params["n"]
    manifold = MANIFOLDS[name]
    kappa = 0.0 if task.params["density"] == EVEN else parameters.concentration
    sample = manifold.sample(n, concentration=kappa, random_state=task.seed)
    angles = sample.t
    assert angles is not None  # manifolds have coordinates
    radius = support_radius(manifold, n, parameters, fixed_eps=task.method == FIXED)
    weights = graph(task.method, sample.X, manifold, radius)
    embedding = otgraph.eigenmaps(weights, manifold.n_modes, tol=EIGENVECTOR_TOL)
    steps = 1 - embedding.eigenvalues

    def errors(kappa: float, q: float) -> tuple[float, float, float]:
        leading = modes(name, kappa, q)
        eigenvalues = np.array([mode.eigenvalue for mode in leading])
        step, error = fitted_step(steps, eigenvalues, manifold.n_first)
        functions = mode_values(name, leading, angles)
        return step, error, otgraph.subspace_angle(embedding, functions)

    step, of_values, of_functions = errors(0.0, 0.0)
    yield {"score": EIGENVALUES, "value": of_values}
    yield {"score": EIGENFUNCTIONS, "value": of_functions}
    if kappa and task.method != CORRECTED:  # that one should divide the density out
        _, of_values, of_functions = errors(kappa, density_exponent(task.method, manifold.dim))
        yield {"score": OWN_EIGENVALUES, "value": of_values}
        yield {"score": OWN_EIGENFUNCTIONS, "value": of_functions}
    if not kappa and task.method != CORRECTED:  # whose step is arbitrary
        yield {"score": STEP_RATIO, "value": step / manifold.step(radius)}
    yield {"score": DEGREE, "value": np.diff(weights.indptr).mean()}


def support_radius(
    manifold: Manifold, n: int, parameters: Parameters, *, fixed_eps: bool = False
) -> float:
    """Radius of the quadratic OT graph on an even sample of n points."""
    start = manifold.radius_of_degree(parameters.degree, REFERENCE_N)
    exponent = manifold.dim + (2 if fixed_eps else 4)
    return float(start * (n / REFERENCE_N) ** (-1 / exponent))


def graph(method: str, X: FloatArray, manifold: Manifold, radius: float) -> SparseMatrix:
    """Weights of a graph with the mean square step of the quadratic OT graph of that radius."""
    n = len(X)
    if method == ENTROPIC:
        eps = manifold.entropic_eps(radius)
        weights = otgraph.entropic_ot_graph(X, eps, normalize=False, n_jobs=1).weights
        weights.data[weights.data < NEGLIGIBLE_WEIGHT] = 0.0
        weights.eliminate_zeros()
        return weights
    if method == KNN:
        k = manifold.neighbors(radius, n)
        return otgraph.knn_gaussian_graph(X, k, symmetrize="average", n_jobs=1).weights
    eps = manifold.quadratic_eps(radius, n)
    quadratic = otgraph.quadratic_ot_graph(X, eps, normalize=False, n_jobs=1)
    return corrected(quadratic, manifold.dim) if method == CORRECTED else quadratic.weights


def corrected(quadratic: otgraph.Graph, dim: int) -> SparseMatrix:
    r"""Weights from which the density is divided out with the help of the potentials.

    The potential is half the squared radius, hence :math:`\rho \propto u^{-(d+2)/2}`. With
    :math:`V_{ij} = \pi_{ij} (u_i u_j)^{d/4}` the sum :math:`\sum_j V_{ij} (f_i - f_j)` tends to
    :math:`-\rho^{-1} \Delta f`. Loops give the rows sums proportional to :math:`\rho^{-1}`, by
    which the random walk divides.
    """
    u = quadratic.potentials
    assert u is not None  # transport graphs have them
    factor = sp.diags(u ** (dim / 4))
    weights = factor @ quadratic.weights @ factor
    sums = np.asarray(weights.sum(axis=1)).ravel()
    wanted = u ** ((dim + 2) / 2)
    loops = np.maximum(wanted * (sums / wanted).max() - sums, 0.0)  # one is zero up to rounding
    return (weights + sp.diags(loops)).tocsr()


def density_exponent(method: str, dim: int) -> float:
    """The q of the limit operator."""
    return {HOLLOW: 2 / (dim + 2), KNN: 2 / dim, ENTROPIC: 0.0}[method]


def fitted_step(steps: FloatArray, eigenvalues: FloatArray, n_first: int) -> tuple[float, float]:
    """Ratio 1 - λ : eigenvalue by the first group, and the mean relative error of the others."""
    step = steps[:n_first].mean() / eigenvalues[:n_first].mean()
    return float(step), float(np.abs(steps[n_first:] / step / eigenvalues[n_first:] - 1).mean())
