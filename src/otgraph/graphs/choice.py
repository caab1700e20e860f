"""The eps whose graph predicts best, without the truth.

Two views of the points have independent noise (`splits.py`). The graph of one view averages over
neighbors that it found without the other, so it predicts the other honestly: too small an eps
averages too little noise away, too large an eps blurs the signal. The sum of both errors is
smallest where the graph is best.

Values of eps are tried on two warm paths, upward and downward from 1 until the error has clearly
risen. A parabola through the best value and its neighbors gives the choice.

Of many points a sample is enough. The best eps grows with their number n: in d dimensions a radius
r costs a bias r⁴ and leaves a variance 1/(n rᵈ), so the best r goes like n^(-1/(d+4)), and eps like
n r^(d+2) = n^(2/(d+4)). The exponent is measured on a quarter of the sample.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_mass, check_seed
from otgraph.costs import check_input
from otgraph.costs.restricted import Plan
from otgraph.exceptions import invalid
from otgraph.graphs._canonical import row_sums
from otgraph.graphs.copies import collapsed
from otgraph.graphs.options import AUTO, DEFAULT_MEAN_DEGREE
from otgraph.graphs.path import WarmPath
from otgraph.graphs.splits import Prepare, View, count_halves, feature_halves, obstacle, prepared
from otgraph.graphs.transport import TransportProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from otgraph.graphs.options import OutlierCost, QuadraticOptions
    from otgraph.typing import FloatArray, LongArray, Points, PointsLike, SparseMatrix

Kind: TypeAlias = Literal["features", "counts", "labels"]
SPLITS = ("features", "counts")

# Values of eps are powers of 10^(1/3); the error changes little between two of them.
STEPS_PER_DECADE = 3
# The search begins at 1, near the best value of most data. Larger values take longer.
FIRST = 0
SMALLEST, LARGEST = -9, 6  # limits, 0.001 and 100
CLEAR = 2.0  # standard errors that make a difference clear
FEWEST_POINTS = 20  # with fewer points standard errors mean nothing
# If a view's graph predicts the other view this many times worse than its own, it joins points that
# are far apart: one half does not tell where a point is in the other. Measured: 1.0 to 3.8 where
# the choice is right, 7 and more on circles, spheres and tori in up to ten dimensions.
MOST_AMBIGUOUS = 4.0
# Up to this many points all are used. Of more, a fifth is enough, up to a limit where the graphs of
# large eps would be costly.
ALL_POINTS, MOST_POINTS, SHARE = 2000, 5000, 5
# Most growth of the best eps, as a power of the number of points: that of isolated groups, d = 0.
MOST_GROWTH = 0.5


class Doubt(StrEnum):
    """Why a choice of eps is not to be trusted; empty if nothing speaks against it.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> noise = np.random.default_rng(0).normal(size=(200, 20))
    >>> choice = otgraph.choose_eps(noise)
    >>> choice.doubt is otgraph.Doubt.NO_SIGNAL
    True
    """

    NONE = ""
    NO_SIGNAL = "no graph predicts better than a constant"
    AMBIGUOUS = "one half does not tell where a point is in the other"
    FLAT = "all values of eps predict equally well"
    AT_THE_END = "the best value is the last that was tried, and others may be better"


# With these doubts the chosen value must not be used.
GRAVE = (Doubt.NO_SIGNAL, Doubt.AMBIGUOUS, Doubt.FLAT)


@dataclass(frozen=True, eq=False)
class EpsChoice:
    """A choice of eps and the curve that it is read from.

    Attributes
    ----------
    eps
        The chosen value.
    grid
        The values tried, in increasing order, as they apply to all points.
    scores
        Error for each value; smaller is better. For features and counts it is the squared error
        of the prediction relative to that of the mean of all points, for labels the share of
        held-out labels that are wrong.
    standard_errors
        Standard error of the difference of each score from the best one.
    kind
        What was predicted: ``"features"``, ``"counts"`` or ``"labels"``.
    doubt
        Why the choice is not to be trusted; empty if nothing speaks against it.
    n_points
        Number of points that were used.
    growth
        Factor from the best eps of these points to that of all points.

    Examples
    --------
    >>> import otgraph
    >>> choice = otgraph.choose_eps(otgraph.datasets.noisy_spiral(n=300).X)
    >>> choice.trusted
    True
    """

    eps: float
    grid: FloatArray
    scores: FloatArray
    standard_errors: FloatArray
    kind: Kind
    doubt: Doubt
    n_points: int
    growth: float = 1.0

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the choice."""
        return self.doubt is Doubt.NONE

    def __repr__(self) -> str:
        """Summary in one line."""
        return f"EpsChoice({self.summary()})"

    def summary(self) -> str:
        """What was chosen, and what speaks against it."""
        doubt = f", but {self.doubt.value}" if self.doubt else ""
        return f"{self.eps:.4g} by {self.kind}, of {len(self.grid)} values tried{doubt}"

    def record(self) -> dict[str, str]:
        """The choice as plain text, for the parameters of a graph."""
        values = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }
        return {"chosen_by": self.kind, "choice": json.dumps(values)}

    @classmethod
    def from_params(cls, params: Mapping[str, object]) -> EpsChoice:
        """The choice that a graph records.

        Parameters
        ----------
        params
            Parameters of a graph that was built with ``eps="auto"``.
        """
        if "choice" not in params:
            msg = "hold no choice of eps; only graphs built with eps='auto' have one."
            raise invalid("params", msg)
        values = json.loads(str(params["choice"]))
        for name in ("grid", "scores", "standard_errors"):
            values[name] = np.array(values[name], dtype=np.float64)
        return cls(**{**values, "doubt": Doubt(values["doubt"])})


