"""A quadratic transport problem on given points: checked, solved for any eps, made a graph."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from otgraph._kernels import restricted as plan_kernels
from otgraph._parallel import Workers
from otgraph._validation import (
    check_choice,
    check_count,
    check_mass,
    check_on_failure,
    check_positive,
    check_seed,
    check_vector,
)
from otgraph.costs import as_cost, check_input
from otgraph.costs.restricted import Plan
from otgraph.exceptions import (
    ConvergenceError,
    ConvergenceWarning,
    DisconnectedWarning,
    MissingPairsWarning,
    argument_error,
)
from otgraph.graphs._cost_kinds import metric_name
from otgraph.graphs.graph import Graph
from otgraph.solvers import (
    Goal,
    Screener,
    Solution,
    State,
    Status,
    first_state,
    solve,
    solve_for_degree,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from otgraph.costs import Cost
    from otgraph.typing import BoolArray, HasComponents, LongArray, RandomState, SparseMatrix

T = TypeVar("T", bound=np.generic)

DEFAULT_CANDIDATES = 30
# Where the degree is known in advance fewer do, which matters at a million points.
FEWEST_CANDIDATES = 20
CANDIDATES_PER_DEGREE = 1.3
# Ten steps are usual; hundreds occur as eps tends to zero and the plan to a matching.
DEFAULT_MAX_ITER = 1000
DEGREE_WARNING = 0.05  # relative distance from a wanted mean degree that is worth a word
# Share of missing pairs, relative to the edges, up to which an approximate search goes on by
# itself, and above which a graph is never returned without a warning.
DEFAULT_MAX_MISSING = 0.05
MISSING_WARNING = 0.05
EXACT_SEARCH = {"auto": None, "exact": True, "approximate": False}


class TransportProblem:
    """Everything but eps; keywords as in `quadratic_ot_graph`."""

    def __init__(
        self,
        X: Any,
        *,
        metric: Any = "euclidean",
        power: float = 2.0,
        normalize: bool = True,
        mass: Any = None,
        self_loops: bool = False,
        tol: float = 1e-6,
        search: str = "auto",
        max_missing: float = DEFAULT_MAX_MISSING,
        n_candidates: int | None = None,
        max_iter: int = DEFAULT_MAX_ITER,
        on_failure: str = "warn",
        progress: bool = False,
        n_jobs: int | None = -1,
        random_state: RandomState = 0,
    ) -> None:
        self.self_loops = bool(self_loops)
        self.tol = check_positive(tol, "tol")
        self.max_iter = check_count(max_iter, "max_iter")
        self.on_failure = check_on_failure(on_failure)
        self.search = check_choice(search, "search", tuple(EXACT_SEARCH))
        self.seed = check_seed(random_state)
        self.max_missing = check_positive(max_missing, "max_missing")
        power = check_positive(power, "power")
        if n_candidates is not None:
            n_candidates = check_count(n_candidates, "n_candidates")
        given, X = X, self._check(X, metric)
        self.n_candidates = self._clip_candidates(n_candidates, X.shape[0])
        mass = check_mass(mass, X.shape[0], self_loops=self.self_loops)
        self.cost = self._make_cost(
            X,
            metric=metric,
            power=power,
            normalize=bool(normalize),
            exact=EXACT_SEARCH[self.search],
            seed=self.seed,
            workers=Workers(n_jobs, progress=bool(progress)),
        )
        # float32 points are kept as they came, not as a copy twice their size.
        single = isinstance(given, np.ndarray) and given.dtype == np.float32
        precomputed = isinstance(metric, str) and metric == "precomputed"
        self.points = None if precomputed else given if single else X
        del X
        self.mass = mass[self.cost.order]
        self.screener = Screener(self.cost)
        self._params: dict[str, Any] = {
            "method": "quadratic_ot",
            "metric": metric_name(metric),
            "power": power,
            "normalize": bool(normalize),
            "scale": self.cost.scale,
            "self_loops": self.self_loops,
            "tol": self.tol,
            "random_state": self.seed,
        }
        if self.cost.identical:
            msg = "All points of `X` are identical: the graph can only be uniform."
            warnings.warn(msg, UserWarning, stacklevel=3)

    def _check(self, X: Any, metric: Any) -> Any:
        """What was given, checked; it has a shape."""
        return check_input(X, metric)

    def _make_cost(self, X: Any, **options: Any) -> Cost:
        """The cost for what `_check` let pass."""
        return as_cost(X, **options)

    def solve(self, eps: float, *, u0: Any = None, start: State | None = None) -> Solution:
        """The solution for one eps, from potentials or from the solution of another eps."""
        goal = self._goal(eps)
        if start is None:
            if u0 is not None:
                u0 = check_vector(u0, "u0", self.cost.n)[self.cost.order]
            k = self.n_candidates or min(DEFAULT_CANDIDATES, self.cost.n - 1)
            start = first_state(self.cost, self.cost.neighbors(k), goal, u0=u0, k=k)
        return self._judged(solve(self.screener, goal, start))

    def solve_for_degree(self, mean_degree: float) -> Solution:
        """The solution with a wanted mean degree."""
        if mean_degree > self.cost.n - 1:
            msg = f"`mean_degree` must be at most n - 1 = {self.cost.n - 1}, got {mean_degree!r}."
            raise argument_error(ValueError, "mean_degree", msg)
        enough = max(FEWEST_CANDIDATES, int(np.ceil(CANDIDATES_PER_DEGREE * mean_degree)))
        solution = solve_for_degree(
            self.screener,
            mean_degree,
            self._goal(1.0),
            n_candidates=self.n_candidates or enough,
        )
        if abs(solution.mean_degree / mean_degree - 1.0) > DEGREE_WARNING:
            msg = (
                f"No `eps` was found that gives `mean_degree`={mean_degree:g}; the nearest graph "
                f"has {solution.mean_degree:.2f}. The degree jumps where many costs are equal or "
                "points are few, and uneven masses bound it."
            )
            warnings.warn(msg, ConvergenceWarning, stacklevel=4)
        return self._judged(solution)

    def _goal(self, eps: float) -> Goal:
        return Goal(
            eps=eps,
            mass=self.mass,
            self_loops=self.self_loops,
            tol=self.tol,
            max_iter=self.max_iter,
            max_missing=self.max_missing,
            seed=self.seed,
        )

    def graph(self, solution: Solution, **params: Any) -> Graph:
        """The plan in the caller's order, with what is known about it."""
        plan = solution.plan
        assert isinstance(plan, Plan)  # costs in this process give plans in this process
        graph = Graph(
            weights=plan_weights(plan, self.cost.order, self_loops=self.self_loops),
            params=self._params_of(solution, params),
            certificate=solution.certificate,
            potentials=self._in_given_order(solution.u),
            mass=self._in_given_order(self.mass),
            points=self.points,
        )
        if not self.cost.identical and np.any(plan.costs == 0.0):
            rows = np.repeat(np.arange(self.cost.n), plan.degrees)
            elsewhere = np.zeros(self.cost.n, dtype=np.bool_)
            elsewhere[rows[plan.costs > 0.0]] = True
            report_clumps(graph, self._in_given_order(elsewhere))
        return graph

    def _params_of(self, solution: Solution, params: dict[str, Any]) -> dict[str, Any]:
        used = {True: "exact", False: "approximate", None: "auto"}[self.cost.exact]
        return {**self._params, "eps": solution.certificate.eps, "search": used, **params}

    def _in_given_order(self, values: NDArray[T]) -> NDArray[T]:
        out = np.empty_like(values)
        out[self.cost.order] = values
        return out

    def _judged(self, solution: Solution) -> Solution:
        """Complain where nothing was proved, or too many pairs are missing."""
        certificate = solution.certificate
        if certificate.status == Status.NOT_CONVERGED:
            msg = (
                f"The row sums are off by up to {certificate.marginal_error:.1e} after "
                f"{certificate.n_steps} Newton steps (`tol` is {self.tol:.1e}): "
                f"{certificate.reason.value}."
            )
            if self.on_failure == "raise":
                raise ConvergenceError(msg)
            warnings.warn(msg, ConvergenceWarning, stacklevel=4)
        if certificate.missing_share > MISSING_WARNING:
            msg = (
                f"After an approximate search {certificate.missing_text}. Lower `max_missing`, "
                "or pass `search='exact'`."
            )
            warnings.warn(msg, MissingPairsWarning, stacklevel=4)
        return solution

    @staticmethod
    def _clip_candidates(n_candidates: int | None, n: int) -> int | None:
        if n_candidates is None or n_candidates <= n - 1:
            return n_candidates
        msg = f"`n_candidates`={n_candidates} is more than there are other points; using {n - 1}."
        warnings.warn(msg, UserWarning, stacklevel=4)
        return n - 1


