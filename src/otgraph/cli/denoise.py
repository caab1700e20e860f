"""``otgraph denoise``: features smoothed over a graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer

from otgraph.cli.building import build_graph, finished_graph
from otgraph.cli.frames import chosen, split_list
from otgraph.cli.options import FEATURES, GraphOptions, ReadOptions, RunOptions, option
from otgraph.cli.readers import read_points
from otgraph.cli.report import Report
from otgraph.cli.summary import describe_graph
from otgraph.cli.targets import target
from otgraph.cli.writers import ARRAYS, TABLES, write_array


def denoise(
    features: Annotated[str, FEATURES],
    output: Annotated[
        str, typer.Option("-o", "--output", help="Denoised features: .csv, .npy, .parquet, …")
    ],
    graph: Annotated[
        str | None, option("Graph to use instead of building one.", metavar="FILE")
    ] = None,
    t: Annotated[
        str, typer.Option("-t", "--t", help="Steps of the walk, or auto as MAGIC chooses.")
    ] = "3",
    genes: Annotated[
        list[str] | None, option("Columns to denoise and write.", default="all", metavar="NAMES")
    ] = None,
    rescale: Annotated[
        bool, option("Stretch columns to the range that they had.", "--rescale")
    ] = False,
    *,
    building: GraphOptions,
    reading: ReadOptions,
    run: RunOptions,
) -> Report:
    """Smooth features by a short random walk on the graph of the points.

    The graph is built from the same file with the options of `otgraph graph`, or taken from
    --graph. Of an .h5ad the graph is built on --use-rep, and X is denoised.
    """
    place = target(output, (*TABLES, *ARRAYS), what="an array", run=run)
    steps = _steps(t)
    import otgraph

    report = Report("denoise", streamed=place.streamed)
    with report.stage("read"):
        if graph is not None:
            reading = replace(reading, use_rep=reading.use_rep or "X")
        data = read_points(features, reading)
    if graph is None:
        with report.stage("build"):
            built = build_graph(data, building, run)
    else:
        with report.stage("read"):
            built = finished_graph(graph, building)
    values, names = data.values, data.column_names
    if data.adata is not None:
        values, names = data.adata.X, np.asarray(data.adata.var_names, str)
    if names is None:
        names = np.array([f"x{i}" for i in range(values.shape[1])])
    columns = chosen(names, split_list(genes), None, data.source)
    if built.n != values.shape[0]:
        msg = f"{features}: has {values.shape[0]} rows, but the graph has {built.n} points."
        raise ValueError(msg)
    with report.stage("denoise"):
        smooth = otgraph.denoise(built, values, steps, columns=columns, rescale=rescale)
    with report.stage("write"):
        write_array(place, smooth, names[columns], data.row_names)
    report.wrote(place.path)
    describe_graph(report, built)
    report.row("denoised", f"{len(columns):,} column(s) by {steps} steps")
    report.facts |= {"points": features, "t": steps, "n_columns": len(columns)}
    return report


def _steps(t: str) -> Any:
    if t == "auto":
        return t
    if not t.isdecimal():
        msg = f"--t must be a number of steps or auto, got {t!r}."
        raise ValueError(msg)
    return int(t)
