"""Section 3.1: a closed spiral in 100 dimensions whose noise rises and falls."""

from __future__ import annotations

from otgraph.experiments._framework import Experiment
from otgraph.experiments.spiral.claims import summarize
from otgraph.experiments.spiral.compute import QUICK, Parameters, methods, run
from otgraph.experiments.spiral.figures import draw

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="spiral",
    title="Eigenvectors of a noisy spiral in 100 dimensions",
    source="section 3.1",
    parameters=Parameters(),
    quick=QUICK,
    methods=methods,
    run=run,
    summarize=summarize,
    draw=draw,
)