def plan_weights(plan: Plan, order: LongArray, *, self_loops: bool) -> SparseMatrix:
    """The matrix of a plan on points whose place in the input is ``order``."""
    n = len(order)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    loops = plan.loops if self_loops else np.zeros(n)
    counts = (plan.degrees + (loops > 0.0))[place]
    indptr = np.concatenate(([0], np.cumsum(counts)))
    columns, weights = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1])
    plan_kernels.reordered(
        plan.indptr, plan.indices, plan.weights, loops, order, place, indptr, columns, weights
    )
    if len(columns) < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    matrix = sp.csr_matrix((weights, columns, indptr), shape=(n, n))
    matrix.has_sorted_indices = True
    matrix.eliminate_zeros()  # entries that underflow
    return matrix


def report_clumps(graph: HasComponents, elsewhere: BoolArray) -> None:
    """Say when copies of one point form a component of their own.

    ``elsewhere`` marks the points with an edge to another place.
    """
    if graph.n_connected == 1:
        return
    labels = graph.component_labels
    apart = np.ones(graph.n_connected, dtype=np.bool_)
    apart[labels[elsewhere]] = False
    apart &= np.bincount(labels) > 1
    if apart.any():
        n_points = int(np.bincount(labels)[apart].sum())
        msg = (
            f"{n_points} points fall into {int(apart.sum())} group(s) of exact copies that "
            "share no edge with the rest. Drop copies and give `mass` instead, or raise `eps`."
        )
        warnings.warn(msg, DisconnectedWarning, stacklevel=4)
