"""Solvers: a cost in, a certified solution out."""

from __future__ import annotations

from otgraph.solvers.certificate import Certificate, Status
from otgraph.solvers.screening import Screener
from otgraph.solvers.solve import Solution, solve

__all__ = ["Certificate", "Screener", "Solution", "Status", "solve"]
