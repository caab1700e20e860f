"""``otgraph demo``: the noisy spiral as a picture, or as points to try the commands on."""

from __future__ import annotations

from typing import Annotated

import typer

from otgraph.cli.options import RunOptions
from otgraph.cli.pictures import PICTURES, write_figure
from otgraph.cli.report import Report
from otgraph.cli.targets import target
from otgraph.cli.writers import ARRAYS, TABLES, write_array


def demo(
    output: Annotated[
        str, typer.Option("-o", "--output", help="Picture (.png, …) or points (.csv, .npy, …)")
    ] = "spiral.png",
    *,
    run: RunOptions,
) -> Report:
    """Draw the graph of a noisy spiral beside its nearest neighbors, or write its points."""
    place = target(output, (*PICTURES, *TABLES, *ARRAYS), what="a demo", run=run)
    report = Report("demo", streamed=place.streamed)
    if place.suffix in PICTURES:
        from otgraph.experiments import demo as spiral_demo

        with report.stage("build"):
            report.body, figure = spiral_demo.run()
        with report.stage("write"):
            write_figure(place, figure)
    else:
        from otgraph import datasets

        X = datasets.noisy_spiral().X
        with report.stage("write"):
            write_array(place, X, [f"x{i + 1}" for i in range(X.shape[1])])
        report.brief.append(f"{X.shape[0]:,} points in {X.shape[1]} dimensions")
        report.row("points", f"{X.shape[0]:,} in {X.shape[1]} dimensions, a noisy spiral")
        report.facts |= {"n_points": X.shape[0], "n_features": X.shape[1]}
    report.wrote(place.path)
    return report
