"""Section 3.2, last figure: one parameter for every density of points."""

from __future__ import annotations

from otgraph.experiments._framework import Experiment
from otgraph.experiments.density.claims import summarize
from otgraph.experiments.density.compute import QUICK, Parameters, methods, run
from otgraph.experiments.density.figures import draw

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="density",
    title="Labels of spiral arms in the plane as their points become denser",
    source="section 3.2, last figure",
    parameters=Parameters(),
    quick=QUICK,
    methods=methods,
    run=run,
    summarize=summarize,
    draw=draw,
)
