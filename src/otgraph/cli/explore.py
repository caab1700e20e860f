"""``otgraph explore``: a page to choose eps by eye."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace
from typing import Annotated

import typer

from otgraph._memory import megabytes
from otgraph.cli.building import path_keywords
from otgraph.cli.frames import split_list
from otgraph.cli.labeling import group_names, read_labels
from otgraph.cli.options import (
    EPS_VALUES,
    LABEL_COLUMN,
    LABELS,
    POINTS,
    ReadOptions,
    RunOptions,
    SolverOptions,
    given,
    option,
)
from otgraph.cli.path import listed_eps
from otgraph.cli.readers import read_points
from otgraph.cli.report import Report
from otgraph.cli.targets import target
from otgraph.cli.wording import naming

PAGES = (".html",)


def explore(
    points: Annotated[str, POINTS],
    output: Annotated[str, typer.Option("-o", "--output", help="Page to write: .html")],
    eps: Annotated[list[str] | None, EPS_VALUES] = None,
    labels: Annotated[str | None, LABELS] = None,
    label_column: Annotated[str | None, LABEL_COLUMN] = None,
    title: Annotated[str | None, option("Heading of the page.")] = None,
    max_points: Annotated[int | None, option("Most points to draw.")] = None,
    max_edges: Annotated[int | None, option("Most edges to draw for each eps.")] = None,
    *,
    solving: SolverOptions,
    reading: ReadOptions,
    run: RunOptions,
) -> Report:
    """Write a page with a slider over eps: points, edges, degrees and certificates.

    The page is one file that any browser opens, without network.
    """
    place = target(output, PAGES, what="a page", run=run)
    if labels is not None and label_column is not None:
        msg = "Give one of --labels and --label-column, got both."
        raise ValueError(msg)
    from otgraph.plots import explore as page_of

    report = Report("explore")
    with report.stage("read"):
        data = read_points(points, reading, aside=() if label_column is None else (label_column,))
        groups = None
        if labels is not None:
            groups = read_labels(labels, data, data.values.shape[0])
        elif label_column is not None:
            groups = group_names(data.aside[label_column])
    with report.stage("build"), naming(data.source):
        page = page_of(
            data.values,
            place.path,
            eps=listed_eps(eps),
            labels=groups,
            names=data.row_names,
            source=_source(points, reading, label_column),
            **given(title=title, max_points=max_points, max_edges=max_edges),
            **path_keywords(solving, run),
        )
    report.wrote(place.path)
    report.row("points", str(data))
    size = megabytes(len(page.html.encode()))
    report.row("page", size)
    report.brief += [f"{data.values.shape[0]:,} points", size]
    report.facts |= {
        "points": data.source,
        "n_points": data.values.shape[0],
        "n_features": data.values.shape[1],
    }
    return report


def _source(points: str, reading: ReadOptions, label_column: str | None) -> str:
    """The points as a command reads them again: the file, and how to read it."""
    if label_column is not None and reading.columns is None:
        reading = replace(reading, drop=[*(reading.drop or ()), label_column])
    words = [points]
    for field in fields(reading):
        value = getattr(reading, field.name)
        flag = field.name.replace("_", "-")
        if isinstance(value, bool):
            if value != field.default:
                words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            names = split_list(value) if isinstance(value, list) else [value]
            words += [f"--{flag}", ",".join(names or ())]
    return shlex.join(words)
