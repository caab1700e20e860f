"""``otgraph info``: what is in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from otgraph.cli.frames import listed
from otgraph.cli.options import ReadOptions, RunOptions, option
from otgraph.cli.readers import (
    SUFFIXES,
    TABLES,
    is_graph_file,
    read_frame,
    read_graph,
    read_points,
)
from otgraph.cli.report import Report
from otgraph.cli.summary import describe_graph
from otgraph.cli.targets import suffix_of, with_compressed

if TYPE_CHECKING:
    from otgraph.cli.frames import Points
    from otgraph.graphs import Graph

NUMERIC = "iufb"  # kinds of numpy types that count as numbers


def info(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A graph file, or a file of points.")],
    *,
    verify: Annotated[
        str | None,
        option("Points that a graph file was built from: checks the graph.", metavar="POINTS"),
    ] = None,
    reading: ReadOptions,
    run: RunOptions,
) -> Report:
    """Say what is in a file: a graph and its certificate, or points as they would be read."""
    report = Report("info")
    report.facts["file"] = file
    if is_graph_file(file):
        graph = _describe_graph_file(report, file)
        if verify is not None:
            _verify(report, graph, read_points(verify, reading))
    elif verify is not None:
        msg = f"`verify` checks a graph file, and {file} holds points. Name the graph file."
        raise ValueError(msg)
    else:
        _describe_points(report, file, reading)
    report.body = report.text()
    report.rows.clear()
    return report


def _verify(report: Report, graph: Graph, points: Points) -> None:
    """Compare the graph with its points; a graph that does not pass is an error."""
    if not hasattr(graph, "certificate"):
        msg = "`verify` needs a transport graph: other graphs have no certificate."
        raise ValueError(msg)
    result = graph.certificate.verify(points.values)
    if not result:
        raise ValueError(str(result))
    report.row("verified", str(result).removeprefix("verified: "))
    report.facts["verified"] = bool(result)


def _describe_graph_file(report: Report, file: str) -> Graph:
    graph = read_graph(file)
    points = None if graph.points is None else list(graph.points.shape)
    report.facts |= {"kind": "graph", "points": points}
    report.row("graph", f"{graph.n:,} points, {graph.params.get('method')}")
    report.row("built by", _params(graph.params))
    report.row("holds", _held(graph))
    describe_graph(report, graph)
    return graph


def _params(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in params.items() if name != "method")


def _held(graph: Any) -> str:
    held = ["weights"]
    held += [name for name in ("potentials", "mass") if getattr(graph, name) is not None]
    if graph.points is not None:
        held.append(f"points in {graph.points.shape[1]:,} dimensions")
    return ", ".join(held)


def _describe_points(report: Report, file: str, reading: ReadOptions) -> None:
    report.facts["kind"] = "points"
    suffix = suffix_of(file, with_compressed(SUFFIXES), what="file").removesuffix(".gz")
    if suffix not in TABLES:
        _describe_array(report, read_points(file, reading))
        return
    frame, _ = read_frame(file, reading)
    words = {
        str(name): int(frame.iloc[:, i].nunique())
        for i, name in enumerate(frame.columns)
        if frame.dtypes.iloc[i].kind not in NUMERIC
    }
    report.row("table", f"{frame.shape[0]:,} rows, {frame.shape[1]:,} columns: {listed(frame)}")
    report.row("missing", f"{int(frame.isna().to_numpy().sum()):,} values")
    if words:
        kinds = listed(f"{name} ({count:,} different)" for name, count in words.items())
        report.row("words", kinds)
    report.facts |= {
        "shape": list(frame.shape),
        "columns": [str(name) for name in frame.columns],
        "word_columns": words,
        "n_missing": int(frame.isna().to_numpy().sum()),
    }
    try:
        _describe_array(report, read_points(file, reading))
    except ValueError as error:
        report.row("as points", f"not as it is: {error}")
        report.facts["problem"] = str(error)


def _describe_array(report: Report, data: Points) -> None:
    values = data.values
    report.row("as points", str(data))
    stored = values.data if hasattr(values, "nnz") else values
    density = values.nnz / np.prod(values.shape) if hasattr(values, "nnz") else 1.0
    report.row("type", f"{values.dtype}" + (f", {density:.1%} stored" if density < 1 else ""))
    finite = np.isfinite(stored)
    if finite.any():
        low, high = float(stored[finite].min()), float(stored[finite].max())
        report.row("range", f"{low:.6g} to {high:.6g}")
    if not finite.all():
        report.row("not finite", f"{int(finite.size - np.count_nonzero(finite)):,} values")
    report.facts |= {
        "n_points": values.shape[0],
        "n_features": values.shape[1],
        "dtype": str(values.dtype),
        "density": float(density),
        "row_names": data.row_names is not None,
        "column_names": data.column_names is not None,
        "n_not_finite": int(finite.size - np.count_nonzero(finite)),
    }
    if data.adata is not None:
        for name in ("obs", "obsm", "layers", "obsp", "uns"):
            keys = list(getattr(data.adata, name))
            report.row(name, listed(keys) or "empty")
            report.facts[name] = keys
