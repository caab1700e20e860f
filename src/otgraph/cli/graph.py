"""``otgraph graph``: points in, a graph out."""

from __future__ import annotations

from typing import Annotated

import typer

from otgraph.cli.building import build_graph
from otgraph.cli.options import POINTS, GraphOptions, ReadOptions, RunOptions, option
from otgraph.cli.pictures import PICTURES, write_picture
from otgraph.cli.readers import read_points
from otgraph.cli.report import Report
from otgraph.cli.summary import describe_graph
from otgraph.cli.targets import target
from otgraph.cli.writers import GRAPHS, write_graph


def graph(
    points: Annotated[str, POINTS],
    output: Annotated[str, typer.Option("-o", "--output", help="Graph to write: .otg, …")],
    picture: Annotated[str | None, option("Picture of it to draw.", metavar="FILE")] = None,
    *,
    building: GraphOptions,
    reading: ReadOptions,
    run: RunOptions,
) -> Report:
    """Build a graph and write it to a file.

    Give --eps or --mean-degree. The name of OUTPUT decides its format: .otg keeps everything
    and is what the other commands read; .npz, .mtx, .csv, .tsv, .parquet and .graphml hold the
    weights, .h5ad the input with the slots of scanpy filled.
    """
    place = target(output, GRAPHS, what="a graph", run=run)
    drawing = None if picture is None else target(picture, PICTURES, what="a picture", run=run)
    report = Report("graph", streamed=place.streamed)
    with report.stage("read"):
        data = read_points(points, reading)
    with report.stage("build"):
        built = build_graph(data, building, run)
    with report.stage("write"):
        write_graph(place, built, data)
        report.wrote(output)
        if drawing is not None:
            from otgraph.plots import draw_graph

            write_picture(
                drawing, lambda ax: draw_graph(built, X=data.values, color="degree", ax=ax)
            )
            report.wrote(drawing.path)
    report.row("points", str(data))
    report.facts |= {"points": data.source, "n_features": data.values.shape[1]}
    describe_graph(report, built)
    return report
