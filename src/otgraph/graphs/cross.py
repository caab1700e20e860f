"""Quadratically regularized optimal transport between two clouds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._validation import check_vector
from otgraph.costs.clouds import check_clouds, cross_cost
from otgraph.costs.restricted import Plan
from otgraph.exceptions import invalid
from otgraph.graphs.cross_graph import Both, CrossGraph
from otgraph.graphs.options import AUTO, WITHIN_ONE_CLOUD, QuadraticOptions
from otgraph.graphs.quadratic import check_goal
from otgraph.graphs.transport import TransportProblem, plan_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.costs.clouds import Clouds
    from otgraph.graphs.options import OnFailure, OutlierCost, Search
    from otgraph.solvers import Solution
    from otgraph.typing import FloatArray, Keywords, Metric, PointsLike, RandomState


def transport_graph(
    X: PointsLike,
    Y: PointsLike | None = None,
    eps: float | None = None,
    *,
    mean_degree: float | None = None,
    mass_x: ArrayLike | None = None,
    mass_y: ArrayLike | None = None,
    metric: Metric = QuadraticOptions.metric,
    power: float = QuadraticOptions.power,
    normalize: bool = QuadraticOptions.normalize,
    outlier_cost: OutlierCost = QuadraticOptions.outlier_cost,
    tol: float = QuadraticOptions.tol,
    search: Search = QuadraticOptions.search,
    max_missing: float = QuadraticOptions.max_missing,
    max_iter: int = QuadraticOptions.max_iter,
    on_failure: OnFailure = QuadraticOptions.on_failure,
    progress: bool = False,
    n_jobs: int | None = -1,
    random_state: RandomState = QuadraticOptions.random_state,
) -> CrossGraph:
    r"""Sparse transport plan between two clouds: which points of Y belong to a point of X.

    The mass of X moves to Y at least cost,

    .. math::
        \min_\pi \sum_{ij} c_{ij} \pi_{ij} + \frac{\varepsilon}{2} \sum_{ij} \pi_{ij}^2
        \quad\text{over}\quad \pi \ge 0,\ \pi 1 = m^X,\ \pi^\top 1 = m^Y,

    with :math:`c_{ij} = d(x_i, y_j)^p`. All of Y is used, in proportion to its masses. So a plan
    matches the clouds as a whole, which nearest neighbors do not. For squared Euclidean costs it
    does not change if one cloud is shifted. It needs clouds of the same composition: where Y has
    more of a kind than X, the surplus goes elsewhere, unless `outlier_cost` lets points of either
    cloud hold mass back.

    Parameters
    ----------
    X, Y
        Points of the two clouds, one per row, with the same features. With
        ``metric="precomputed"`` ``X`` holds the costs from X to Y, and ``Y`` is left out: a dense
        matrix, or a sparse one whose stored entries are the only pairs allowed.
    eps
        Regularization; larger values spread the mass over more partners. A plan is blurred by
        about the distance of its partners.
    mean_degree
        Wanted mean number of partners of a point, over both clouds; the library finds ``eps``. It
        is 15 if neither is given.
    mass_x
        Wanted row sums, ones by default.
    mass_y
        Wanted column sums, up to a factor: they are scaled to the total of ``mass_x``. Equal by
        default.
    metric
        ``"euclidean"``, ``"cosine"``, any other metric of scikit-learn, a function of two
        points, or ``"precomputed"``. Euclidean and cosine are fast; all others look at every pair.
    power
        Power of the distance.
    normalize
        Divide costs by their mean over all pairs of a point of X and a point of Y, or over the
        given candidates. ``eps`` then does not depend on the units of the data.
    outlier_cost
        Let points of either cloud hold mass back, the share b for
        ``outlier_cost / 4 * mass * b**2``. No edge costs more than ``outlier_cost``, in the units
        of the costs, and a point whose partners all cost more is dropped: it has no partner
        (:attr:`CrossGraph.dropped`). Then a shift between the clouds does matter. ``"auto"``
        chooses it from the potentials. None, the default, lets no point drop out.
    tol
        Largest relative error of a row sum or a column sum.
    search
        ``"exact"`` proves that no pair is missing. ``"approximate"`` searches only near cells of
        points. ``"auto"`` is exact unless that would take far longer than everything else.
    max_missing
        Share of missing pairs, relative to the edges, that an approximate search may leave.
    max_iter
        Limit of Newton steps; twenty are usual.
    on_failure
        ``"warn"`` or ``"raise"`` if the tolerance is not reached.
    progress
        Show progress bars.
    n_jobs
        Number of threads; -1 means all cores and None means 1. The result does not depend on it.
    random_state
        Seed of the cells that speed up the search.

    Returns
    -------
    CrossGraph
        With ``weights``, ``certificate``, ``potentials``, ``transfer_labels``,
        ``barycentric_map`` and more.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 3)), rng.normal(size=(300, 3)) + 5.0
    >>> plan = otgraph.transport_graph(X, Y)
    >>> plan.certificate.status == "exact"
    True
    >>> bool(plan.certificate.verify(X, Y))
    True
    >>> plan.barycentric_map().mean().round(1) > 4.5
    np.True_
    """
    if isinstance(eps, str) and eps == AUTO:
        msg = "must be a number here, got 'auto': it can be chosen for a graph of one cloud only."
        raise invalid("eps", msg, TypeError)
    value, mean_degree = check_goal(eps, mean_degree)
    assert not isinstance(value, str)
    options = QuadraticOptions(
        metric=metric, power=power, normalize=normalize, min_degree=0, connect=False,
        outlier_cost=outlier_cost, tol=tol, search=search, max_missing=max_missing,
        max_iter=max_iter, on_failure=on_failure, random_state=random_state,
    )  # fmt: skip
    problem = CrossProblem(
        (X, Y), options, mass=(mass_x, mass_y), progress=progress, n_jobs=n_jobs,
        check=check_clouds, make_cost=partial(cross_cost, movable=outlier_cost is None),
    )  # fmt: skip
    return problem.only_plan(value, mean_degree)


class CrossProblem(TransportProblem):
    """The problem between two clouds as one of all points; see `costs/between.py`."""

    def _masses(self, X: Clouds, mass: Any) -> FloatArray:
        """Masses of both clouds with the same total."""
        n, m = self.sizes = X.sizes
        x, y = (_checked(each, name, size) for each, name, size in (
            (mass[0], "mass_x", n), (mass[1], "mass_y", m)
        ))  # fmt: skip
        self.given_mass = Both(x, y * (x.sum() / y.sum()))
        return np.concatenate(self.given_mass)

    def _kept(self, given: Any, X: Clouds) -> Any:
        if X.Y is None:
            return None
        return tuple(
            super(CrossProblem, self)._kept(raw, checked)
            for raw, checked in zip(given, (X.X, X.Y), strict=True)
        )

    def _check_degree(self, mean_degree: float) -> None:
        n, m = self.sizes
        most = 2.0 * n * m / (n + m)
        if mean_degree > most:
            msg = f"must be at most 2 n m / (n + m) = {most:g} between clouds of {n} and {m} points"
            raise invalid("mean_degree", f"{msg}, got {mean_degree!r}.")

    def only_plan(self, eps: float | None, mean_degree: float | None) -> CrossGraph:
        """The plan for an eps or a mean degree, as the last that is made of this problem."""
        solution, found = self.solve_goal(eps, mean_degree)
        solution = self.freed(solution)  # the old one has the pairs, also as long as it has a name
        return self.plan(solution, **found)

    def plan(self, solution: Solution, **found: Any) -> CrossGraph:
        """The plan in the order of the input, with its certificate."""
        n, _ = self.sizes
        inner = solution.plan
        assert isinstance(inner, Plan)  # a cost in this process gives a plan in this process
        both, _ = plan_weights(inner, self.cost.order, self_loops=False)
        weights = both[:n, n:]
        weights.sort_indices()
        offsets = getattr(self.cost, "offsets", None)
        u = self.in_given_order(solution.u if offsets is None else solution.u + offsets)
        mass, moved = self.given_mass, 0.0
        if solution.certificate.outlier_cost == np.inf:
            moved = (np.sum(mass.x * u[:n]) - np.sum(mass.y * u[n:])) / (2.0 * np.sum(mass.x))
        return CrossGraph(
            weights=weights,
            params=self._record(solution, found),
            certificate=solution.certificate,
            potentials=Both(u[:n] - moved, u[n:] + moved),
            mass=mass,
            points=self.points,
        )

    def _record(self, solution: Solution, found: Keywords) -> Keywords:
        params = self.params_of(solution, found)
        return {key: value for key, value in params.items() if key not in WITHIN_ONE_CLOUD}


def _checked(mass: ArrayLike | None, name: str, size: int) -> FloatArray:
    if mass is None:
        return np.ones(size)
    vector = check_vector(mass, name, size)
    if vector.min() <= 0:
        i = int(vector.argmin())
        msg = f"must be positive, got {vector[i]!r} at point {i}. Leave such points out."
        raise invalid(name, msg)
    return vector
