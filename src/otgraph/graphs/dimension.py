r"""The intrinsic dimension, from the potentials along a path of eps.

In d dimensions the levels of the plan (`geometry.py`) grow like :math:`\varepsilon^{w/(d+w)}` with
the power w of the cost, at any density. The mean of their logarithms over the points has this
slope. It is read between two graphs of which one has about three times as many neighbors: from few
enough that the data are flat within a neighborhood to enough that counting does not matter.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph._validation import check_mass, check_seed
from otgraph.costs import check_input
from otgraph.exceptions import invalid
from otgraph.graphs.geometry import Paraboloids, neighborhoods
from otgraph.graphs.keywords import shows
from otgraph.graphs.options import QuadraticOptions
from otgraph.graphs.path import WarmPath
from otgraph.graphs.transport import TransportProblem

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import ArrayLike

    from otgraph.graphs.graph import TransportGraph
    from otgraph.graphs.options import QuadraticKeywords
    from otgraph.typing import FloatArray, LongArray, Points, PointsLike

# Mean degree of the first graph. With fewer neighbors the levels are too low by a share 1/degree.
FIRST_DEGREE = 20
SHARE_OF_POINTS = 10  # a tenth of the points, if that is less
GROWTH = 3.0  # from the first mean degree to at least that of the last graph
EPS_STEP = 2.0  # factor between two graphs
FEWEST_STEPS, MOST_STEPS = 2, 10  # a curve needs five; groups of copies would go on forever
FEWEST_POINTS = 20
# Of more points a sample is used: it has the same dimension.
MOST_POINTS = 20_000
# A sample of an eighth shows larger scales with as many neighbors. It needs so many points.
THINNING, FEWEST_THINNED = 8, 100
# If the dimension falls by more from the smallest to the larger scale, it is not constant.
# Measured: up to 1.3 on manifolds of up to 20 dimensions, 1.57 and 4.1 with noise that fills them.
MOST_DROP = 1.4

NOISE = "it falls at larger scales: noise fills the space, or points are too few for it"
FEW = "points are too few to compare scales"


@dataclass(frozen=True, eq=False)
class IntrinsicDimension:
    """A dimension with an error bar; ``float()`` gives the value.

    Attributes
    ----------
    value
        The dimension at the smallest scale that the points resolve.
    error
        Its standard error: the scatter over the points, half the change along the path, and the
        share 1/degree that few neighbors may cost.
    coarse
        The dimension at a larger scale, from an eighth of the points; None if they are too few. If
        it is much smaller than `value`, noise fills the space at small scales.
    doubt
        Why the value is not to be trusted; empty if nothing speaks against it.
    eps, mean_degree
        The graphs of the path.
    local
        The dimension between each two of them.
    n_points
        Number of points that were used.

    Examples
    --------
    >>> import otgraph
    >>> dimension = otgraph.intrinsic_dimension(otgraph.datasets.sphere(1000).X)
    >>> round(float(dimension)), dimension.trusted
    (2, True)
    """

    value: float
    error: float
    coarse: float | None
    doubt: str
    eps: FloatArray
    mean_degree: FloatArray
    local: FloatArray
    n_points: int

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the value."""
        return not self.doubt

    def __float__(self) -> float:
        """The value."""
        return self.value

    def __repr__(self) -> str:
        """Summary in one line."""
        return f"IntrinsicDimension({self.summary()})"

    def summary(self) -> str:
        """The value, its error, and what speaks against it."""
        doubt = f", but {self.doubt}" if self.doubt else ""
        coarse = "" if self.coarse is None else f", {self.coarse:.3g} at a larger scale"
        return f"{self.value:.3g} ± {self.error:.2g}{coarse}{doubt}"


