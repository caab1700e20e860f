"""Quadratically regularized optimal transport graphs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph._kernels import lists as list_kernels
from otgraph._validation import check_positive
from otgraph.costs.near import transport_below
from otgraph.exceptions import argument_error
from otgraph.graphs.choice import resolved_eps
from otgraph.graphs.extension import ListedRows, transport_rows
from otgraph.graphs.options import AUTO, QuadraticOptions
from otgraph.graphs.transport import TransportProblem

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.graphs.graph import TransportGraph
    from otgraph.graphs.options import Eps, OnFailure, OutlierCost, Search
    from otgraph.typing import FloatArray, Metric, PointsLike, RandomState, SparseMatrix


def quadratic_ot_graph(
    X: PointsLike,
    eps: Eps | None = None,
    *,
    mean_degree: float | None = None,
    metric: Metric = QuadraticOptions.metric,
    power: float = QuadraticOptions.power,
    normalize: bool = QuadraticOptions.normalize,
    mass: ArrayLike | None = None,
    self_loops: bool = QuadraticOptions.self_loops,
    collapse: bool = QuadraticOptions.collapse,
    min_degree: int | None = QuadraticOptions.min_degree,
    connect: bool | None = QuadraticOptions.connect,
    outlier_cost: OutlierCost = QuadraticOptions.outlier_cost,
    tol: float = QuadraticOptions.tol,
    search: Search = QuadraticOptions.search,
    max_missing: float = QuadraticOptions.max_missing,
    n_candidates: int | None = QuadraticOptions.n_candidates,
    u0: ArrayLike | None = None,
    max_iter: int = QuadraticOptions.max_iter,
    on_failure: OnFailure = QuadraticOptions.on_failure,
    progress: bool = False,
    n_jobs: int | None = -1,
    random_state: RandomState = QuadraticOptions.random_state,
) -> TransportGraph:
    r"""Sparse symmetric graph whose rows sum to one and whose degrees adapt to the data.

    Every point has a unit of mass and shares it with others at least cost,

    .. math::
        \min_\pi \sum_{ij} c_{ij} \pi_{ij} + \frac{\varepsilon}{2} \sum_{ij} \pi_{ij}^2
        \quad\text{over}\quad \pi \ge 0,\ \pi = \pi^\top,\ \pi 1 = m,

    with :math:`c_{ij} = d(x_i, x_j)^p` (Matsumoto, Zhang and Schiebinger, 2022). The result
    carries a certificate that says what was proved about it.

    Parameters
    ----------
    X
        Points, one per row: array, data frame or scipy sparse matrix. With
        ``metric="precomputed"`` the symmetric cost itself: a dense matrix, or a sparse one
        whose stored entries are the only pairs allowed.
    eps
        Regularization; larger values spread the mass over more neighbors. With
        ``normalize=True`` values between 0.1 and 5 suit most data. ``"auto"`` chooses the value
        whose graph predicts unseen features best, for the time of a few graphs; see
        :func:`otgraph.choose_eps`. Where that cannot be trusted, a warning names the reason.
    mean_degree
        Wanted mean number of neighbors; the library finds ``eps``. Choose this if you think in
        neighbors, and ``eps`` to compare data sets of different size or density. It is 15 if
        neither is given.
    metric
        ``"euclidean"``, ``"cosine"``, any other metric of scikit-learn, a function of two
        points, or ``"precomputed"``. Euclidean and cosine are fast; all others look at every
        pair. The cosine distance is 1 - cos, which is half the squared chord.
    power
        Power of the distance.
    normalize
        Divide costs by their mean over all pairs, or over the given candidates. ``eps`` then
        does not depend on the units of the data.
    mass
        Wanted row sums, ones by default; larger for points that represent many.
    self_loops
        Allow points to keep mass, as in the paper's experiments. Without self-loops all mass
        goes to neighbors, even for small ``eps``.
    collapse
        Make identical rows of ``X`` one point that has the mass of all of them. Otherwise copies,
        at cost zero, give each other most of their mass. The graph still has one row per row of
        ``X``: copies have the same neighbors and share the weights in proportion to their masses,
        without edges between them unless self-loops are allowed. `mean_degree` and `min_degree`
        count distinct points.
    min_degree
        Neighbors that every point has at least. A point with fewer gets minimum flows to its
        nearest points, and a component with less than 3 % of the points gets some to the rest;
        the plan is optimal among all plans with these flows. By default it is 4 (or half of
        ``mean_degree``, if that is less) where the library chooses ``eps``, and 0 for a given
        ``eps``: that is the paper's plan.
    connect
        True joins all connected components in the same way, also clusters that are truly apart.
        False leaves them. By default they are left, with a warning if there are several.
    outlier_cost
        Let outliers drop out instead. A point may hold back the share b of its mass for
        ``outlier_cost / 2 * mass * b**2``. No edge costs more than ``outlier_cost``, in the units
        of ``eps``, and a point without a neighbor within that cost has no edge at all:
        ``graph.dropped``. Others keep most of their mass: ``graph.mass_kept``. ``"auto"`` chooses
        it from the potentials, which are high for outliers. None, the default, lets no point
        drop out. It excludes `min_degree` and `connect`, which give the lonely
        neighbors.
    tol
        Largest relative error of a row sum.
    search
        ``"exact"`` proves that no pair is missing. ``"approximate"`` searches only near cells of
        points. ``"auto"`` is exact unless that would take far longer than everything else.
    max_missing
        Share of missing pairs, relative to the edges, that an approximate search may leave. The
        share is estimated from a sample of rows, and the search is widened until it is small
        enough, if necessary to all pairs.
    n_candidates
        First candidates per point; affects the time, and the result only through rounding.
    u0
        Potentials to start from, such as ``graph.potentials`` of a similar problem.
    max_iter
        Limit of Newton steps; ten are usual.
    on_failure
        ``"warn"`` or ``"raise"`` if the tolerance is not reached.
    progress
        Show progress bars.
    n_jobs
        Number of threads; -1 means all cores and None means 1, as in scikit-learn. The result
        does not depend on it.
    random_state
        Seed of the cells that speed up the search.

    Returns
    -------
    TransportGraph
        With ``weights``, ``certificate``, ``potentials`` and more.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> graph = otgraph.quadratic_ot_graph(X, eps=1.0)
    >>> graph.certificate.status == "exact"
    True
    """
    eps, mean_degree = check_goal(eps, mean_degree)
    options = QuadraticOptions(
        metric=metric, power=power, normalize=normalize, self_loops=self_loops,
        collapse=collapse, min_degree=min_degree, connect=connect, outlier_cost=outlier_cost,
        tol=tol, search=search,
        max_missing=max_missing, n_candidates=n_candidates, max_iter=max_iter,
        on_failure=on_failure, random_state=random_state,
    )  # fmt: skip
    value, choice = resolved_eps(eps, X, options, mass=mass, n_jobs=n_jobs)
    with single_threaded_blas():  # once, not in every step: it takes as long as a small step
        problem = TransportProblem(X, options, mass=mass, progress=progress, n_jobs=n_jobs)
        graph = problem.only_graph(value, mean_degree, u0, choice=choice)
    problem.report_components(graph)
    return graph


def check_goal(eps: object, mean_degree: object) -> tuple[Eps | None, float | None]:
    """Check that at most one is given; the default is a mean degree of 15."""
    refuse_both(eps, mean_degree)
    if isinstance(eps, str) and eps == AUTO:
        return AUTO, None
    if eps is not None:
        return check_positive(eps, "eps"), None
    if mean_degree is None:
        return None, None
    return None, check_positive(mean_degree, "mean_degree")


def refuse_both(eps: object, mean_degree: object) -> None:
    """Raise an error if both are given."""
    if eps is not None and mean_degree is not None:
        msg = f"Give at most one of `eps` and `mean_degree`, got both: {eps!r} and {mean_degree!r}."
        raise argument_error(TypeError, "mean_degree", msg)


def quadratic_rows(
    graph: TransportGraph, X_new: PointsLike, mass: ArrayLike | None, metric: Metric | None
) -> SparseMatrix:
    """Rows of new points: π*_j = (u* + u_j − c*_j)₊ / ε, with the u* that gives them the mass.

    With an outlier cost a point holds back the share 2 u*/cost of its mass, as in the graph.
    """
    eps, highest = graph.eps, 0.5 * graph.certificate.outlier_cost
    listed = None
    if highest == np.inf:  # otherwise rows need not reach their masses
        listed = ListedRows(
            rule=lambda masses: transport_below(eps * masses),
            fill=lambda indptr, values, masses: list_kernels.fill_transport(
                indptr, values, eps * masses, eps
            ),
        )
    fill = partial(_fill, eps=eps, highest=highest)
    return transport_rows(graph, X_new, mass, metric, fill, listed)


def _fill(
    excess: FloatArray, mass: FloatArray, lowest: FloatArray, eps: float, highest: float
) -> None:
    """Replace t_j ≥ 0, smallest 0, by (v − t_j)₊/ε with the v where these sum to the mass.

    Only t_j < ε m can have a positive weight: v = ε m already gives all the mass to the smallest
    t. The potential of the row is v plus the lowest c_j − u_j. Where it is positive, the share
    of the mass that it holds back is this potential over the highest one.
    """
    for row, m, low in zip(excess, mass, lowest, strict=True):
        near = np.sort(row[row < eps * m])
        level = _level(near, eps * m)
        if level + low > 0.0:
            rate = eps * m / highest
            level = _level(near, eps * m - rate * low, rate)
        np.subtract(level, row, out=row)
        np.maximum(row, 0.0, out=row)
        row /= eps


def _level(near: FloatArray, total: float, rate: float = 0.0) -> float:
    """The v with Σ (v − t_j)₊ + rate v = total for sorted t_j with t_1 = 0; 0 if there is none.

    The first k have positive weights for v = (total + t_1 + … + t_k) / (k + rate), where k is the
    largest number with t_k < v.
    """
    if total <= 0.0:
        return 0.0
    levels = (total + np.cumsum(near)) / (np.arange(1, len(near) + 1) + rate)
    return float(levels[np.count_nonzero(near < levels) - 1])
