"""``otgraph graph``, ``path`` and ``info``: graphs, paths of eps, contents of files."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from otgraph._text import listed, plain
from otgraph.cli import options
from otgraph.cli.building import built_graph, computing, path_keywords
from otgraph.cli.columns import describe_columns
from otgraph.cli.options import argument, option
from otgraph.cli.preparation import RECORD, prepared, recorded_preparation, warn_of_doubts
from otgraph.cli.reading import (
    POINTS,
    READ_TABLES,
    TABLES,
    is_graph_file,
    read_frame,
    read_graph,
    read_points,
    split_list,
    suffix_of,
    unprepared_points,
)
from otgraph.cli.report import Report
from otgraph.cli.terminal import plain_table, refuse
from otgraph.cli.writing import (
    GRAPHS,
    PICTURES,
    Target,
    picture_target,
    target,
    write_graph,
    write_picture,
    write_table,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from otgraph.cli.reading import Points
    from otgraph.graphs import EpsPath, Graph
    from otgraph.typing import Array

# Default range of eps: from a few neighbors to very many, on most data.
EPS_MIN, EPS_MAX, EPS_STEPS = 0.03, 30.0, 25
JSON_SUFFIX = ".json"
# Parameters that the description of a graph gives in other rows.
ELSEWHERE = ("method", "choice", RECORD)


def graph(
    points: options.PointsFile,
    output: Annotated[str, options.output("Graph to write: .otg, …")],
    picture: options.Picture = None,
    *,
    building: options.GraphOptions,
    reading: options.ReadOptions,
    report: Report,
) -> None:
    """Build a graph and write it to a file.

    The suffix of OUTPUT sets its format. .otg keeps everything, and the other commands read it.
    .npz, .mtx, .csv, .tsv, .parquet and .graphml hold the weights. .h5ad holds the input with the
    graph in scanpy's slots.
    """
    place = target(output, GRAPHS, what="a graph", report=report)
    pictures = picture_target(picture, report)
    built, data = built_graph(points, reading, building, report)
    with report.writing(place, *pictures):
        write_graph(place, built, data)
        for drawing in pictures:
            from otgraph.plots import draw_graph

            write_picture(
                drawing, lambda ax: draw_graph(built, X=data.values, color="degree", ax=ax)
            )
    report.row("points", str(data))
    report.facts |= {"points": data.source, "n_features": data.values.shape[1]}
    report.describe(built)


def path(
    points: options.PointsFile,
    output: Annotated[
        str | None, options.output("Table or picture: .csv, .json, .png, …; printed by default.")
    ] = None,
    eps: options.EpsValues = None,
    eps_min: Annotated[float, typer.Option(help="Smallest of a geometric range.")] = EPS_MIN,
    eps_max: Annotated[float, typer.Option(help="Largest of it.")] = EPS_MAX,
    steps: Annotated[int, typer.Option(help="Number of values in it.")] = EPS_STEPS,
    picture: options.Picture = None,
    *,
    solving: options.SolverOptions,
    reading: options.ReadOptions,
    report: Report,
) -> None:
    """Build the graphs for a range of eps, and tabulate degrees and components.

    Each graph starts from the one before, so the range takes as long as a few graphs. Choose an
    eps, and build its graph with `otgraph graph`.
    """
    known = (*TABLES, JSON_SUFFIX, *PICTURES)
    places = [] if output is None else [target(output, known, what="a path", report=report)]
    places += picture_target(picture, report)
    values = _eps_values(eps, eps_min, eps_max, steps)
    keywords = path_keywords(solving, report)
    import otgraph

    with report.stage("read"):
        data = read_points(points, reading)
    warn_of_doubts(data, keywords.get("metric"))
    with computing(report, "build", data):
        built = otgraph.eps_path(data.values, values, **data.aligned(keywords))
    table = built.table()
    report.not_converged = bool(np.any(table["status"] == "not_converged"))
    with report.writing(*places):
        for place in places:
            _write_path(place, built, table)
    report.describe_points(data)
    report.row("graphs", repr(built))
    report.brief.append(repr(built))
    report.facts |= {"path": _records(table)}
    if output is None:
        report.body = _path_text(table)


def listed_eps(given: list[str] | None) -> list[float] | None:
    """The values of ``--eps``, if it was given."""
    words = split_list(given)
    if words is None:
        return None
    try:
        return [float(word) for word in words]
    except ValueError:
        refuse(f"--eps must be numbers with commas between them, got {','.join(words)!r}.")


def _eps_values(given: list[str] | None, low: float, high: float, steps: int) -> list[float]:
    """The listed values, or a geometric range."""
    values = listed_eps(given)
    if values is not None:
        return values
    if not (0 < low <= high < np.inf) or steps < 1:
        refuse(
            f"--eps-min, --eps-max and --steps must be a range of positive numbers, got {low:g} to "
            f"{high:g} in {steps} steps."
        )
    return np.geomspace(low, high, steps).tolist()


def _records(table: NDArray[np.void]) -> list[dict[str, object]]:
    names = table.dtype.names or ()
    return [dict(zip(names, plain(row.item()), strict=True)) for row in table]


def _path_text(table: NDArray[np.void]) -> str:
    """The most important columns, aligned."""
    formats = {"eps": ".4g", "mean_degree": ".2f", "min_degree": "", "max_degree": "",
               "n_connected": "", "status": ""}  # fmt: skip
    rows = [[format(row[name], form) for name, form in formats.items()] for row in table]
    header = ("eps", "mean", "min", "max", "components", "status")
    return plain_table(header, rows, right=range(5))


def _write_path(place: Target, built: EpsPath, table: NDArray[np.void]) -> None:
    if place.suffix in PICTURES:
        from otgraph.plots import plot_path

        write_picture(place, lambda ax: plot_path(built, ax=ax))
    elif place.suffix == JSON_SUFFIX:
        with place.open() as file:
            file.write(f"{json.dumps(_records(table), indent=1)}\n".encode())
    else:
        write_table(place, {name: table[name] for name in table.dtype.names or ()})


def info(
    file: Annotated[str, argument("FILE", "A graph file, or a file of points.")],
    *,
    verify: Annotated[
        str | None,
        option("Points that a graph file was built from: checks the graph.", metavar="POINTS"),
    ] = None,
    dimension: Annotated[
        bool, option("Estimate the intrinsic dimension of the points, with an error bar.")
    ] = False,
    reading: options.ReadOptions,
    report: Report,
) -> None:
    """Describe a file: a graph and its certificate, or points as they would be read."""
    report.facts["file"] = file
    if is_graph_file(file):
        graph = _describe_graph_file(report, file)
        if verify is not None:
            _verify(report, graph, read_points(verify, reading))
        if dimension:
            refuse(f"--dimension needs points, and {file} holds a graph. Name the file of points.")
    elif verify is not None:
        refuse(f"--verify checks a graph file, and {file} holds points. Name the graph file.")
    else:
        _describe_points(report, file, reading)
        if dimension:
            _describe_dimension(report, read_points(file, reading))
    report.description, report.rows = report.rows, []


def _describe_graph_file(report: Report, file: str) -> Graph:
    graph = read_graph(file)
    held = ["weights"]
    held += [name for name in ("potentials", "mass") if getattr(graph, name) is not None]
    shape = None
    if graph.points is not None:
        shape = list(graph.points.shape)
        held.append(f"points in {shape[1]:,} dimensions")
    params = [f"{name}={value!r}" for name, value in graph.params.items() if name not in ELSEWHERE]
    report.facts |= {"kind": "graph", "points": shape}
    report.row("graph", f"{graph.n:,} points, {graph.params.get('method')}")
    report.row("built by", ", ".join(params))
    report.row("holds", ", ".join(held))
    report.describe(graph)
    return graph


def _verify(report: Report, graph: Graph, points: Points) -> None:
    """Compare the graph with its points; a graph that does not pass is an error."""
    certificate = getattr(graph, "certificate", None)
    if certificate is None:
        refuse("--verify needs a transport graph: other graphs have no certificate.")
    result = certificate.verify(points.values)
    if not result:
        refuse(f"{result}{_hint_at_preparation(graph, points)}")
    report.row("verified", str(result).removeprefix("verified: "))
    report.facts["verified"] = bool(result)


def _hint_at_preparation(graph: Graph, points: Points) -> str:
    """The likely reason of a failure: points that were not prepared as for the graph."""
    there = recorded_preparation(graph.params)
    here = "" if points.preparation is None else str(points.preparation)
    if there is None or there == here:
        return ""
    return f" For the graph the points were prepared ({there}): give the options that it had."


def _describe_points(report: Report, file: str, reading: options.ReadOptions) -> None:
    report.facts["kind"] = "points"
    if suffix_of(file, POINTS, what="a file") in READ_TABLES:
        _describe_table(report, file, reading)
    found = unprepared_points(file, reading)
    if not found.words:
        _describe_array(report, found)
    try:
        data = prepared(found, reading)
    except ValueError as error:
        report.row("to use it", str(error))
        report.facts["problem"] = str(error)
        return
    if data.preparation is not None:
        report.row("prepared", f"{data.preparation}; {data}")
    for doubt in data.doubts.values():
        report.row("note", f"{doubt.remark}. {doubt.advice}.")
    report.facts["notes"] = [doubt.remark for doubt in data.doubts.values()]


def _describe_dimension(report: Report, points: Points) -> None:
    import otgraph

    with report.stage("dimension"):
        found = otgraph.intrinsic_dimension(points.values)
    report.row("dimension", found.summary())
    report.facts["dimension"] = {
        name: getattr(found, name) for name in ("value", "error", "coarse", "doubt", "n_points")
    }


def _describe_table(report: Report, file: str, reading: options.ReadOptions) -> None:
    frame, _ = read_frame(file, reading)
    columns = describe_columns(frame)
    n_missing = sum(column.missing for column in columns)
    report.row("table", f"{frame.shape[0]:,} rows, {frame.shape[1]:,} columns")
    report.row("missing", f"{n_missing:,} values")
    report.columns += columns
    report.facts |= {
        "shape": list(frame.shape),
        "columns": [asdict(column) for column in columns],
        "n_missing": n_missing,
    }


def _describe_array(report: Report, data: Points) -> None:
    values = data.values
    report.row("as points", str(data))
    stored: Array = values if isinstance(values, np.ndarray) else values.data
    density = stored.size / np.prod(values.shape)
    report.row("type", f"{values.dtype}" + (f", {density:.1%} stored" if density < 1 else ""))
    finite = np.isfinite(stored)
    n_not_finite = int(finite.size - np.count_nonzero(finite))
    if finite.any():
        low, high = float(stored[finite].min()), float(stored[finite].max())
        report.row("range", f"{low:.6g} to {high:.6g}")
    if n_not_finite:
        report.row("not finite", f"{n_not_finite:,} values")
    report.facts |= {
        "n_points": values.shape[0],
        "n_features": values.shape[1],
        "dtype": str(values.dtype),
        "density": float(density),
        "row_names": data.row_names is not None,
        "column_names": data.column_names is not None,
        "n_not_finite": n_not_finite,
    }
    if data.adata is not None:
        for name in ("obs", "obsm", "layers", "obsp", "uns"):
            keys = list(getattr(data.adata, name))
            report.row(name, listed(keys) if keys else "empty")
            report.facts[name] = keys
