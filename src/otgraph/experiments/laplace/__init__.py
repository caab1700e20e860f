"""The paper's open question: whether quadratic OT tends to the operator of Laplace-Beltrami.

Section 4 finds it plausible. Here it is measured on three manifolds whose spectra are known.
"""

from __future__ import annotations

from otgraph.experiments._framework import Experiment
from otgraph.experiments.laplace.claims import summarize
from otgraph.experiments.laplace.compute import QUICK, Parameters, methods, run
from otgraph.experiments.laplace.figures import draw

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="laplace",
    title="Eigenvalues and eigenfunctions against those of Laplace-Beltrami",
    source="section 4, open question",
    parameters=Parameters(),
    quick=QUICK,
    methods=methods,
    run=run,
    summarize=summarize,
    draw=draw,
    variants=("text",),
)
