"""Entropic optimal transport graphs: a weight between all pairs, rows that sum to the mass."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import xlog1py
from tqdm import tqdm

from otgraph._blas import single_threaded_blas
from otgraph._parallel import Workers, cache_blocks
from otgraph._validation import check_mass, check_positive
from otgraph.costs import check_input, direct_cost, kept_points
from otgraph.costs.direct import fill_symmetric
from otgraph.exceptions import ConvergenceError, ConvergenceWarning
from otgraph.graphs._canonical import csr_from_dense, plain_params, require_dense_memory
from otgraph.graphs.extension import transport_rows
from otgraph.graphs.graph import TransportGraph
from otgraph.graphs.options import EntropicOptions
from otgraph.solvers.certificate import Certificate, Reason, Status
from otgraph.solvers.cg import conjugate_gradients
from otgraph.solvers.sinkhorn import symmetric_sinkhorn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.graphs.options import OnFailure
    from otgraph.solvers.sinkhorn import Sinkhorn
    from otgraph.typing import FloatArray, Metric, PointsLike, SparseMatrix

# Relative error of the marginals up to which the plan behind the duality gap counts as feasible.
FEASIBLE = 1e-10
GAP_PRODUCTS = 300


def entropic_ot_graph(
    X: PointsLike,
    eps: float = 1.0,
    *,
    metric: Metric = EntropicOptions.metric,
    power: float = EntropicOptions.power,
    normalize: bool = EntropicOptions.normalize,
    mass: ArrayLike | None = None,
    self_loops: bool = EntropicOptions.self_loops,
    tol: float = EntropicOptions.tol,
    max_iter: int = EntropicOptions.max_iter,
    on_failure: OnFailure = EntropicOptions.on_failure,
    progress: bool = False,
    n_jobs: int | None = -1,
) -> TransportGraph:
    r"""Dense symmetric graph whose rows sum to the mass: the entropic optimal transport plan.

    The plan of smallest cost plus negative entropy,

    .. math:: \min_{\pi = \pi^\top,\ \pi 1 = m} \sum_{ij} c_{ij} \pi_{ij}
              + \varepsilon \sum_{ij} \pi_{ij} (\log \pi_{ij} - 1),
              \qquad \pi_{ij} = e^{(u_i + u_j - c_{ij})/\varepsilon},

    is a Gaussian kernel scaled to the wanted row sums (Landa, Coifman and Kluger 2021). Every
    pair has a positive weight, so memory grows with n². Weights that underflow to zero are not
    stored. `eps` is ``reg`` in POT.

    Parameters
    ----------
    X
        Points, dense or sparse, or the dense cost matrix with ``metric="precomputed"``.
    eps
        Larger values spread weight over more distant points.
    metric, power, normalize, mass, tol, on_failure, progress, n_jobs
        As in :func:`otgraph.quadratic_ot_graph`.
    self_loops
        Let points keep mass at cost zero. The smaller `eps`, the more mass they keep.
    max_iter
        Limit of passes over all pairs. About thirty are usual; small `eps` without self-loops
        takes a few hundred.

    Returns
    -------
    TransportGraph with certificate and potentials. The duality gap is ``inf`` if `eps` is so
    small that no plan with the exact marginals was found.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> graph = otgraph.entropic_ot_graph(X, eps=0.5)
    >>> bool(abs(graph.weights.sum(axis=1) - 1).max() < 1e-6)
    True
    >>> graph.certificate.status == "exact"
    True
    """
    eps = check_positive(eps, "eps")
    options = EntropicOptions(
        metric=metric, power=power, normalize=normalize, self_loops=self_loops, tol=tol,
        max_iter=max_iter, on_failure=on_failure,
    )  # fmt: skip
    checked = check_input(X, metric, candidates=False)
    masses = check_mass(mass, checked.shape[0], self_loops=self_loops)
    require_dense_memory(checked.shape[0])
    workers = Workers(n_jobs, progress=progress)
    try:
        cost = direct_cost(checked, **options.cost(), workers=workers)
        matrix = cost.matrix()
        if not self_loops:
            np.fill_diagonal(matrix, np.inf)
        stages: dict[float, list[float]] = {}
        # Even a disabled bar takes a lock, which a process forked meanwhile would wait for.
        with tqdm(desc="sinkhorn", leave=False) if progress else nullcontext() as bar:

            def report(eps: float, error: float) -> None:
                stages.setdefault(eps, []).append(error)
                if bar is not None:
                    text = f"eps {eps:.3g}, marginal error {error:.1e}"
                    bar.set_postfix_str(text, refresh=False)
                    bar.update()

            solution = symmetric_sinkhorn(
                matrix, masses, eps, tol=tol, max_iter=max_iter, workers=workers, report=report
            )
        certificate = replace(
            _plan_and_certificate(matrix, solution, masses, eps, tol, workers),
            history=tuple(map(tuple, stages.values())),
        )
    finally:
        workers.close()
    if certificate.status is Status.NOT_CONVERGED:
        _complain(certificate, tol, on_failure)
    params = {"method": "entropic", **options.record(), "eps": eps, "scale": cost.scale}
    return TransportGraph(
        weights=csr_from_dense(matrix),
        params=plain_params(params),
        certificate=certificate,
        potentials=solution.u,
        mass=masses,
        points=kept_points(X, checked, metric),
    )


def _plan_and_certificate(
    matrix: FloatArray,
    solution: Sinkhorn,
    mass: FloatArray,
    eps: float,
    tol: float,
    workers: Workers,
) -> Certificate:
    """Turn the cost matrix into the plan, in place; returns the certificate."""
    n, u = len(mass), solution.u
    loops = bool(np.isfinite(matrix[0, 0]))

    def to_plan(block: FloatArray, a: int, b: int) -> None:
        np.subtract(u[a:b, None] + u[a:], block, out=block)
        block /= eps
        with np.errstate(over="ignore", under="ignore"):
            np.exp(block, out=block)

    fill_symmetric(matrix, to_plan, workers)
    sums = matrix.sum(axis=1)
    error = float(np.abs(sums / mass - 1.0).max())
    gap = _relative_gap(matrix, sums, mass, u, eps, workers)
    reason = Reason.NONE if np.isfinite(gap) else Reason.NO_FEASIBLE_PLAN
    if error > tol:
        reason = Reason.OUT_OF_STEPS
    return Certificate(
        status=Status.NOT_CONVERGED if reason else Status.EXACT,
        marginal_error=error,
        duality_gap=gap,
        pairs_checked=n * (n - 1) // 2 + (n if loops else 0),
        violations=0,  # every pair has a weight, so none can be missing
        n_steps=solution.n_steps,
        eps=eps,
        n_edges=n * (n - 1) // 2,
        reason=reason,
    )


def _relative_gap(
    plan: FloatArray,
    sums: FloatArray,
    mass: FloatArray,
    u: FloatArray,
    eps: float,
    workers: Workers,
) -> float:
    """Primal value of a plan with the exact marginals minus the dual value of u, relative.

    That plan is π_ij (1 + δ_ij), δ_ij = d_i + d_j, with (diag(π1) + π) d = m − π1. It costs
    2⟨u, m⟩ + ε Σ π (1 + δ)(log(1 + δ) − 1), so the gap is ε Σ π ((1 + δ) log(1 + δ) − δ), a
    formula without cancellation. The primal value may be negative because of the entropy. The gap
    is therefore relative to transport cost + ε · (total mass), which is positive.
    """
    n = len(mass)
    blocks = cache_blocks(n, n)

    def product(v: FloatArray) -> FloatArray:
        out = np.empty(n)

        def fill(rows: tuple[int, int]) -> None:
            out[rows[0] : rows[1]] = plan[rows[0] : rows[1]] @ v

        workers.run(fill, blocks)
        return sums * v + out

    missing = mass - sums
    with single_threaded_blas(), np.errstate(all="ignore"):
        rtol = 0.1 * FEASIBLE * float(mass.min() / np.linalg.norm(missing))
        d, _ = conjugate_gradients(
            product, sums + plan.diagonal(), missing, rtol=rtol, max_products=GAP_PRODUCTS
        )

    def terms(rows: tuple[int, int]) -> tuple[float, float, float]:
        a, b = rows
        block = plan[a:b]
        delta = np.maximum(d[a:b, None] + d, -1.0)  # weights must not be negative
        corrected = (block * (1.0 + delta)).sum(axis=1)
        leftover = float(np.abs(corrected / mass[a:b] - 1.0).max())
        gap = float((block * (xlog1py(1.0 + delta, delta) - delta)).sum())
        log_plan = np.log(block, out=np.zeros_like(block), where=block > 0.0)
        cost = float((block * (u[a:b, None] + u - eps * log_plan)).sum())
        return leftover, gap, cost

    leftovers, gaps, transport = np.transpose(list(workers.map(terms, blocks)))
    if not leftovers.max() <= FEASIBLE:
        return float("inf")  # marginals are not exact, so the gap is unknown
    return float(eps * gaps.sum() / (transport.sum() + eps * mass.sum()))


def _complain(certificate: Certificate, tol: float, on_failure: str) -> None:
    if certificate.reason is Reason.NO_FEASIBLE_PLAN:
        msg = f"The plan is not proved optimal: {certificate.reason}."
    else:
        msg = (
            f"Row sums are off by {certificate.marginal_error:.2g} after {certificate.n_steps} "
            f"passes, more than `tol`={tol:g}. A larger `eps` converges faster; otherwise raise "
            "`max_iter` or `tol`."
        )
    if on_failure == "raise":
        raise ConvergenceError(msg)
    warnings.warn(msg, ConvergenceWarning, stacklevel=3)


def entropic_rows(
    graph: TransportGraph, X_new: PointsLike, mass: ArrayLike | None, metric: Metric | None
) -> SparseMatrix:
    """Rows of new points: π*_j = exp((u* + u_j − c*_j) / ε), with the u* that gives the mass."""
    return transport_rows(graph, X_new, mass, metric, partial(_fill, eps=graph.eps))


def _fill(excess: FloatArray, mass: FloatArray, lowest: FloatArray, eps: float) -> None:
    """Replace t_j ≥ 0, smallest 0, by weights like exp(−t_j/ε) that sum to the mass."""
    del lowest  # of quadratic rows, which may be empty
    excess /= -eps
    with np.errstate(under="ignore"):
        np.exp(excess, out=excess)
    excess *= (mass / excess.sum(axis=1))[:, None]
