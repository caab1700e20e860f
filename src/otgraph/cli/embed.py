"""``otgraph embed``: coordinates and a picture from a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from otgraph.cli.building import graph_from
from otgraph.cli.frames import pick
from otgraph.cli.labeling import group_names
from otgraph.cli.options import (
    LABEL_COLUMN,
    POINTS_OR_GRAPH,
    WEIGHTS,
    GraphOptions,
    ReadOptions,
    RunOptions,
    given,
    option,
)
from otgraph.cli.pictures import PICTURES, write_picture
from otgraph.cli.report import Report
from otgraph.cli.summary import describe_graph
from otgraph.cli.targets import Target, target
from otgraph.cli.writers import ARRAYS, TABLES, write_array

if TYPE_CHECKING:
    from otgraph.cli.frames import Points
    from otgraph.graphs import Graph
    from otgraph.methods.spectral import Embedding


def embed(
    points: Annotated[str, POINTS_OR_GRAPH],
    output: Annotated[
        str, typer.Option("-o", "--output", help="Coordinates (.csv, .npy, …) or picture (.png, …)")
    ],
    n_components: Annotated[
        int, typer.Option("--n-components", "--dims", "-d", help="Number of coordinates.")
    ] = 2,
    picture: Annotated[str | None, option("Picture to draw besides.", metavar="FILE")] = None,
    color: Annotated[
        str | None, option("Color by degree, component, potential or a feature.", default="degree")
    ] = None,
    label_column: Annotated[str | None, LABEL_COLUMN] = None,
    eigen_tol: Annotated[float | None, option("Accuracy of the eigenvectors.")] = None,
    max_restarts: Annotated[int | None, option("Limit of Lanczos restarts.")] = None,
    weights: Annotated[bool, WEIGHTS] = False,
    *,
    building: GraphOptions,
    reading: ReadOptions,
    run: RunOptions,
) -> Report:
    """Embed a graph by its eigenmaps: coordinates as a table, or drawn as a picture.

    Takes a graph file, or points and the options of `otgraph graph`.
    """
    known = (*TABLES, *ARRAYS, *PICTURES)
    place = target(output, known, what="an embedding", run=run)
    places = [place]
    if picture is not None:
        places.append(target(picture, PICTURES, what="a picture", run=run))
    if n_components < 2 and any(each.suffix in PICTURES for each in places):
        msg = f"--n-components must be at least 2 for a picture, got {n_components}."
        raise ValueError(msg)
    if color is not None and label_column is not None:
        msg = "Give one of --color and --label-column, got both."
        raise ValueError(msg)
    import otgraph

    report = Report("embed", streamed=place.streamed)
    aside = () if label_column is None else (label_column,)
    graph, data = graph_from(points, reading, building, run, report, weights=weights, aside=aside)
    keywords = given(tol=eigen_tol, max_restarts=max_restarts)
    with report.stage("embed"):
        embedding = otgraph.eigenmaps(graph, n_components, **keywords)
    paint = _paint(graph, data, color, label_column)
    with report.stage("write"):
        for each in places:
            _write(each, embedding, None if data is None else data.row_names, paint)
            report.wrote(each.path)
    describe_graph(report, graph)
    leading = ", ".join(f"{value:.6g}" for value in embedding.eigenvalues)
    report.row("eigenvalues", leading)
    report.facts |= {"points": points, "eigenvalues": embedding.eigenvalues}
    return report


def _paint(
    graph: Graph, data: Points | None, color: str | None, label_column: str | None
) -> dict[str, Any]:
    """Keywords that color the picture."""
    if label_column is not None and data is not None:
        return {"labels": group_names(data.aside[label_column])}
    if color == "component":
        return {"labels": graph.component_labels}
    if color is None or color == "degree":
        return {"color": graph.degrees}
    if color == "potential":
        if not hasattr(graph, "potentials"):
            msg = "--color potential: only optimal transport graphs have potentials."
            raise ValueError(msg)
        return {"color": graph.potentials}
    if data is None:
        msg = f"--color {color}: a graph file has no columns; color by degree or component."
        raise ValueError(msg)
    names = range(data.values.shape[1]) if data.column_names is None else data.column_names
    (index,) = pick(names, [color], data.source, "column")
    column = data.values[:, [index]]
    return {"color": np.asarray(column.todense() if hasattr(column, "todense") else column).ravel()}


def _write(place: Target, embedding: Embedding, names: Any, paint: dict[str, Any]) -> None:
    if place.suffix not in PICTURES:
        columns = [f"eigenmap_{i + 1}" for i in range(embedding.coordinates.shape[1])]
        write_array(place, embedding.coordinates, columns, names)
        return
    from otgraph.plots import plot_embedding

    write_picture(place, lambda ax: plot_embedding(embedding, ax=ax, **paint))
