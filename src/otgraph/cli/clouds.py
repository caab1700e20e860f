"""``otgraph transfer``: labels carried from one cloud to another by a transport plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from otgraph.cli import options
from otgraph.cli.labels import check_label_source, known_labels
from otgraph.cli.options import argument, option
from otgraph.cli.reading import TABLES, read_points
from otgraph.cli.report import Report, blaming
from otgraph.cli.terminal import compilation_noted, refuse
from otgraph.cli.writing import target, write_labels

if TYPE_CHECKING:
    from otgraph.cli.reading import Points


def transfer(
    points: Annotated[
        str, argument("POINTS", "File of points that get labels, as for `otgraph graph`.")
    ],
    reference: Annotated[
        str, argument("REFERENCE", "File of points with labels, with the same columns.")
    ],
    output: Annotated[str, options.output("Table: .csv, .tsv, .parquet")],
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    plan: Annotated[
        str | None, option("File for the plan itself, in addition (.otg).", metavar="FILE")
    ] = None,
    *,
    planning: options.PlanOptions,
    reading: options.ReadOptions,
    report: Report,
) -> None:
    """Carry labels from one cloud to another by a transport plan, with probabilities.

    The plan matches the clouds as a whole: a shift between them does no harm, and different shares
    of the classes do, unless --outlier-cost lets points drop out. Labels are a column of REFERENCE
    (--label-column), or a table (--labels).
    """
    places = [target(output, TABLES, what="a table of labels", report=report)]
    if plan is not None:
        places.append(target(plan, (".otg",), what="a plan", report=report))
    check_label_source(labels, label_column)
    for name in ("pca", "standardize"):
        if getattr(reading, name):
            refuse(
                f"--{name} would change each file by itself, and the clouds would no longer have "
                "the same coordinates; do it for both files together."
            )
    keywords = planning.given()
    import otgraph
    from otgraph.graphs.quadratic import check_goal

    check_goal(keywords.get("eps"), keywords.get("mean_degree"))
    with report.stage("read"):
        known = read_points(reference, reading, aside=label_column)
        query = read_points(points, reading)
    _check_columns(query, known)
    classes = known_labels(labels, known, known.values.shape[0])
    progress = report.run.shows_progress
    blamed = blaming(X=f"{query.source}:", Y=f"{known.source}:")
    with report.stage("build"), compilation_noted(progress), blamed:
        found = otgraph.transport_graph(query.values, known.values, progress=progress, **keywords)
    carried = found.transfer_labels(classes)
    with report.writing(*places):
        write_labels(places[0], carried, {"known": carried.known}, query.row_names)
        if plan is not None:
            found.save(plan)
    report.describe_plan(found)
    report.describe_labels(carried)
    report.facts |= {"points": points, "reference": reference}


def _check_columns(query: Points, known: Points) -> None:
    """Both files must have the same columns, in the same order if they have names."""
    ours, theirs = query.values.shape[1], known.values.shape[1]
    if ours != theirs:
        refuse(
            f"{query.source}: must have the {theirs} columns of {known.source}, got {ours}. "
            "--columns picks those of both."
        )
    names = [part.column_names for part in (query, known)]
    if names[0] is not None and names[1] is not None and list(names[0]) != list(names[1]):
        first = next(i for i in range(ours) if names[0][i] != names[1][i])
        refuse(
            f"{query.source}: must have the columns of {known.source} in the same order, but "
            f"column {first} is {str(names[0][first])!r} and not {str(names[1][first])!r}."
        )
