"""``otgraph path``: what each eps would give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from otgraph.cli.building import path_keywords
from otgraph.cli.frames import split_list
from otgraph.cli.options import (
    EPS_VALUES,
    POINTS,
    ReadOptions,
    RunOptions,
    SolverOptions,
    option,
)
from otgraph.cli.pictures import PICTURES, write_picture
from otgraph.cli.readers import read_points
from otgraph.cli.report import Report, plain
from otgraph.cli.targets import Target, target
from otgraph.cli.wording import naming
from otgraph.cli.writers import TABLES, write_table

if TYPE_CHECKING:
    from otgraph.graphs import EpsPath

# From graphs of a few neighbors to graphs of very many, on most data of unit mean cost.
EPS_MIN, EPS_MAX, EPS_STEPS = 0.03, 30.0, 25
JSON_SUFFIX = ".json"


def path(
    points: Annotated[str, POINTS],
    output: Annotated[
        str | None,
        option("Table or picture: .csv, .json, .png, …; printed by default.", "-o", "--output"),
    ] = None,
    eps: Annotated[list[str] | None, EPS_VALUES] = None,
    eps_min: Annotated[float, typer.Option(help="Smallest of a geometric range.")] = EPS_MIN,
    eps_max: Annotated[float, typer.Option(help="Largest of it.")] = EPS_MAX,
    steps: Annotated[int, typer.Option(help="Number of values in it.")] = EPS_STEPS,
    picture: Annotated[str | None, option("Picture to draw besides.", metavar="FILE")] = None,
    *,
    solving: SolverOptions,
    reading: ReadOptions,
    run: RunOptions,
) -> Report:
    """Build the graphs of a whole range of eps, and tabulate degree and components.

    Each graph starts from the one before, so that the range costs a few graphs. Choose the eps
    that you like, and build its graph with `otgraph graph`.
    """
    known = (*TABLES, JSON_SUFFIX, *PICTURES)
    place = None if output is None else target(output, known, what="a path", run=run)
    extra = None if picture is None else target(picture, PICTURES, what="a picture", run=run)
    values = eps_values(eps, eps_min, eps_max, steps)
    import otgraph

    report = Report("path", streamed=place is not None and place.streamed)
    with report.stage("read"):
        data = read_points(points, reading)
    with report.stage("build"):
        keywords = path_keywords(solving, run)
        with naming(data.source):
            built = otgraph.eps_path(data.values, values, **keywords)
    table = built.table()
    report.not_converged = bool(np.any(table["status"] == "not_converged"))
    with report.stage("write"):
        for each in (place, extra):
            if each is not None:
                _write(each, built, table)
                report.wrote(each.path)
    report.row("points", str(data))
    report.row("graphs", repr(built))
    report.brief.append(repr(built))
    report.facts |= {"points": data.source, "path": records(table)}
    if place is None:
        report.body = as_text(table)
    return report


def eps_values(given: list[str] | None, low: float, high: float, steps: int) -> Any:
    """The values that were listed, or a geometric range."""
    listed = listed_eps(given)
    if listed is not None:
        return listed
    if not (0 < low <= high < np.inf) or steps < 1:
        msg = (
            "--eps-min, --eps-max and --steps must be a range of positive numbers, got "
            f"{low:g} to {high:g} in {steps} steps."
        )
        raise ValueError(msg)
    return np.geomspace(low, high, steps)


def listed_eps(given: list[str] | None) -> list[float] | None:
    """The values of ``--eps``, if it was given."""
    words = split_list(given)
    if words is None:
        return None
    try:
        return [float(word) for word in words]
    except ValueError as error:
        msg = f"--eps must be numbers with commas between them, got {','.join(words)!r}."
        raise ValueError(msg) from error


def records(table: Any) -> list[dict[str, Any]]:
    """Rows as dictionaries."""
    return [dict(zip(table.dtype.names, plain(row.item()), strict=True)) for row in table]


def as_text(table: Any) -> str:
    """The columns that people read, aligned."""
    lines = [f"{'eps':>10} {'mean':>9} {'min':>6} {'max':>6} {'components':>11}  status"]
    lines += [
        f"{row['eps']:>10.4g} {row['mean_degree']:>9.2f} {row['min_degree']:>6} "
        f"{row['max_degree']:>6} {row['n_connected']:>11}  {row['status']}"
        for row in table
    ]
    return "\n".join(lines)


def _write(place: Target, built: EpsPath, table: Any) -> None:
    if place.suffix in PICTURES:
        from otgraph.plots import plot_path

        write_picture(place, lambda ax: plot_path(built, ax=ax))
    elif place.suffix == JSON_SUFFIX:
        import json

        with place.open() as file:
            file.write(f"{json.dumps(records(table), indent=1)}\n".encode())
    else:
        write_table(place, {name: table[name] for name in table.dtype.names})
