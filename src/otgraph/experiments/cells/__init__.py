"""Section 3.3: denoising the expression of genes in single cells."""

from __future__ import annotations

from otgraph.experiments._framework import Experiment
from otgraph.experiments.cells.claims import summarize
from otgraph.experiments.cells.compute import QUICK, Parameters, methods, run
from otgraph.experiments.cells.figures import draw
from otgraph.experiments.cells.preparation import with_data

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="cells",
    title="Denoised gene expression of single cells",
    source="section 3.3",
    parameters=Parameters(),
    quick=QUICK,
    methods=methods,
    run=run,
    summarize=summarize,
    draw=draw,
    variants=("text",),  # the text names no settings; all are those of the authors' scripts
    seeded=False,
    with_data=with_data,
)
