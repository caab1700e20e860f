"""Memory for candidate pairs, asked before any are collected."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph._memory import format_bytes
from otgraph.exceptions import MemoryLimitError
from otgraph.solvers.newton import newton
from otgraph.solvers.state import first_state

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.costs.interface import PairSet
    from otgraph.solvers.state import Goal

# Pairs that need less than this are not asked about: the libraries hold several times as much, and
# the answer takes longer than a graph of a hundred points.
FEW_BYTES = 1 << 26
# Points of the small problem that shows how dense a graph will be, and how exactly it is solved.
# If they have at least this many neighbors each, the share of pairs is known to a few percent.
FEW_POINTS = 256
FEW_TOL = 0.05
FEW_STEPS = 50
FEWEST_NEIGHBORS = 16
# Peak bytes per near point of a point: the list (16) and both rows (2·12). There will be a plan of
# other pairs, for which the screen asks when it knows how many there are.
BYTES_PER_NEIGHBOR = 40
# The same for pairs that a screen collects: both rows 2·12 bytes, and a plan of 2·20 for those that
# are active. It is assumed that the slack of the screen leaves two fifths idle; at a million points
# in 3 and 50 dimensions it leaves 49 and 59 %.
BYTES_PER_SCREENED = 48
SURE_ROWS = 256  # rows that tell the number of pairs within a few percent


def near_pairs(cost: Cost, k: int) -> PairSet:
    """Pairs of near points, about k per point, if they fit into memory."""
    if cost.has_other_pairs:  # otherwise the caller has given the pairs
        _require(cost, float(cost.n) * k, min(BYTES_PER_NEIGHBOR, cost.bytes_per_pair))
    return cost.neighbors(k)


def most_neighbors(cost: Cost) -> int:
    """Number of near points per point that fit into memory."""
    return int(cost.usable_bytes() / cost.bytes_per_pair / cost.n)


def require_room_for_screen(cost: Cost, upper: np.ndarray) -> None:
    """Raise if the pairs with c_ij < upper_i + upper_j do not fit into memory."""
    size = min(BYTES_PER_SCREENED, cost.bytes_per_pair)
    if _all_fit(cost) or _fits(cost, cost.predict_pairs(upper) * size):
        return
    # A few rows tell the number of pairs within a quarter. Before a refusal more are worth it.
    _require(cost, cost.predict_pairs(upper, SURE_ROWS), size)


def require_room_for_solution(cost: Cost, goal: Goal) -> None:
    """Raise if the solution is so dense that its pairs do not fit into memory.

    Evenly spread points are solved by themselves, with targets lowered in proportion to their
    number. Their potentials are about those of the whole problem, and so is their share of pairs.
    The search for candidates, which would find out too, takes minutes.
    """
    if not cost.has_other_pairs or _all_fit(cost):
        return
    few, mass, share = cost.few(FEW_POINTS, goal.mass)
    if not goal.self_loops and mass.max() > 0.5 * mass.sum():
        return  # infeasible by themselves
    small = replace(goal, eps=share * goal.eps, mass=mass, floors=None)
    state = first_state(few, few.neighbors(few.most_partners), small)
    found = newton(state.problem, small.target, state.u, tol=FEW_TOL, max_iter=FEW_STEPS)
    state = replace(state, u=found.u)
    if state.mean_degree >= FEWEST_NEIGHBORS:
        # A screen collects what lies within its slack, too. (Imported here: rounds imports this.)
        from otgraph.solvers.rounds import SLACK

        degrees = state.problem.hessian(state.u).degrees
        upper = state.u + 0.5 * SLACK * small.target / np.maximum(degrees, 1.0)
        n_pairs = few.predict_pairs(upper, few.n) / few.n_pairs * cost.n_pairs
        _require(cost, n_pairs, cost.bytes_per_pair)


def _all_fit(cost: Cost) -> bool:
    return _fits(cost, float(cost.n_pairs) * cost.bytes_per_pair)


def _fits(cost: Cost, need: float) -> bool:
    return need <= FEW_BYTES or need <= cost.usable_bytes()


def _require(cost: Cost, n_pairs: float, bytes_per_pair: int) -> None:
    need = n_pairs * bytes_per_pair
    if _fits(cost, need):
        return
    msg = (
        f"The graph would have about {2.0 * n_pairs / cost.n:,.0f} candidates per point and need "
        f"{format_bytes(need)}, but {format_bytes(cost.usable_bytes())} may be used. Lower `eps`, "
        "or ask for a smaller `mean_degree`."
    )
    raise MemoryLimitError(msg)
