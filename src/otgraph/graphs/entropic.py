"""Entropic optimal transport graphs: a weight between all pairs, rows that sum to the mass."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tqdm import tqdm

from otgraph._kernels import lists as list_kernels
from otgraph._parallel import Workers
from otgraph._validation import check_mass, check_positive
from otgraph.costs import check_input, direct_cost, kept_points
from otgraph.costs.near import all_but
from otgraph.costs.powers import can_list
from otgraph.exceptions import ConvergenceError, ConvergenceWarning
from otgraph.graphs._canonical import plain_params, require_dense_memory
from otgraph.graphs._entropic_plans import DensePlan, ListedPlan, relative_gap
from otgraph.graphs.cutoff import DEFAULT_ERROR, cut, resolved_error
from otgraph.graphs.extension import ListedRows, transport_rows
from otgraph.graphs.graph import TransportGraph
from otgraph.graphs.options import EntropicOptions
from otgraph.solvers.certificate import Certificate, Reason, Status
from otgraph.solvers.passes import ListedCosts, ListedPasses
from otgraph.solvers.sinkhorn import symmetric_sinkhorn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.costs import DirectCost
    from otgraph.costs.powers import DirectPowers
    from otgraph.graphs._entropic_plans import EntropicPlan
    from otgraph.graphs.options import OnFailure
    from otgraph.solvers.sinkhorn import Sinkhorn
    from otgraph.typing import FloatArray, Metric, PointsLike, SparseMatrix

# A list is made for this share of what may be left out, because potentials still move afterwards.
SHARE_PER_ROUND = 0.25
# Passes over a list before pairs are looked for again. Listed pairs alone may be infeasible: points
# that share a single partner lower its potential until others matter.
PASSES_PER_ROUND = 40
MOST_ROUNDS = 30


def entropic_ot_graph(
    X: PointsLike,
    eps: float = 1.0,
    *,
    metric: Metric = EntropicOptions.metric,
    power: float = EntropicOptions.power,
    normalize: bool = EntropicOptions.normalize,
    mass: ArrayLike | None = None,
    self_loops: bool = EntropicOptions.self_loops,
    max_error: float | None = EntropicOptions.max_error,
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
    pair has a positive weight. Weights that underflow to zero are not stored, and small ones need
    not be; see `max_error`. `eps` is ``reg`` in POT.

    With a share δ of every row left out, the potentials still solve the problem of all pairs, for
    masses that differ by at most δ of each; the duality gap counts all pairs and grows by at most
    εδ Σm. By Pinsker's inequality the plan that it belongs to differs from the optimal one by at
    most √(2 gap/(ε Σm)) of the mass.

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
    max_error
        As in :func:`otgraph.gaussian_graph`. The certificate has the bound that was proved,
        ``dropped_share``.
    max_iter
        Limit of passes over all pairs. About thirty are usual; small `eps` without self-loops
        takes up to a hundred.

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
        metric=metric, power=power, normalize=normalize, self_loops=self_loops,
        max_error=max_error, tol=tol, max_iter=max_iter, on_failure=on_failure,
    )  # fmt: skip
    checked = check_input(X, metric, candidates=False)
    masses = check_mass(mass, checked.shape[0], self_loops=self_loops)
    workers = Workers(n_jobs, progress=progress)
    try:
        cost = direct_cost(checked, **options.cost(), workers=workers)
        error = resolved_error(cost, eps, options.max_error)
        with _Report(shown=progress) as report:
            if error is not None and can_list(cost):
                solved = _solve_listed(cost, masses, eps, error, options, report)
            else:
                solved = _solve_dense(cost, masses, eps, error, options, report)
        certificate = replace(
            _certificate(solved, masses, eps, tol),
            history=tuple(map(tuple, report.stages.values())),
        )
    finally:
        workers.close()
    if certificate.status is Status.NOT_CONVERGED:
        _complain(certificate, tol, on_failure)
    params = {"method": "entropic", **options.record(), "eps": eps, "max_error": error,
              "scale": cost.scale}  # fmt: skip
    return TransportGraph(
        weights=solved.plan.weights(),
        params=plain_params(params),
        certificate=certificate,
        potentials=solved.solution.u,
        mass=masses,
        points=kept_points(X, checked, metric),
    )


class _Solved(NamedTuple):
    """A plan, its potentials, the share of a row that is left out, and the duality gap."""

    plan: EntropicPlan
    solution: Sinkhorn
    dropped: float
    gap: float


class _Report:
    """Errors of all stages, and a progress bar if it is wanted."""

    def __init__(self, *, shown: bool) -> None:
        self.stages: dict[float, list[float]] = {}
        # Even a disabled bar takes a lock, which a process forked meanwhile would wait for.
        self._bar = tqdm(desc="sinkhorn", leave=False) if shown else None

    def __enter__(self) -> _Report:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, eps: float, error: float) -> None:
        self.stages.setdefault(eps, []).append(error)
        if self._bar is not None:
            text = f"eps {eps:.3g}, marginal error {error:.1e}"
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update()


def _solve_dense(
    cost: DirectCost,
    mass: FloatArray,
    eps: float,
    max_error: float | None,
    options: EntropicOptions,
    report: _Report,
) -> _Solved:
    """The plan between all pairs."""
    require_dense_memory(cost.n)
    matrix = cost.matrix()
    if not options.self_loops:
        np.fill_diagonal(matrix, np.inf)
    solution = symmetric_sinkhorn(
        matrix, mass, eps, tol=options.tol, max_iter=options.max_iter, workers=cost.workers,
        report=report,
    )  # fmt: skip
    plan = DensePlan(matrix, solution.u, eps, cost.workers)
    if max_error is not None:
        cut(plan.matrix, max_error)
    dropped = max_error or 0.0
    return _Solved(plan, solution, dropped, relative_gap(plan, mass, solution.u, eps, dropped))


def _solve_listed(
    cost: DirectPowers,
    mass: FloatArray,
    eps: float,
    max_error: float,
    options: EntropicOptions,
    report: _Report,
) -> _Solved:
    """The same on the pairs that matter at the potentials, which are found in rounds.

    Pairs are left out at potentials w: they carry at most a share δ' of S_i, the sum of
    exp((w_j - c_ij)/ε) in row i. At other potentials u they carry at most
    δ' S_i exp((u_i + max(u - w))/ε), which is compared with the mass of the row.
    """
    loops, workers, share = options.self_loops, cost.workers, SHARE_PER_ROUND * max_error
    u, steps, pairs, settle = np.zeros(cost.n), 0, None, False
    for number in range(MOST_ROUNDS):
        found = cost.heavy_pairs(u, eps, share)
        pairs = found if pairs is None else pairs.merged(found, workers)
        listed = ListedCosts(pairs, loops)
        passes = ListedPasses(listed, np.zeros(cost.n), workers)
        w, log_sums = u, passes.log_residual(u, eps) - u / eps
        solution = symmetric_sinkhorn(
            listed, mass, eps, tol=options.tol, workers=workers, report=report,
            max_iter=max(1, min(PASSES_PER_ROUND, options.max_iter - steps)),
            settle=settle,
            u0=u if steps else -0.5 * eps * (log_sums - np.log(mass)),
        )  # fmt: skip
        u, steps = solution.u, steps + solution.n_steps
        with np.errstate(over="ignore"):
            growth = log_sums + (u + np.max(u - w)) / eps - np.log(mass)
            # The share is one of all pairs, the sum one of those that were kept.
            dropped = float(share / (1.0 - share) * np.exp(growth.max()))
        reached = solution.marginal_error <= options.tol and dropped <= max_error
        last = steps >= options.max_iter or number + 1 == MOST_ROUNDS
        if reached or last:
            plan = ListedPlan(listed, passes, u, eps)
            gap = relative_gap(plan, mass, u, eps, dropped)
            if np.isfinite(gap) or settle or last:
                break
            settle = True
    return _Solved(plan, replace(solution, n_steps=steps), dropped, gap)


def _certificate(solved: _Solved, mass: FloatArray, eps: float, tol: float) -> Certificate:
    """What the plan proves; pairs that are left out count in the gap."""
    plan, solution, dropped, gap = solved
    n = len(mass)
    error = float(np.abs(plan.system.sums / mass - 1.0).max())
    reason = Reason.NONE if np.isfinite(gap) else Reason.NO_FEASIBLE_PLAN
    if error > tol + dropped:
        reason = Reason.OUT_OF_STEPS
    status = Status.EXACT if dropped <= max(tol, DEFAULT_ERROR) else Status.EXACT_ON_CANDIDATES
    return Certificate(
        status=Status.NOT_CONVERGED if reason else status,
        marginal_error=error,
        duality_gap=gap,
        pairs_checked=n * (n - 1) // 2 + (n if plan.loops else 0),
        violations=0,  # every pair has a weight, or a share of a row that is bounded
        n_steps=solution.n_steps,
        eps=eps,
        n_edges=plan.n_edges,
        dropped_share=dropped,
        reason=reason,
    )


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
    eps, max_error = graph.eps, graph.params.get("max_error")
    listed = None
    if max_error is not None:
        share = float(max_error)
        listed = ListedRows(
            rule=lambda masses: all_but(share, eps, graph.n),
            fill=lambda indptr, values, masses: list_kernels.fill_entropic(
                indptr, values, masses, eps
            ),
        )
    return transport_rows(graph, X_new, mass, metric, partial(_fill, eps=eps), listed)


def _fill(excess: FloatArray, mass: FloatArray, lowest: FloatArray, eps: float) -> None:
    """Replace t_j ≥ 0, smallest 0, by weights like exp(−t_j/ε) that sum to the mass."""
    del lowest  # of quadratic rows, which may be empty
    excess /= -eps
    with np.errstate(under="ignore"):
        np.exp(excess, out=excess)
    excess *= (mass / excess.sum(axis=1))[:, None]
