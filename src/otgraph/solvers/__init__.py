"""Solvers: a cost in, a certified solution out."""

from __future__ import annotations

from otgraph.solvers.certificate import Certificate, Status
from otgraph.solvers.degree import solve_for_degree
from otgraph.solvers.missing import missing_pairs
from otgraph.solvers.screening import Screener
from otgraph.solvers.solve import Solution, Start, solve, start_on

__all__ = [
    "Certificate",
    "Screener",
    "Solution",
    "Start",
    "Status",
    "missing_pairs",
    "solve",
    "solve_for_degree",
    "start_on",
]
