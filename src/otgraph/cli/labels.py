"""``otgraph labels``: from a few labels to all of them."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from otgraph.cli.building import graph_from
from otgraph.cli.labeling import group_names, read_labels
from otgraph.cli.options import (
    LABEL_COLUMN,
    LABELS,
    POINTS_OR_GRAPH,
    WEIGHTS,
    GraphOptions,
    ReadOptions,
    RunOptions,
    given,
    option,
)
from otgraph.cli.report import Report
from otgraph.cli.summary import describe_graph
from otgraph.cli.targets import target
from otgraph.cli.writers import TABLES, write_table


def labels(
    points: Annotated[str, POINTS_OR_GRAPH],
    output: Annotated[str, typer.Option("-o", "--output", help="Table: .csv, .tsv, .parquet")],
    labels: Annotated[str | None, LABELS] = None,
    label_column: Annotated[str | None, LABEL_COLUMN] = None,
    mu: Annotated[float | None, option("How firmly known labels are held.", default="1")] = None,
    spread_tol: Annotated[
        float | None, option("Largest error of a probability.", default="1e-4")
    ] = None,
    spread_steps: Annotated[int | None, option("Limit of iterations.")] = None,
    weights: Annotated[bool, WEIGHTS] = False,
    *,
    building: GraphOptions,
    reading: ReadOptions,
    run: RunOptions,
) -> Report:
    """Spread a few known labels over all points, with probabilities.

    Labels are a column of the points (--label-column), or a table (--labels) with one row per
    point, or with names of rows and labels. Empty cells and -1 are the labels to find.
    """
    place = target(output, TABLES, what="a table of labels", run=run)
    if (labels is None) == (label_column is None):
        came = "neither" if labels is None else "both"
        msg = f"Give exactly one of --labels and --label-column, got {came}."
        raise ValueError(msg)
    import otgraph

    report = Report("labels", streamed=place.streamed)
    aside = () if label_column is None else (label_column,)
    graph, data = graph_from(points, reading, building, run, report, weights=weights, aside=aside)
    if labels is not None:
        known = read_labels(labels, data, graph.n)
    elif data is not None and label_column is not None:  # a graph alone was refused before
        known = group_names(data.aside[label_column])
    keywords = given(mu=mu, tol=spread_tol, max_iter=spread_steps)
    with report.stage("spread"):
        spread = otgraph.spread_labels(graph, known, **keywords)
    columns = {
        "label": spread.labels,
        **{f"p_{name}": spread.probabilities[:, i] for i, name in enumerate(spread.classes)},
        "unreachable": spread.unreachable,
    }
    with report.stage("write"):
        write_table(place, columns, None if data is None else data.row_names)
    report.wrote(place.path)
    describe_graph(report, graph)
    counts = {str(name): int(np.count_nonzero(spread.labels == name)) for name in spread.classes}
    n_unreachable = int(np.count_nonzero(spread.unreachable))
    report.row("labels", ", ".join(f"{name} {count:,}" for name, count in counts.items()))
    report.row("unreachable", f"{n_unreachable:,}")
    report.facts |= {
        "points": points, "classes": counts, "n_unreachable": n_unreachable,
        "error": spread.error,
    }  # fmt: skip
    return report
