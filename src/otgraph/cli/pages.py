"""``otgraph explore``, ``reproduce`` and ``demo``: pages and pictures."""

from __future__ import annotations

import shlex
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer

from otgraph._memory import format_bytes
from otgraph.cli import options
from otgraph.cli.building import computing, path_keywords
from otgraph.cli.graphs import listed_eps
from otgraph.cli.labels import known_labels
from otgraph.cli.options import argument, given, option
from otgraph.cli.preparation import warn_of_doubts
from otgraph.cli.reading import STDIN, TABLES, read_points, split_list
from otgraph.cli.report import Report
from otgraph.cli.terminal import refuse
from otgraph.cli.writing import ARRAYS, PICTURES, target, write_array, write_figure

if TYPE_CHECKING:
    from otgraph.cli.reading import Points
    from otgraph.typing import Array

PAGES = (".html",)
MOST_COLUMNS = 50  # a longer list is hard to read and makes the page large


def explore(
    points: options.PointsFile,
    output: Annotated[str, options.output("Page to write: .html")],
    eps: options.EpsValues = None,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    layout: Annotated[
        Literal["pca", "force", "spectral", "umap"],
        typer.Option(help="Where the points are; all but pca look at the graph."),
    ] = "pca",
    title: Annotated[str | None, option("Heading of the page.")] = None,
    max_points: Annotated[int | None, option("Most points to draw.")] = None,
    max_edges: Annotated[int | None, option("Most edges to draw for each eps.")] = None,
    *,
    solving: options.SolverOptions,
    reading: options.ReadOptions,
    report: Report,
) -> None:
    """Write a page with a slider over eps: points, edges, degrees and certificates.

    The page is one file that any browser opens, without network.
    """
    place = target(output, PAGES, what="a page", report=report)
    if labels is not None and label_column is not None:
        refuse("Give one of --labels and --label-column, got both.")
    values, keywords = listed_eps(eps), path_keywords(solving, report)
    from otgraph.plots import explore as page_of

    with report.stage("read"):
        data = read_points(points, reading, aside=label_column)
        n, d = data.values.shape
        groups = None
        if labels is not None or label_column is not None:
            groups = known_labels(labels, data, n)
    warn_of_doubts(data, keywords.get("metric"))
    with computing(report, "build", data):
        page = page_of(
            data.values,
            eps=values,
            labels=groups,
            columns=_columns(data),
            layout=layout,
            names=data.row_names,
            source=_source(points, reading, label_column),
            **given(title=title, max_points=max_points, max_edges=max_edges),
            **data.aligned(keywords),
        )
    html = page.html.encode()
    with report.stage("write"), place.open() as file:
        file.write(html)
    report.written.append(place.path)
    size = format_bytes(len(html))
    report.describe_points(data)
    report.row("page", size)
    report.brief += [f"{n:,} points", size]
    report.facts |= {"n_points": n, "n_features": d}


def _columns(data: Points) -> dict[str, Array]:
    """Columns of the points to color by: the first ones of many, none of a sparse matrix."""
    if data.column_names is None or not isinstance(data.values, np.ndarray):
        return {}
    first = list(data.column_names)[:MOST_COLUMNS]
    return {str(name): data.values[:, k] for k, name in enumerate(first)}


def _source(points: str, reading: options.ReadOptions, label_column: str | None) -> str:
    """The file of points and its reading options, as a command would repeat them."""
    if label_column is not None and reading.columns is None:
        reading = replace(reading, drop=[*(reading.drop or ()), label_column])
    words = [f"./{points}" if points.startswith("-") and points != STDIN else points]
    for field in fields(reading):
        value = getattr(reading, field.name)
        flag = field.name.replace("_", "-")
        if isinstance(value, bool):
            if value != field.default:
                words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            names = split_list(value) if isinstance(value, list) else [str(value)]
            words += [f"--{flag}", ",".join(names or ())]
    return shlex.join(words)


def reproduce(
    name: Annotated[str, argument("NAME", "Experiment, or all; list names them.")],
    out: Annotated[
        str, typer.Option("-o", "--out", help="Folder for scores and figures.")
    ] = "out/reproduce",
    seeds: Annotated[int, typer.Option(help="Number of samples.")] = 5,
    quick: Annotated[bool, option("Small samples, to test that it runs.", "--quick")] = False,
    variant: Annotated[
        Literal["text", "code", "both"],
        typer.Option(help="As the paper describes it, or as its code does."),
    ] = "text",
    data: Annotated[
        str | None, option("cells: counts to use instead of the paper's.", metavar="FILE")
    ] = None,
    genes: Annotated[
        list[str] | None, option("cells: three genes, with commas.", metavar="NAMES")
    ] = None,
    n_jobs: Annotated[int | None, option("Processes.", default="all cores")] = None,
    *,
    report: Report,
) -> None:
    """Repeat an experiment of the paper, judge its claims and draw its figures.

    An interrupted run continues where it stopped.
    """
    from otgraph import experiments

    if name == "list":
        report.body = "\n".join(experiments.NAMES)
        report.facts["names"] = list(experiments.NAMES)
        return
    with report.stage("compute"):
        outcome = experiments.reproduce(
            name,
            out=out,
            seeds=seeds,
            quick=quick,
            variant=variant,
            data=data,
            genes=split_list(genes),
            progress=report.run.shows_progress,
            n_jobs=n_jobs,
        )
    report.body = str(outcome)
    report.written += map(str, outcome.files)
    report.facts |= {
        "name": outcome.name,
        "title": outcome.title,
        "claims": [asdict(claim) for claim in outcome.claims],
    }


def demo(
    output: Annotated[
        str, typer.Option("-o", "--output", help="Picture (.png, …) or points (.csv, .npy, …)")
    ] = "spiral.png",
    *,
    report: Report,
) -> None:
    """Draw the graph of a noisy spiral beside its nearest neighbors, or write its points."""
    place = target(output, (*PICTURES, *TABLES, *ARRAYS), what="a demo", report=report)
    if place.suffix in PICTURES:
        from otgraph.experiments import demo as spiral_demo

        with report.stage("build"):
            report.body, figure = spiral_demo.run()
        with report.writing(place):
            write_figure(place, figure)
    else:
        from otgraph import datasets

        X = datasets.noisy_spiral().X
        n, d = X.shape
        with report.writing(place):
            write_array(place, X, [f"x{i + 1}" for i in range(d)])
        report.brief.append(f"{n:,} points in {d} dimensions")
        report.row("points", f"{n:,} in {d} dimensions, a noisy spiral")
        report.facts |= {"n_points": n, "n_features": d}
