"""Graphs along a path of regularizations."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np

from otgraph._validation import check_positive, to_numbers
from otgraph.costs.restricted import LatePlan, Plan, PlanRecipe
from otgraph.exceptions import invalid
from otgraph.graphs.keywords import shows
from otgraph.graphs.mean import mean_graph
from otgraph.graphs.options import QuadraticOptions
from otgraph.graphs.transport import TransportProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Unpack

    from numpy.typing import ArrayLike, NDArray

    from otgraph.graphs.graph import TransportGraph
    from otgraph.graphs.mean import MultiscaleGraph
    from otgraph.graphs.options import QuadraticKeywords
    from otgraph.solvers import Solution, State
    from otgraph.solvers.certificate import Certificate
    from otgraph.typing import FloatArray, IntArray, LongArray, PointsLike


@shows({"quadratic": QuadraticOptions})
def eps_path(
    X: PointsLike,
    eps: ArrayLike,
    *,
    mass: ArrayLike | None = None,
    progress: bool = False,
    n_jobs: int | None = -1,
    **options: Unpack[QuadraticKeywords],
) -> EpsPath:
    """Quadratic OT graphs of the same points for many values of ``eps``.

    The values are solved from the largest to the smallest, and each solution starts the next. The
    pairs found for a large ``eps`` usually contain all pairs of a smaller one. The whole path
    therefore takes only a few times as long as one solve. :func:`otgraph.quadratic_ot_graph` says
    more about the keywords.

    Parameters
    ----------
    X
        Points, one per row, or costs with ``metric="precomputed"``.
    eps
        Values in any order.
    mass, progress, n_jobs
        As in :func:`otgraph.quadratic_ot_graph`.
    **options

    Returns
    -------
    EpsPath
        A sequence of graphs in the order of ``eps``.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> path = otgraph.eps_path(X, [0.1, 1.0, 10.0])
    >>> bool(np.all(np.diff(path.mean_degree) > 0))
    True
    """
    values = checked_values(eps, "eps")
    chosen = QuadraticOptions.of(eps_path, options)
    problem = TransportProblem(X, chosen, mass=mass, progress=progress, n_jobs=n_jobs)
    # Minimum flows and copies need entries at once.
    late_plans = not problem.wish and problem.copies is None
    graphs = {
        place: _graph_later(problem, problem.finished(solution))
        for place, solution in solved_along(problem, values, late_plans=late_plans)
    }
    problem.screener.forget()  # graphs that are made later keep only the pairs of their plans
    problem.cost.forget_points()
    return EpsPath._of([graphs[place] for place in range(len(values))])


def _graph_later(problem: TransportProblem, solution: Solution) -> TransportGraph | PendingGraph:
    """A graph that is made when it is asked for, if that means only to sort its plan."""
    plan = solution.plan
    assert isinstance(plan, (Plan, LatePlan))  # a cost in this process gives one in this process
    made = plan.recipe if isinstance(plan, LatePlan) else plan
    if problem.copies is not None or not plan.positive:
        return problem.graph(replace(solution, plan=made.made()))
    return PendingGraph(made, solution.certificate, problem.assembly(solution, made, {}))


def checked_values(values: ArrayLike, name: str) -> FloatArray:
    """Positive numbers as a vector."""
    found = np.atleast_1d(to_numbers(values, name, "be a list of positive numbers"))
    if found.ndim != 1 or not len(found):
        msg = f"must be a list of positive numbers, got an array of shape {found.shape}."
        raise invalid(name, msg)
    for value in found:
        check_positive(float(value), name)
    return found


def solved_along(
    problem: TransportProblem, values: FloatArray, *, late_plans: bool = False
) -> Iterator[tuple[int, Solution]]:
    """Solutions from the largest eps to the smallest, each with its place in ``values``.

    They have no minimum flows yet. ``late_plans`` says whether the entries of plans may never be
    needed.
    """
    walk = WarmPath(problem)
    for place in np.argsort(-values, kind="stable"):
        value = float(values[place])
        solution = problem.solve(value, start=walk.start(value), late_plan=late_plans)
        walk.add(solution)
        yield int(place), solution


class WarmPath:
    """Starts for the solutions of one problem along a path of eps; decreasing eps is fastest."""

    def __init__(self, problem: TransportProblem) -> None:
        self.problem = problem
        self._solved: list[Solution] = []

    def start(self, eps: float) -> State | None:
        """The last candidates with extrapolated potentials.

        Potentials are piecewise linear in eps, but over many pieces they grow more slowly: straight
        lines in the root of eps leave a third to a half of the misplaced mass of lines in eps.
        """
        if not self._solved:
            return None
        before, last = self._solved[0], self._solved[-1]
        then, now = np.sqrt(before.certificate.eps), np.sqrt(last.certificate.eps)
        if then == now:
            return last.state
        share = (np.sqrt(eps) - now) / (now - then)
        return replace(last.state, u=last.u + share * (last.u - before.u))

    def add(self, solution: Solution) -> None:
        """Continue from this solution."""
        self._solved = [*self._solved[-1:], solution]
        self.problem.screener.keep(solution.state.screen)


class PendingGraph:
    """A graph whose matrix is made when it is asked for; the table of a path needs only the plan.

    To sort the plans of 25 values by the order of the input takes as long as one solve.
    """

    def __init__(
        self, plan: Plan | PlanRecipe, certificate: Certificate, make: Callable[[], TransportGraph]
    ) -> None:
        self.certificate, self.eps = certificate, certificate.eps
        self._plan: Plan | PlanRecipe | None = plan
        self._make: Callable[[], TransportGraph] | None = make
        self._graph: TransportGraph | None = None

    @property
    def graph(self) -> TransportGraph:
        """The graph itself."""
        if self._graph is None:
            assert self._make is not None
            self._graph = self._make()
            self._plan = self._make = None
        return self._graph

    @property
    def degrees(self) -> LongArray | IntArray:
        """Number of neighbors of every point, in any order."""
        return self.graph.degrees if self._plan is None else self._plan.degrees

    @property
    def mean_degree(self) -> float:
        """Mean number of neighbors."""
        return float(self.degrees.mean())

    @cached_property
    def n_connected(self) -> int:
        """Number of connected components."""
        if self._plan is None:
            return self.graph.n_connected
        return int(self._plan.made().component_labels().max()) + 1


# Columns of the table of a path, and their types.
TABLE = {
    "eps": "f8",
    "mean_degree": "f8",
    "min_degree": "i8",
    "max_degree": "i8",
    "n_connected": "i8",
    "status": "U20",
    "marginal_error": "f8",
    "duality_gap": "f8",
    "n_steps": "i8",
}


class EpsPath:
    """A sequence of graphs, one per value of ``eps``.

    Parameters
    ----------
    graphs
        The graphs in order; :func:`otgraph.eps_path` builds them.

    Examples
    --------
    >>> import otgraph
    >>> path = otgraph.eps_path(otgraph.datasets.noisy_spiral(n=100).X, [0.3, 1.0, 3.0])
    >>> path
    EpsPath(3 graphs, eps 0.3 to 3, mean degree 5.86 to 25.7)
    >>> path[0].n, path.nearest(mean_degree=10).eps
    (100, 1.0)
    """

    def __init__(self, graphs: Sequence[TransportGraph]) -> None:
        self._graphs: list[TransportGraph | PendingGraph] = list(graphs)

    @classmethod
    def _of(cls, graphs: list[TransportGraph | PendingGraph]) -> EpsPath:
        path = cls([])
        path._graphs = graphs
        return path

    def __getstate__(self) -> dict[str, object]:
        """Only graphs that were made can be pickled."""
        return {"_graphs": list(self)}

    def __len__(self) -> int:
        """Number of graphs."""
        return len(self._graphs)

    def __iter__(self) -> Iterator[TransportGraph]:
        """The graphs in order."""
        return map(_made, self._graphs)

    @overload
    def __getitem__(self, key: int) -> TransportGraph: ...
    @overload
    def __getitem__(self, key: slice) -> EpsPath: ...
    def __getitem__(self, key: int | slice) -> TransportGraph | EpsPath:
        """A graph by position, or a part of the path."""
        if isinstance(key, slice):
            return EpsPath._of(self._graphs[key])
        return _made(self._graphs[key])

    def __repr__(self) -> str:
        """Summary of the path in one line."""
        if not self._graphs:
            return "EpsPath(empty)"
        return (
            f"EpsPath({len(self)} graphs, eps {self.eps.min():.3g} to {self.eps.max():.3g}, "
            f"mean degree {self.mean_degree.min():.3g} to {self.mean_degree.max():.3g})"
        )

    @property
    def eps(self) -> FloatArray:
        """The regularizations."""
        return np.array([graph.eps for graph in self._graphs])

    @property
    def mean_degree(self) -> FloatArray:
        """Mean number of neighbors of each graph."""
        return np.array([graph.mean_degree for graph in self._graphs])

    @property
    def n_connected(self) -> NDArray[np.int64]:
        """Number of connected components of each graph."""
        return np.array([graph.n_connected for graph in self._graphs], dtype=np.int64)

    def nearest(self, *, mean_degree: float) -> TransportGraph:
        """The graph whose mean degree is closest to a wanted one.

        Parameters
        ----------
        mean_degree
            The wanted mean number of neighbors.
        """
        return self[int(np.argmin(np.abs(self.mean_degree - mean_degree)))]

    def mean(self, shares: ArrayLike | None = None) -> MultiscaleGraph:
        """The mean of the graphs: one graph that holds all scales.

        It is symmetric and its rows sum to the masses, like those of the graphs.
        :func:`otgraph.multiscale_graph` builds the same without keeping a path.

        Parameters
        ----------
        shares
            Positive weights of the graphs in the mean, in the order of the path; equal by default.
            They are divided by their sum.

        Examples
        --------
        >>> import otgraph
        >>> path = otgraph.eps_path(otgraph.datasets.noisy_spiral(n=100).X, [0.3, 1.0, 3.0])
        >>> path.mean().n_parts
        3
        """
        if not self._graphs:
            raise invalid("path", "must hold at least one graph, got an empty path.")
        return mean_graph(list(self), shares, count=len(self))

    def table(self) -> NDArray[np.void]:
        """One record per graph; ``pandas.DataFrame(path.table())`` makes it a data frame."""
        rows = [
            (
                graph.eps, graph.mean_degree, graph.degrees.min(), graph.degrees.max(),
                graph.n_connected, str(graph.certificate.status), graph.certificate.marginal_error,
                graph.certificate.duality_gap, graph.certificate.n_steps,
            )
            for graph in self._graphs
        ]  # fmt: skip
        return np.array(rows, dtype=list(TABLE.items()))


def _made(graph: TransportGraph | PendingGraph) -> TransportGraph:
    return graph.graph if isinstance(graph, PendingGraph) else graph
