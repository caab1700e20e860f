"""Beyond the paper: handwritten digits, clustered and labeled."""

from __future__ import annotations

from otgraph.experiments._framework import Experiment
from otgraph.experiments.digits.claims import summarize
from otgraph.experiments.digits.compute import QUICK, Parameters, methods, run
from otgraph.experiments.digits.figures import draw

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="digits",
    title="Clusters and labels of handwritten digits",
    source="",
    parameters=Parameters(),
    quick=QUICK,
    methods=methods,
    run=run,
    summarize=summarize,
    draw=draw,
    variants=("text",),
)
