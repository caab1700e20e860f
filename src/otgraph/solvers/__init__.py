"""Solvers: a cost in, a certified solution out."""

from __future__ import annotations

from otgraph.solvers.certificate import Certificate, Reason, Status
from otgraph.solvers.degree import guess_from, solve_for_degree
from otgraph.solvers.floors import Floors, Wish, finished
from otgraph.solvers.laws import degree_at
from otgraph.solvers.room import most_neighbors, near_pairs, require_room_for_solution
from otgraph.solvers.rounds import approach, solve
from otgraph.solvers.scales import start_between
from otgraph.solvers.screening import Screener
from otgraph.solvers.state import Effort, Goal, Solution, State, changed, first_state
from otgraph.solvers.verification import Verification

__all__ = [
    "Certificate",
    "Effort",
    "Floors",
    "Goal",
    "Reason",
    "Screener",
    "Solution",
    "State",
    "Status",
    "Verification",
    "Wish",
    "approach",
    "changed",
    "degree_at",
    "finished",
    "first_state",
    "guess_from",
    "most_neighbors",
    "near_pairs",
    "require_room_for_solution",
    "solve",
    "solve_for_degree",
    "start_between",
]
