"""Figure 1, right: a closed curve with uneven density of points."""

from __future__ import annotations

from otgraph.experiments._framework import Experiment
from otgraph.experiments.curve.claims import summarize
from otgraph.experiments.curve.compute import QUICK, Parameters, methods, run
from otgraph.experiments.curve.figures import draw

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="curve",
    title="Spurious edges on a closed curve of uneven density",
    source="figure 1",
    parameters=Parameters(),
    quick=QUICK,
    methods=methods,
    run=run,
    summarize=summarize,
    draw=draw,
    variants=("text",),  # the authors' script for this figure is not published
)
