"""Section 3.2: labels of spiral arms in 100 dimensions from 2.5 % of them."""

from __future__ import annotations

from otgraph.experiments._framework import Experiment
from otgraph.experiments.arms.claims import summarize
from otgraph.experiments.arms.compute import QUICK, Parameters, methods, run
from otgraph.experiments.arms.figures import draw

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="arms",
    title="Labels of ten noisy spiral arms in 100 dimensions",
    source="section 3.2",
    parameters=Parameters(),
    quick=QUICK,
    methods=methods,
    run=run,
    summarize=summarize,
    draw=draw,
)