def resolved_eps(
    eps: float | str | None,
    X: PointsLike,
    options: QuadraticOptions,
    *,
    mass: ArrayLike | None,
    n_jobs: int | None,
) -> tuple[float | None, dict[str, str]]:
    """The eps to solve for, and what a graph records of its choice; see `auto_eps`."""
    if not isinstance(eps, str):
        return eps, {}
    X, mass, _ = collapsed(check_input(X, options.metric), options, mass)
    options = replace(options, collapse=False)
    return auto_eps(X.shape, lambda rows: X[rows], options, mass=mass, n_jobs=n_jobs)


def auto_eps(
    shape: tuple[int, int],
    read: Callable[[LongArray], Points],
    options: QuadraticOptions,
    *,
    mass: ArrayLike | None,
    n_jobs: int | None,
) -> tuple[float | None, dict[str, str]]:
    """The chosen eps, and what a graph records of the choice.

    It is None, with a warning, if the choice is not to be trusted: then the default mean degree is
    used. ``read`` returns some rows of the points, which may be elsewhere.
    """
    n, n_features = shape
    reason = too_few(n) or obstacle(n_features, options)
    record = {}
    if reason is None:
        choice = choose_by_prediction(n, read, options, mass=mass, n_jobs=n_jobs)
        record = choice.record()
        if choice.doubt not in GRAVE:
            if choice.doubt:
                msg = f"`eps='auto'` chose {choice.eps:.3g}, but {choice.doubt.value}."
                warnings.warn(msg, UserWarning, stacklevel=4)
            return choice.eps, record
        reason = choice.doubt.value
    msg = (
        f"`eps='auto'` cannot choose: {reason}. The graph gets a mean degree of "
        f"{DEFAULT_MEAN_DEGREE:g}; pass `eps` or `mean_degree` to choose yourself."
    )
    warnings.warn(msg, UserWarning, stacklevel=4)
    return None, record


def too_few(n: int) -> str | None:
    """Why so few points do not suffice; None if they do."""
    return f"{n} points are too few" if n < FEWEST_POINTS else None


