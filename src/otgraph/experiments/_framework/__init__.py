"""Common code of all experiments: running, statistics, reports and figures."""

from __future__ import annotations

from otgraph.experiments._framework.experiment import (
    Claim,
    Experiment,
    Picture,
    Summary,
    Task,
    Verdict,
)
from otgraph.experiments._framework.grids import (
    KNN_OPTIONS,
    graph_at,
    graphs_along,
    knn_gaussian_path,
    log_grid,
)
from otgraph.experiments._framework.statistics import (
    Best,
    as_title,
    at_best,
    best_of,
    best_per_seed,
    circle_variations,
    judged_lead,
    paired_sentence,
    share_within,
    spread,
    table_of_best,
)

__all__ = [
    "KNN_OPTIONS",
    "Best",
    "Claim",
    "Experiment",
    "Picture",
    "Summary",
    "Task",
    "Verdict",
    "as_title",
    "at_best",
    "best_of",
    "best_per_seed",
    "circle_variations",
    "graph_at",
    "graphs_along",
    "judged_lead",
    "knn_gaussian_path",
    "log_grid",
    "paired_sentence",
    "share_within",
    "spread",
    "table_of_best",
]
