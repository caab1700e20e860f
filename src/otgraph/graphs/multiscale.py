"""Graphs that hold several scales: the mean of quadratic transport plans along a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph.exceptions import invalid
from otgraph.graphs.keywords import shows
from otgraph.graphs.mean import NOT_IN_A_MEAN, mean_graph
from otgraph.graphs.options import DEFAULT_MEAN_DEGREE, QuadraticOptions
from otgraph.graphs.path import checked_values, solved_along
from otgraph.graphs.quadratic import refuse_both
from otgraph.graphs.transport import TransportProblem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from numpy.typing import ArrayLike

    from otgraph.graphs.graph import TransportGraph
    from otgraph.graphs.mean import MultiscaleGraph
    from otgraph.graphs.options import QuadraticKeywords
    from otgraph.typing import FloatArray, Metric, PointsLike, SparseMatrix

# Mean degree near which the scales below a given one end: fewer neighbors hold no cluster together.
SMALLEST_SCALE = 4.0


@shows({"quadratic": QuadraticOptions})
def multiscale_graph(
    X: PointsLike,
    eps: ArrayLike | None = None,
    *,
    mean_degree: ArrayLike | None = None,
    mass: ArrayLike | None = None,
    progress: bool = False,
    n_jobs: int | None = -1,
    **options: Unpack[QuadraticKeywords],
) -> MultiscaleGraph:
    r"""Sparse symmetric graph that holds several scales: a mean of quadratic transport plans.

    The plans :math:`\pi_k` of several :math:`\varepsilon_k` are averaged,

    .. math:: \bar\pi = \frac{1}{K} \sum_{k=1}^{K} \pi_k .

    The mean is symmetric and its rows sum to the masses, like those of the plans. Near points are
    joined by all of them, far points only by those with a large :math:`\varepsilon`. Choose it if
    no single scale suits all of the data. The widest plan has the minimum flows that `min_degree`
    and `connect` ask for, and so has the mean; the others have none.
    :func:`otgraph.quadratic_ot_graph` says more about the keywords.

    Parameters
    ----------
    X
        Points, one per row, or costs with ``metric="precomputed"``.
    eps
        Regularizations of the plans.
    mean_degree
        Mean degrees of the plans, instead of `eps`. A single number is that of the widest plan;
        the others have half, a quarter and so on, down to about 4. The mean has hardly more
        edges than the widest plan. It is 15 if neither is given: plans of 15, 7.5 and 3.75.
    mass, progress, n_jobs
        As in :func:`otgraph.quadratic_ot_graph`.
    **options

    Returns
    -------
    MultiscaleGraph
        With ``weights``, ``certificate``, ``edge_eps`` and more. ``EpsPath.mean`` takes other
        shares than equal ones.

    Examples
    --------
    >>> import otgraph
    >>> X = otgraph.datasets.noisy_spiral(n=200).X
    >>> graph = otgraph.multiscale_graph(X, eps=[0.1, 0.5, 2.0])
    >>> graph.certificate.status == "exact"
    True
    >>> round(graph.mean_degree / graph.part(-1).mean_degree, 1)
    1.0
    """
    values, degrees = check_scales(eps, mean_degree)
    chosen = QuadraticOptions.of(multiscale_graph, options)
    if chosen.outlier_cost is not None:
        raise invalid("outlier_cost", NOT_IN_A_MEAN)
    problem = TransportProblem(X, chosen, mass=mass, progress=progress, n_jobs=n_jobs)
    params = {}
    if values is not None:
        parts = _along(problem, values)
        count = len(values)
    else:
        if degrees is None:
            degrees = np.array([min(DEFAULT_MEAN_DEGREE, problem.cost.n - 1.0)])
        degrees = scales(float(degrees[0])) if len(degrees) == 1 else np.sort(degrees)[::-1]
        parts, count = _of_degrees(problem, degrees), len(degrees)
        params["mean_degree"] = ", ".join(f"{degree:g}" for degree in degrees[::-1])
    graph = mean_graph(parts, count=count, params=params)
    problem.report_components(graph)
    return graph


def check_scales(
    eps: ArrayLike | None, mean_degree: ArrayLike | None
) -> tuple[FloatArray | None, FloatArray | None]:
    """Check that at most one is given, and that it holds positive numbers."""
    refuse_both(eps, mean_degree)
    return (
        None if eps is None else checked_values(eps, "eps"),
        None if mean_degree is None else checked_values(mean_degree, "mean_degree"),
    )


def scales(mean_degree: float) -> FloatArray:
    """Halves of a mean degree, down to about four; itself if it is less."""
    count = max(0, round(float(np.log2(mean_degree / SMALLEST_SCALE)))) + 1
    return np.asarray(mean_degree / 2.0 ** np.arange(count))


def _along(problem: TransportProblem, values: FloatArray) -> Iterator[TransportGraph]:
    """From the widest, which alone has minimum flows: the mean has all of its edges."""
    for k, (_, solution) in enumerate(solved_along(problem, values)):
        found = solution if k else problem.finished(solution)
        yield problem.with_copies(problem.distinct_graph(found))


def _of_degrees(problem: TransportProblem, degrees: FloatArray) -> Iterator[TransportGraph]:
    """The same for mean degrees; the pairs of narrow plans are among those of wider ones."""
    widest, *narrower = map(float, degrees)
    solution, _ = problem.solve_goal(None, widest)
    yield problem.with_copies(problem.distinct_graph(solution))
    for degree in narrower:
        solution = problem.solve_plain(degree)
        yield problem.with_copies(problem.distinct_graph(solution))


def multiscale_rows(
    graph: MultiscaleGraph, X_new: PointsLike, mass: ArrayLike | None, metric: Metric | None
) -> SparseMatrix:
    """Rows of new points: the mean of those of the parts."""
    total = None
    for k, share in enumerate(graph.shares):
        rows = graph.part(k).extend(X_new, mass=mass, metric=metric) * share  # type: ignore[arg-type]
        total = rows if total is None else total + rows
    return sp.csr_matrix(total)