@shows({"quadratic": QuadraticOptions})
def intrinsic_dimension(
    X: PointsLike,
    *,
    mass: ArrayLike | None = None,
    n_jobs: int | None = -1,
    **options: Unpack[QuadraticKeywords],
) -> IntrinsicDimension:
    r"""Number of dimensions in which the points spread, with an error bar.

    The potentials of quadratic OT graphs grow like :math:`\varepsilon^{2/(d+2)}` in d dimensions,
    whatever the density. A few graphs with 20 to 60 neighbors give d. Use it for
    ``density="corrected"`` of :func:`otgraph.eigenmaps`, and for :meth:`otgraph.Graph.log_density`.

    Parameters
    ----------
    X
        Points, one per row, or costs with ``metric="precomputed"``, taken as powers of a distance.
    mass, n_jobs
        As in :func:`otgraph.quadratic_ot_graph`.
    **options

    Returns
    -------
    IntrinsicDimension
        With ``value``, ``error``, ``coarse`` and ``doubt``.

    Notes
    -----
    Of more than 20,000 points a random sample is used. The trial graphs have neither self-loops nor
    minimum flows, whatever the keywords say.

    Above about ten dimensions all estimates are too small, this one as well as those from nearest
    neighbors: most points are near a border, or neighborhoods are not small. Noise has as many
    dimensions as there are features. Where it is wider than the distances of the points, the
    dimension is that of the noise. It then falls at larger scales, and ``doubt`` says so.

    Examples
    --------
    >>> import otgraph
    >>> circle = otgraph.datasets.circle(1000, concentration=1.0)
    >>> dimension = otgraph.intrinsic_dimension(circle.X)
    >>> abs(dimension.value - 1) < 2 * dimension.error
    True
    """
    chosen = QuadraticOptions.of(intrinsic_dimension, options)
    chosen = replace(chosen, self_loops=False, min_degree=0, connect=False)
    X = check_input(X, chosen.metric)
    n = X.shape[0]
    if n < FEWEST_POINTS:
        raise invalid("X", f"must have at least {FEWEST_POINTS} points, got {n}.")
    masses = check_mass(mass, n, self_loops=False)
    shuffled = np.random.default_rng(check_seed(chosen.random_state)).permutation(n)

    def path(n_points: int) -> list[TransportGraph]:
        rows = np.sort(shuffled[:n_points])
        return _path(_part(X, rows, chosen), masses[rows], chosen, n_jobs)

    with warnings.catch_warnings():  # the trial graphs are not returned
        warnings.simplefilter("ignore")
        used = min(n, MOST_POINTS)
        graphs = path(used)
        value, scatter, local = _slopes(graphs)
        coarse, doubt = None, FEW
        if used >= THINNING // 2 * FEWEST_THINNED:
            coarse, _, _ = _slopes(path(max(FEWEST_THINNED, used // THINNING)))
            doubt = NOISE if local[0] > MOST_DROP * coarse else ""
    eps, degrees = (np.array([getattr(each, name) for each in graphs]) for name in PATH)
    few = value / np.sqrt(degrees[0] * degrees[-1])
    error = float(np.sqrt(scatter**2 + (0.5 * (local[0] - local[-1])) ** 2 + few**2))
    return IntrinsicDimension(value, error, coarse, doubt, eps, degrees, local, used)


PATH = ("eps", "mean_degree")  # what is kept of the graphs


def _part(X: Points, rows: LongArray, options: QuadraticOptions) -> Points:
    """Some of the points, or the costs between them."""
    if len(rows) == X.shape[0]:
        return X
    return X[rows][:, rows] if options.metric == "precomputed" else X[rows]


def _path(
    X: Points, mass: FloatArray, options: QuadraticOptions, n_jobs: int | None
) -> list[TransportGraph]:
    """Graphs of increasing eps, from few neighbors to three times as many."""
    problem = TransportProblem(X, options, mass=mass, n_jobs=n_jobs)
    walk = WarmPath(problem)
    solution = problem.solve_for_degree(min(FIRST_DEGREE, X.shape[0] // SHARE_OF_POINTS))
    enough = GROWTH * solution.mean_degree
    graphs = []
    while True:
        walk.add(solution)
        graphs.append(problem.graph(solution))
        steps = len(graphs) - 1
        if steps >= MOST_STEPS or (steps >= FEWEST_STEPS and solution.mean_degree >= enough):
            return graphs
        eps = EPS_STEP * solution.certificate.eps
        solution = problem.solve(eps, start=walk.start(eps))


def _slopes(graphs: list[TransportGraph]) -> tuple[float, float, FloatArray]:
    """The dimension over the whole path, its standard error, and that of every step."""
    around = [neighborhoods(graph) for graph in graphs]
    w = around[0].power
    with_neighbors = np.all([each.mass > 0.0 for each in around], axis=0)
    levels = np.array([np.log(each.level) for each in around if isinstance(each, Paraboloids)])[
        :, with_neighbors
    ]
    log_eps = np.log([graph.eps for graph in graphs])
    local = _dimension(np.diff(levels.mean(axis=1)) / np.diff(log_eps), w)
    slopes = (levels[-1] - levels[0]) / (log_eps[-1] - log_eps[0])
    mean = float(slopes.mean())
    # Points with common neighbors are not independent: K = D W W D has ones on its diagonal and
    # falls with the share of common neighbors, and e' K e is the variance of the sum of e.
    residual = np.zeros(graphs[-1].n)
    residual[with_neighbors] = slopes - mean
    W = graphs[-1].weights
    norms = np.sqrt(np.asarray(W.multiply(W).sum(axis=1)).ravel())
    spread = float(np.linalg.norm(W @ (residual / np.where(norms > 0.0, norms, 1.0))))
    error = w / mean**2 * spread / len(slopes)
    return float(_dimension(np.array(mean), w)), error, local


def _dimension(slope: FloatArray, w: float) -> FloatArray:
    """The dimension of a slope w / (d + w)."""
    return np.maximum(w / slope - w, 0.0)
