"""``otgraph graph``: points in, a graph out."""

from __future__ import annotations

from typing import Annotated

import typer

from otgraph.cli.building import build_graph
from otgraph.cli.options import GraphOptions, ReadOptions, RunOptions
from otgraph.cli.readers import read_points
from otgraph.cli.report import Report
from otgraph.cli.summary import describe_graph
from otgraph.cli.targets import target
from otgraph.cli.writers import GRAPHS, write_graph


def graph(
    points: Annotated[str, typer.Argument(help="Points: .npy, .npz, .csv, … or - for stdin.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Graph to write: .otg, …")],
    building: GraphOptions,
    reading: ReadOptions,
    run: RunOptions,
) -> Report:
    """Build a graph and write it to a file.

    Give --eps or --mean-degree. The name of OUTPUT decides its format: .otg keeps everything
    and is what the other commands read; .npz, .mtx, .csv, .tsv, .parquet and .graphml hold the
    weights, .h5ad the input with the slots of scanpy filled.
    """
    place = target(output, GRAPHS, what="a graph", force=run.force)
    report = Report("graph", streamed=place.streamed)
    with report.stage("read"):
        data = read_points(points, reading)
    with report.stage("build"):
        built = build_graph(data, building, run)
    with report.stage("write"):
        write_graph(place, built, data)
    report.row("points", str(data))
    report.facts |= {"points": data.source, "n_features": data.values.shape[1]}
    describe_graph(report, built)
    report.wrote(output)
    return report
