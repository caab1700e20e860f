"""Transport costs between points, and the search for pairs of small cost."""

from __future__ import annotations

from otgraph.costs.base import Cost, Screen
from otgraph.costs.build import as_cost, check_input, direct_cost, kept_points
from otgraph.costs.direct import DirectCost
from otgraph.costs.metrics import metric_name
from otgraph.costs.restricted import RestrictedProblem

__all__ = [
    "Cost",
    "DirectCost",
    "RestrictedProblem",
    "Screen",
    "as_cost",
    "check_input",
    "direct_cost",
    "kept_points",
    "metric_name",
]