def choose_by_prediction(
    n: int,
    read: Callable[[LongArray], Points],
    options: QuadraticOptions,
    *,
    split: str = "features",
    prepare: Prepare | None = None,
    mass: ArrayLike | None = None,
    eps: Sequence[float] | None = None,
    n_jobs: int | None = -1,
    all_points: int = ALL_POINTS,
) -> EpsChoice:
    """The eps whose graph predicts the other half best; ``read`` returns some of the n points.

    Given values of eps are tried on all points, because they need not suit a sample.
    """
    mass = check_mass(mass, n, self_loops=options.self_loops)
    rng = np.random.default_rng(check_seed(options.random_state))
    n_points = n if eps is not None else min(n, max(all_points, min(n // SHARE, MOST_POINTS)))
    rows = np.arange(n) if n_points == n else np.sort(rng.choice(n, n_points, replace=False))
    X, mass = read(rows), _mass_of_part(mass, rows)
    if split == "counts":
        views, view_options = count_halves(X, prepare, rng), options
    else:
        views, view_options = feature_halves(X, options, rng)
    with warnings.catch_warnings():  # the trial graphs are not returned
        warnings.simplefilter("ignore")
        # A given outlier cost limits the length of edges, and no eps would be too large.
        price: OutlierCost = None if options.outlier_cost is None else AUTO
        view_options = replace(view_options, normalize=True, on_failure="warn", outlier_cost=price)
        unit = 1.0
        if not options.normalize:
            points = prepared(X, prepare) if split == "counts" else X
            unit = _mean_cost(points, options, mass, n_jobs)
        tried = _Trials(views, view_options, mass, n_jobs)
        choice = tried.along([value / unit for value in eps]) if eps is not None else tried.search()
        growth = 1.0
        if n_points < n:
            part = np.sort(rng.permutation(n_points)[: n_points // 4])
            few_views, few_mass = [_rows(view, part) for view in views], _mass_of_part(mass, part)
            fewer = _Trials(few_views, view_options, few_mass, n_jobs)
            growth = _growth(fewer.search().eps, choice.eps, n / n_points)
    kind: Kind = "counts" if split == "counts" else "features"
    best, grid = choice.eps * growth * unit, choice.grid * growth * unit
    return replace(choice, eps=best, grid=grid, kind=kind, growth=growth)


def _growth(of_quarter: float, of_all: float, factor: float) -> float:
    """How much eps grows with this factor of points, from its growth with four times as many."""
    power = np.log(of_all / of_quarter) / np.log(4.0)
    return float(factor ** np.clip(power, 0.0, MOST_GROWTH))


def _mass_of_part(mass: FloatArray, rows: LongArray) -> FloatArray:
    """Masses of some points; among few, one that outweighs the others would be infeasible."""
    part = mass[rows]
    return part if len(rows) == len(mass) else np.minimum(part, part.sum() / FEWEST_POINTS)


def _rows(view: View, rows: LongArray) -> View:
    features = view.features[rows]
    return View(view.points[rows], features - features.mean(axis=0))


def _mean_cost(
    points: Points, options: QuadraticOptions, mass: ArrayLike | None, n_jobs: int | None
) -> float:
    problem = TransportProblem(points, replace(options, normalize=True), mass=mass, n_jobs=n_jobs)
    return float(problem.cost.scale)


class _Trials:
    """Errors of the predictions for the values of eps tried so far, smaller is better."""

    def __init__(
        self,
        views: Sequence[View],
        options: QuadraticOptions,
        mass: FloatArray,
        n_jobs: int | None,
    ) -> None:
        first, second = views
        self._pairs = [
            (WarmPath(TransportProblem(own.points, options, mass=mass, n_jobs=n_jobs)), own, other)
            for own, other in ((first, second), (second, first))
        ]
        self.errors: dict[float, FloatArray] = {}  # per point, of the other view
        self._best_averages: list[SparseMatrix] = []
        self.of_mean = np.mean(
            [_relative_squares(view.features, view.features) for view in views], axis=0
        )

    def add(self, eps: float) -> None:
        """Solve for one eps and keep the errors."""
        parts, averages = [], []
        for walk, _, other in self._pairs:
            solution = walk.problem.solve(eps, start=walk.start(eps))
            walk.add(solution)
            assert isinstance(solution.plan, Plan)  # a cost in this process
            averages.append(_row_averages(solution.plan))
            parts.append(_errors(averages[-1], other.features, walk.problem))
        self.errors[eps] = np.mean(parts, axis=0)
        if eps == self.best:
            self._best_averages = averages

    def search(self) -> EpsChoice:
        """Try values upward and downward from the first until the error has clearly risen."""
        upward = range(FIRST, LARGEST + 1)
        downward = range(FIRST - 1, SMALLEST - 1, -1)
        for powers in (upward, downward):
            for power in powers:
                eps = 10.0 ** (power / STEPS_PER_DECADE)
                self.add(eps)
                if self._clearly_worse(eps):
                    break
        return self.choice()

    def along(self, values: Sequence[float]) -> EpsChoice:
        """Try the given values."""
        for eps in sorted(values, reverse=True):
            self.add(float(eps))
        return self.choice()

    @property
    def best(self) -> float:
        """The value with the smallest error."""
        return min(self.errors, key=lambda eps: float(self.errors[eps].mean()))

    def choice(self) -> EpsChoice:
        """All scores in the order of eps, and the best value for these points."""
        grid = np.array(sorted(self.errors))
        scores = np.array([self.errors[eps].mean() for eps in grid])
        spread = np.array([self._standard_error(eps) for eps in grid])
        best, n = lowest_point(grid, scores), len(self.of_mean)
        return EpsChoice(best, grid, scores, spread, "features", self._doubt(), n)

    def _clearly_worse(self, eps: float) -> bool:
        difference = float((self.errors[eps] - self.errors[self.best]).mean())
        return difference > CLEAR * self._standard_error(eps)

    def _standard_error(self, eps: float) -> float:
        return standard_error(self.errors[eps] - self.errors[self.best])

    def _own_error(self) -> float:
        """Error of the best graphs in the view that they were built on."""
        both = zip(self._best_averages, self._pairs, strict=True)
        errors = [_errors(mean, own.features, walk.problem) for mean, (walk, own, _) in both]
        return float(np.mean(errors))

    def _doubt(self) -> Doubt:
        best = self.best
        gain = self.of_mean - self.errors[best]
        if not gain.mean() > CLEAR * standard_error(gain):
            return Doubt.NO_SIGNAL
        if self.errors[best].mean() > MOST_AMBIGUOUS * self._own_error():
            return Doubt.AMBIGUOUS
        if not any(self._clearly_worse(eps) for eps in self.errors):
            return Doubt.FLAT
        if best in (min(self.errors), max(self.errors)):
            return Doubt.AT_THE_END
        return Doubt.NONE


def _row_averages(plan: Plan) -> SparseMatrix:
    """The plan without self-loops, as a matrix whose rows sum to one."""
    n = len(plan.degrees)
    hollow = sp.csr_matrix((plan.weights, plan.indices, plan.indptr), shape=(n, n))
    sums = row_sums(hollow)
    return sp.diags(np.divide(1.0, sums, out=np.zeros(n), where=sums > 0.0)) @ hollow


def _errors(average: SparseMatrix, features: FloatArray, problem: TransportProblem) -> FloatArray:
    """Relative squared error of every point if its neighbors' average predicts it."""
    sorted_features = features[problem.cost.order]
    residual = sorted_features - average @ sorted_features
    return problem.in_given_order(_relative_squares(residual, features))


def _relative_squares(residual: FloatArray, features: FloatArray) -> FloatArray:
    """Squared norms of the rows, relative to the mean of those of the features."""
    total = float(np.einsum("ij,ij->", features, features))
    return np.einsum("ij,ij->i", residual, residual) * (len(features) / total if total else 0.0)


def standard_error(values: FloatArray) -> float:
    """Standard error of a mean."""
    return float(values.std() / np.sqrt(len(values)))


def lowest_point(grid: FloatArray, scores: FloatArray) -> float:
    """Lowest point of the parabola in log eps through the best value and its neighbors."""
    k = int(scores.argmin())
    if k in (0, len(grid) - 1):
        return float(grid[k])
    x, y = np.log(grid[k - 1 : k + 2] / grid[k]), scores[k - 1 : k + 2] - scores[k]
    bend = x[2] * y[0] - x[0] * y[2]
    shift = 0.5 * (x[2] ** 2 * y[0] - x[0] ** 2 * y[2]) / bend if bend > 0.0 else 0.0
    return float(grid[k] * np.exp(shift))
