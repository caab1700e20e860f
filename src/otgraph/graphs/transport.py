"""A quadratic transport problem: checks the input, solves for any eps, and makes the graph."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from otgraph import exceptions
from otgraph._kernels import restricted as plan_kernels
from otgraph._memory import give_back_pages
from otgraph._parallel import Workers
from otgraph._validation import (
    LARGEST,
    check_mass,
    check_seed,
    check_vector,
)
from otgraph.costs import as_cost, check_input, kept_points
from otgraph.costs.restricted import Plan, PlanRecipe
from otgraph.exceptions import (
    ConvergenceError,
    DisconnectedWarning,
    MissingPairsWarning,
    invalid,
)
from otgraph.graphs._canonical import index_type
from otgraph.graphs.copies import collapsed
from otgraph.graphs.graph import TransportGraph
from otgraph.graphs.options import AUTO, DEFAULT_MEAN_DEGREE, DEFAULT_MIN_DEGREE
from otgraph.graphs.outliers import (
    HIGHER,
    chosen_outlier_cost,
    guessed_outlier_cost,
    with_chosen_cost,
)
from otgraph.solvers import (
    Effort,
    Goal,
    Screener,
    Solution,
    State,
    Status,
    Wish,
    changed,
    degree_at,
    finished,
    first_state,
    guess_from,
    most_neighbors,
    near_pairs,
    require_room_for_solution,
    solve,
    solve_for_degree,
    start_between,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from otgraph.costs import Cost
    from otgraph.graphs.base import BaseGraph
    from otgraph.graphs.options import QuadraticOptions
    from otgraph.typing import (
        BoolArray,
        FloatArray,
        HasComponents,
        Keywords,
        LongArray,
        PointsLike,
        SparseMatrix,
    )

T = TypeVar("T", bound=np.generic)

DEFAULT_CANDIDATES = 30
# Fewer candidates are enough if the degree is given, which matters for a million points.
FEWEST_CANDIDATES = 20
CANDIDATES_PER_DEGREE = 1.3
# Where the search compares all points, it need not be repeated for points whose neighborhood it has
# found completely.
SCREENED_PER_DEGREE = 2.0
# Fewer are enough if eps is given, because no other eps is tried.
SCREENED_PER_EPS = 1.5
# Where a pass over all pairs follows, potentials on so few candidates are hardly too high for it.
CANDIDATES_PER_EPS = 0.6
FEWEST_COUNTED = 4096  # points from which candidates are counted for an eps
DEGREE_WARNING = 0.05  # relative distance from the wanted mean degree that gives a warning
# Share of missing pairs, relative to the edges, that always gives a warning.
MISSING_WARNING = 0.05
# Largest default of `min_degree`, relative to the mean degree.
MIN_DEGREE_SHARE = 0.5
CHECK_INPUT = partial(check_input, single=True)  # float32 points stay so
EXACT_SEARCH = {"auto": None, "exact": True, "approximate": False}


class TransportProblem:
    """A transport problem without eps.

    ``check`` validates the input, and ``make_cost`` makes a cost of the result. A cluster passes
    its own functions.
    """

    def __init__(
        self,
        X: PointsLike,
        options: QuadraticOptions,
        *,
        mass: Any = None,
        progress: bool = False,
        n_jobs: int | None = -1,
        check: Callable[[Any, Any], Any] = CHECK_INPUT,
        make_cost: Callable[..., Cost] = as_cost,
    ) -> None:
        self.options = options
        self.seed = check_seed(options.random_state)
        given, checked = X, check(X, options.metric)
        X, mass, self.copies = collapsed(checked, options, mass)
        self.n_candidates = self._clip_candidates(options.n_candidates, X.shape[0])
        mass = self._masses(X, mass)
        self.cost = make_cost(
            X,
            **options.cost(),
            exact=EXACT_SEARCH[options.search],
            seed=self.seed,
            workers=Workers(n_jobs, progress=bool(progress)),
        )
        self._refuse_huge_costs()
        self._given = given, checked
        give_back_pages(given)
        del X
        self.mass = mass[self.cost.order]
        self.screener = Screener(self.cost)
        self.wish = self._wish(0)
        if self.cost.identical:
            msg = "All points of `X` are identical: all weights are equal."
            warnings.warn(msg, UserWarning, stacklevel=3)

    def _masses(self, X: Any, mass: Any) -> FloatArray:
        """Masses of all points, checked."""
        # A point that may hold mass back, or has a self-loop, can have any mass.
        keeps = self.options.self_loops or self.options.outlier_cost is not None
        return check_mass(mass, X.shape[0], self_loops=keeps)

    @cached_property
    def points(self) -> Any:
        """What graphs keep of the points, copied when the first one is made."""
        kept = self._kept(*self._given)
        give_back_pages(self._given[0])  # before the matrix is made
        return kept

    def _kept(self, given: Any, X: Any) -> Any:
        """What the graph keeps of the points."""
        return kept_points(given, X, self.options.metric)

    def _refuse_huge_costs(self) -> None:
        """The solver squares costs."""
        if LARGEST < self.cost.largest < np.inf:
            msg = (
                f"has costs up to {self.cost.largest:.3g}, whose squares overflow; rescale it, or "
                "pass `normalize=True`."
            )
            raise invalid("X", msg)

    def solve_goal(
        self,
        eps: float | None,
        mean_degree: float | None,
        u0: ArrayLike | None = None,
        *,
        chosen: bool = False,
        reached: tuple[float, FloatArray] | None = None,
    ) -> tuple[Solution, Keywords]:
        """The solution for an eps or a mean degree, and the parameters to record.

        If the library has chosen eps, lonely points get minimum flows by default. ``reached`` are
        the eps and the potentials, in the order of the cost, of an earlier run to go on from.
        """
        if eps is not None:
            self.wish = self._wish(DEFAULT_MIN_DEGREE if chosen else 0)
            if reached is not None and u0 is None:
                u0 = self.in_given_order(reached[1])
            return self.finished(self.solve(eps, u0=u0)), {}
        if mean_degree is None:
            mean_degree = min(DEFAULT_MEAN_DEGREE, 2.0 * self.cost.n_pairs / self.cost.n)
        self.wish = self._wish(default_min_degree(mean_degree))
        return self.solve_for_degree(mean_degree, reached), {"mean_degree": mean_degree}

    def finished(self, solution: Solution) -> Solution:
        """The solution for one eps with the minimum flows that the options ask for."""
        if not self.wish:
            return solution
        goal, work = self._goal(solution.certificate.eps), Effort.behind(solution.certificate)
        return self._judged(
            finished(self.screener, goal, solution.state, work, self.wish, certified=solution)
        )

    def solve(
        self,
        eps: float,
        *,
        u0: ArrayLike | None = None,
        start: State | None = None,
        late_plan: bool = False,
    ) -> Solution:
        """The solution for one eps, from potentials or from the solution of another eps.

        ``late_plan`` says whether the entries of its plan may never be needed.
        """
        goal = replace(self._goal(eps), late_plan=late_plan)
        if u0 is not None:
            u0 = self._checked_start(u0)[self.cost.order]
        if start is None:  # otherwise the pairs of a similar solution fit
            require_room_for_solution(self.cost, goal)
        if start is None and u0 is None and not self.cost.nearest_are_partners:
            start = start_between(self.screener, goal, eps=eps).state
        elif start is None:
            k = self.n_candidates or self._candidates_at(goal)
            pairs = near_pairs(self.cost, k)
            start = first_state(self.cost, pairs, goal, u0=u0, k=k, spare=True)
            del pairs
        if self.options.outlier_cost != AUTO:
            return self._judged(solve(self.screener, goal, start))
        effort = Effort()
        guess = chosen_outlier_cost(start.problem.start(goal.target))
        goal, start = with_chosen_cost(self.screener, goal, start, guess, effort)
        return self._judged(_after(effort, solve(self.screener, goal, start)))

    def _candidates_at(self, goal: Goal) -> int:
        """First candidates for an eps.

        Where the search compares all points, enough of them spare another pass. Elsewhere that
        pass finds fewer pairs if they are not far fewer than neighbors. Among few points it takes
        no longer than to find out how many these are.
        """
        cost, k = self.cost, DEFAULT_CANDIDATES
        if cost.has_other_pairs and cost.n >= FEWEST_COUNTED:
            share = SCREENED_PER_EPS if cost.compares_all else CANDIDATES_PER_EPS
            wanted = share * degree_at(cost, goal.eps, goal.mass)
            k = max(k, min(int(np.ceil(wanted)), most_neighbors(cost)))
        return min(k, cost.most_partners)

    def _checked_start(self, u0: ArrayLike) -> FloatArray:
        if self.copies is None:
            return check_vector(u0, "u0", self.cost.n)
        return check_vector(u0, "u0", len(self.copies.group))[self.copies.first]

    def solve_plain(self, mean_degree: float) -> Solution:
        """The solution with a wanted mean degree and no minimum flows, whatever options say."""
        self.wish = Wish()
        return self.solve_for_degree(mean_degree)

    def solve_for_degree(
        self, mean_degree: float, reached: tuple[float, FloatArray] | None = None
    ) -> Solution:
        """The solution with a wanted mean degree; see `solve_goal`."""
        self._check_degree(mean_degree)
        enough = self._enough_candidates(mean_degree)
        if self.wish.min_degree > mean_degree:
            msg = f"must be at most `mean_degree`={mean_degree:g}, got {self.wish.min_degree!r}."
            raise invalid("min_degree", msg)
        goal, n_candidates = self._goal(1.0), self.n_candidates or enough
        start = None
        if not self.cost.nearest_are_partners:
            start = start_between(self.screener, goal, degree=mean_degree)
        elif reached is not None:
            eps, u = reached
            start = guess_from(
                self.screener, mean_degree, goal.at(eps), u, n_candidates=n_candidates
            )

        def solved(goal: Goal) -> Solution:
            return solve_for_degree(
                self.screener, mean_degree, goal, self.wish, n_candidates=n_candidates, start=start
            )

        if self.options.outlier_cost == AUTO:
            price = guessed_outlier_cost(self.cost, mean_degree)
            first = solved(replace(goal, outlier_cost=HIGHER * price))
            effort, at_eps = Effort.behind(first.certificate), goal.at(first.certificate.eps)
            chosen, _ = with_chosen_cost(self.screener, at_eps, first.state, price, effort)
            solution = _after(effort, solved(chosen))
        else:
            solution = solved(goal)
        if abs(solution.mean_degree / mean_degree - 1.0) > DEGREE_WARNING:
            msg = (
                f"No `eps` was found that gives `mean_degree`={mean_degree:g}; the nearest graph "
                f"has {solution.mean_degree:.2f}. The degree jumps where many costs are equal or "
                "points are few, and uneven masses limit it."
            )
            warnings.warn(msg, exceptions.ConvergenceWarning, stacklevel=4)
        return self._judged(solution)

    def _enough_candidates(self, mean_degree: float) -> int:
        """First candidates for a mean degree."""
        if self.cost.compares_all:
            return int(np.ceil(SCREENED_PER_DEGREE * mean_degree))
        return max(FEWEST_CANDIDATES, int(np.ceil(CANDIDATES_PER_DEGREE * mean_degree)))

    def _check_degree(self, mean_degree: float) -> None:
        if mean_degree > self.cost.n - 1:
            msg = f"must be at most n - 1 = {self.cost.n - 1}, got {mean_degree!r}."
            raise invalid("mean_degree", msg)

    def _wish(self, default_degree: int) -> Wish:
        """The minimum flows that the options ask for."""
        asked = self.options.min_degree
        if self.options.outlier_cost is not None:
            default_degree = 0  # the lonely drop out instead
        return Wish(
            min_degree=default_degree if asked is None else asked,
            connect=bool(self.options.connect),
            strict=asked is not None,
        )

    def _goal(self, eps: float) -> Goal:
        options, price = self.options, self.options.outlier_cost
        return Goal(
            eps=eps,
            mass=self.mass,
            self_loops=options.self_loops,
            tol=options.tol,
            max_iter=options.max_iter,
            max_missing=options.max_missing,
            seed=self.seed,
            # If it is to be chosen, `with_chosen_cost` does that.
            outlier_cost=np.inf if price is None or price == AUTO else float(price),
        )

    def only_graph(
        self,
        eps: float | None,
        mean_degree: float | None,
        u0: ArrayLike | None = None,
        *,
        choice: Keywords,
    ) -> TransportGraph:
        """The graph for an eps or a mean degree, as the last that is made of this problem.

        Pairs and points are freed before its matrix is made. ``choice`` records how the library
        has chosen eps, if it has.
        """
        solution, found = self.solve_goal(eps, mean_degree, u0, chosen=bool(choice))
        solution = self.freed(solution)  # the old one has the pairs, also as long as it has a name
        return self.graph(solution, **found, **choice)

    def freed(self, solution: Solution) -> Solution:
        """The last solution, without pairs and points; nothing else can be solved any more."""
        solution.state.problem.release()
        self.screener.forget()
        self.cost.forget_points()
        return changed(solution, state=changed(solution.state, screen=None))

    def graph(self, solution: Solution, **params: Any) -> TransportGraph:
        """The plan as a graph with its certificate; warns of duplicates that stand apart."""
        graph, plan = self.distinct_graph(solution, **params), solution.plan
        assert isinstance(plan, Plan)
        if not self.cost.identical and np.any(plan.costs == 0.0):
            rows = np.repeat(np.arange(self.cost.n), plan.degrees)
            elsewhere = np.zeros(self.cost.n, dtype=np.bool_)
            elsewhere[rows[plan.costs > 0.0]] = True
            report_duplicates(graph, self.in_given_order(elsewhere))
        return self.with_copies(graph)

    def distinct_graph(self, solution: Solution, **params: Any) -> TransportGraph:
        """The plan between distinct points, in the order of the input."""
        plan = solution.plan
        assert isinstance(plan, Plan)  # a cost in this process gives a plan in this process
        return self.assembly(solution, plan, params)()

    def assembly(
        self, solution: Solution, plan: Plan | PlanRecipe, params: Keywords
    ) -> Callable[[], TransportGraph]:
        """The function that makes the graph; it keeps little but the plan, or its recipe, alive."""
        make = partial(
            TransportGraph,
            params=self.params_of(solution, params),
            certificate=solution.certificate,
            points=self.points,
            floors=self.floors_of(solution),
        )
        u, mass, order, self_loops = solution.u, self.mass, self.cost.order, self.options.self_loops

        def assembled() -> TransportGraph:
            weights, edge_costs = plan_weights(plan.made(), order, self_loops=self_loops)
            return make(
                weights=weights,
                edge_costs=edge_costs,
                potentials=_in_given_order(u, order),
                mass=_in_given_order(mass, order),
            )

        return assembled

    def with_copies(self, graph: TransportGraph) -> TransportGraph:
        """The graph with one row for every copy."""
        return graph if self.copies is None else self.copies.spread_graph(graph)

    def params_of(self, solution: Solution, params: Keywords) -> Keywords:
        """The options and results that a graph records."""
        used = {True: "exact", False: "approximate", None: "auto"}[self.cost.exact]
        price = solution.certificate.outlier_cost
        if solution.certificate.status == Status.EXACT:
            used = "exact"  # the search may have been widened for minimum flows
        return {
            "method": "quadratic",
            **self.options.record(),
            "eps": solution.certificate.eps,
            "scale": self.cost.scale,
            "search": used,
            # The masses or the allowed pairs may leave no room for the default.
            "min_degree": min(self.wish.min_degree, int(np.min(solution.plan.degrees))),
            "connect": self.wish.connect,
            "outlier_cost": price if price < np.inf else None,
            **params,
        }

    def floors_of(self, solution: Solution) -> SparseMatrix | None:
        """The minimum flows in the order of the input."""
        floors = solution.floors
        if floors is None:
            return None
        i, j = self.cost.order[floors.i], self.cost.order[floors.j]
        shape = (self.cost.n, self.cost.n)
        half = sp.coo_matrix((floors.flows, (i, j)), shape=shape).tocsr()
        return sp.csr_matrix(half + half.T)

    def report_components(self, graph: BaseGraph) -> None:
        """Warn about several components unless `connect` was given; outliers do not count."""
        if self.options.connect is not None or graph.n_connected == 1:
            return
        if graph.n_connected - int(np.count_nonzero(graph.dropped)) > 1:
            message = _components_message(
                graph, self.wish.min_degree, soft=self.options.outlier_cost is not None
            )
            warnings.warn(message, DisconnectedWarning, stacklevel=3)

    def in_given_order(self, values: NDArray[T]) -> NDArray[T]:
        """A vector in the order of the input."""
        return _in_given_order(values, self.cost.order)

    def _judged(self, solution: Solution) -> Solution:
        """Warn or raise if nothing was proved; warn if too many pairs are missing."""
        certificate = solution.certificate
        if certificate.status == Status.NOT_CONVERGED:
            msg = (
                f"The row sums are off by up to {certificate.marginal_error:.1e} after "
                f"{certificate.n_steps} Newton steps (`tol` is {self.options.tol:.1e}): "
                f"{certificate.reason.value}."
            )
            if self.options.on_failure == "raise":
                raise ConvergenceError(msg)
            warnings.warn(msg, exceptions.ConvergenceWarning, stacklevel=4)
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


def _in_given_order(values: NDArray[T], order: LongArray) -> NDArray[T]:
    out = np.empty_like(values)
    out[order] = values
    return out


def plan_weights(
    plan: Plan, order: LongArray, *, self_loops: bool
) -> tuple[SparseMatrix, FloatArray]:
    """The matrix of a plan in the order of the input, and the costs of its entries."""
    n, places = len(order), np.arange(len(order))
    loops = plan.loops if self_loops else np.zeros(n)
    if np.array_equal(order, places) and not loops.any():
        indptr, columns, weights, costs = plan.indptr, plan.indices, plan.weights, plan.costs
        kind = index_type(max(len(columns), n))
        columns = columns.astype(kind, copy=False)
    else:
        place = np.empty(n, dtype=np.int64)
        place[order] = places
        counts = (plan.degrees + (loops > 0.0))[place]
        indptr = np.concatenate(([0], np.cumsum(counts)))
        kind = index_type(max(int(indptr[-1]), n))  # scipy wants one type for both arrays
        columns, (weights, costs) = np.empty(indptr[-1], kind), np.empty((2, indptr[-1]))
        source = (plan.indptr, plan.indices, plan.weights, plan.costs, loops, order, place)
        target = (indptr, columns, weights, costs)
        plan.rows.run(lambda a, b: plan_kernels.reordered(*source, a, b, *target))
    indptr = indptr.astype(kind)
    matrix = sp.csr_matrix((n, n))  # the arrays are known to be right; scipy would check them
    matrix.data, matrix.indices, matrix.indptr = weights, columns, indptr
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    if not weights.all():  # entries that underflow to zero
        costs = costs[weights != 0.0]
        matrix.eliminate_zeros()
    return matrix, costs


def default_min_degree(mean_degree: float) -> int:
    """Default of `min_degree`: 4, or half the mean degree if that is less."""
    return max(1, min(DEFAULT_MIN_DEGREE, int(MIN_DEGREE_SHARE * mean_degree)))


NAMED_COMPONENTS = 5  # in a warning


def _components_message(graph: BaseGraph, min_degree: int, *, soft: bool) -> str:
    joins_small = "" if min_degree else "`min_degree=4` to join only the small ones, "
    kept = graph.component_labels[~graph.dropped]
    sizes = np.sort(np.unique(kept, return_counts=True)[1])[::-1]
    named = ", ".join(f"{size:,}" for size in sizes[:NAMED_COMPONENTS])
    advice = f"Pass `connect=True` to join them, {joins_small}or"
    if soft:
        advice = "Raise `outlier_cost` to join them, or pass"
    return (
        f"The graph has {len(sizes):,} connected components (of {named}"
        f"{', ...' if len(sizes) > NAMED_COMPONENTS else ''} points). {advice} "
        "`connect=False` if they are apart."
    )


def _after(effort: Effort, solution: Solution) -> Solution:
    """The solution, with the work that came before it."""
    effort.add(Effort.behind(solution.certificate))
    certificate = replace(
        solution.certificate,
        n_steps=effort.steps,
        n_screens=effort.screens,
        history=tuple(effort.history),
    )
    return replace(solution, certificate=certificate)


def report_duplicates(graph: HasComponents, elsewhere: BoolArray) -> None:
    """Warn if duplicates are disconnected from the rest.

    ``elsewhere`` marks the points with an edge to a point that is not a duplicate.
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
            f"{n_points} points fall into {int(apart.sum())} group(s) of exact duplicates that "
            "share no edge with the rest. Pass `collapse=True` to make copies one point, or raise "
            "`eps`."
        )
        warnings.warn(msg, DisconnectedWarning, stacklevel=4)
