"""``otgraph embed``, ``cluster``, ``labels`` and ``denoise``: methods on graphs."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from otgraph.cli import options
from otgraph.cli.building import built_graph, choice_keywords, finished_graph, graph_from
from otgraph.cli.labels import check_label_source, known_labels
from otgraph.cli.options import argument, given, option, reads
from otgraph.cli.reading import TABLES, chosen, pick, read_points, split_list
from otgraph.cli.report import Report, blaming
from otgraph.cli.terminal import refuse
from otgraph.cli.writing import (
    ARRAYS,
    PICTURES,
    Target,
    picture_target,
    target,
    write_array,
    write_labels,
    write_picture,
    write_table,
)

if TYPE_CHECKING:
    from otgraph.cli.reading import Points
    from otgraph.graphs import Graph
    from otgraph.methods.spectral import Embedding
    from otgraph.typing import Array, Keywords


def embed(
    points: options.PointsOrGraph,
    output: Annotated[str, options.output("Coordinates (.csv, .npy, …) or picture (.png, …)")],
    n_components: Annotated[
        int, typer.Option("--n-components", "--dims", "-d", help="Number of coordinates.")
    ] = 2,
    picture: options.Picture = None,
    color: Annotated[
        str | None, option("Color by degree, component, potential or a feature.", default="degree")
    ] = None,
    labels: Annotated[
        str | None, reads("Color by a table of labels, or of clusters.", metavar="FILE")
    ] = None,
    label_column: options.LabelColumn = None,
    density: Annotated[
        str | None,
        option("kept, or corrected: divided out, so that only the shape counts.", default="kept"),
    ] = None,
    dim: Annotated[
        float | None, option("Intrinsic dimension for --density corrected.", default="estimated")
    ] = None,
    eigen_tol: options.EigenTol = None,
    max_restarts: options.MaxRestarts = None,
    weights: options.Weights = False,
    *,
    building: options.GraphOptions,
    reading: options.ReadOptions,
    report: Report,
) -> None:
    """Embed a graph by its eigenmaps: coordinates as a table, or drawn as a picture.

    Takes a graph file, or points and the options of `otgraph graph`.
    """
    place = target(output, (*TABLES, *ARRAYS, *PICTURES), what="an embedding", report=report)
    places = [place, *picture_target(picture, report)]
    if n_components < 2 and any(each.suffix in PICTURES for each in places):
        refuse(f"--n-components must be at least 2 for a picture, got {n_components}.")
    choices = given(color=color, labels=labels, label_column=label_column)
    if len(choices) > 1:
        refuse("Give at most one of --color, --labels and --label-column.")
    if labels is not None:
        check_label_source(labels, None)
    import otgraph

    graph, data = graph_from(points, reading, building, report, weights=weights, aside=label_column)
    with report.stage("embed"), blaming(tol="--eigen-tol"):
        keywords = given(density=density, dim=dim, tol=eigen_tol, max_restarts=max_restarts)
        embedding = otgraph.eigenmaps(graph, n_components, **keywords)
    paint = _paint(graph, data, color, labels, label_column)
    names = None if data is None else data.row_names
    with report.writing(*places):
        for each in places:
            _write_embedding(each, embedding, names, paint)
    report.describe(graph)
    report.row("eigenvalues", ", ".join(f"{value:.6g}" for value in embedding.eigenvalues))
    report.facts |= {"points": points, "eigenvalues": embedding.eigenvalues}
    if embedding.correction is not None:
        report.row("dimension", f"{embedding.correction.dim:.3g}, the density divided out")
        report.facts |= {
            "dim": embedding.correction.dim,
            "laplacian_eigenvalues": embedding.laplacian_eigenvalues,
        }


def _paint(
    graph: Graph,
    data: Points | None,
    color: str | None,
    labels: str | None,
    label_column: str | None,
) -> Keywords:
    """Keywords for the colors of the picture."""
    from otgraph.plots.colors import component_colors

    if labels is not None or label_column is not None:
        return {"labels": known_labels(labels, data, graph.n), "color_label": label_column}
    if color == "component":
        return {"color": component_colors(graph.component_labels)}
    if color is None or color == "degree":
        return {"color": graph.degrees, "color_label": "degree"}
    if color == "potential":
        potentials = getattr(graph, "potentials", None)
        if potentials is None or potentials.ndim > 1:
            refuse("--color potential: only optimal transport graphs of one eps have potentials.")
        return {"color": potentials, "color_label": "potential"}
    if data is None:
        refuse(
            f"--color {color}: a graph file has no columns; color by degree or component, or by a "
            "table, with --labels."
        )
    features = data.original
    names = range(features.shape[1]) if data.column_names is None else data.column_names
    column = features[:, pick(names, [color], data.source)]
    values = np.asarray(column.todense() if hasattr(column, "todense") else column).ravel()
    return {"color": values, "color_label": color}


def _write_embedding(
    place: Target, embedding: Embedding, names: Array | None, paint: Keywords
) -> None:
    if place.suffix not in PICTURES:
        columns = [f"eigenmap_{i + 1}" for i in range(embedding.coordinates.shape[1])]
        write_array(place, embedding.coordinates, columns, names)
        return
    from otgraph.plots import plot_embedding

    write_picture(place, lambda ax: plot_embedding(embedding, ax=ax, **paint))


def cluster(
    points: options.PointsOrGraph,
    output: Annotated[str, options.output("Table: .csv, .tsv, .parquet")],
    n_clusters: Annotated[
        int | None, option("Number of clusters.", default="by the gap of the eigenvalues")
    ] = None,
    max_clusters: Annotated[int | None, option("Largest number by the gap.", default="20")] = None,
    picture: options.Picture = None,
    eigen_tol: options.EigenTol = None,
    max_restarts: options.MaxRestarts = None,
    cluster_seed: Annotated[int | None, option("Seed of k-means.", default="0")] = None,
    weights: options.Weights = False,
    *,
    building: options.GraphOptions,
    reading: options.ReadOptions,
    report: Report,
) -> None:
    """Divide a graph into clusters: a table with the cluster of every point.

    Clusters are numbered from 0 by falling size; -1 marks points that no edge connects to any of
    them. --picture draws the eigenvalues, with the gap that gives the number of clusters.
    """
    place = target(output, TABLES, what="a table of clusters", report=report)
    pictures = picture_target(picture, report)
    import otgraph

    graph, data = graph_from(points, reading, building, report, weights=weights)
    typed = {"tol": "--eigen-tol", "random_state": "--cluster-seed"}
    with report.stage("cluster"), blaming(**typed):
        keywords = given(
            max_clusters=max_clusters, tol=eigen_tol, max_restarts=max_restarts,
            random_state=cluster_seed,
        )  # fmt: skip
        found = otgraph.cluster(graph, n_clusters, **keywords)
    names = None if data is None else data.row_names
    with report.writing(place, *pictures):
        write_table(place, {"cluster": found.labels}, names)
        for each in pictures:
            from otgraph.plots import plot_eigenvalues

            write_picture(each, lambda ax: plot_eigenvalues(found, ax=ax))
    report.describe(graph)
    sizes = np.bincount(found.labels[found.labels >= 0], minlength=found.n_clusters).tolist()
    n_outside = int(np.count_nonzero(found.labels < 0))
    report.row("clusters", f"{found.n_clusters}, of {', '.join(f'{s:,}' for s in sizes)} points")
    report.row("in no cluster", f"{n_outside:,}")
    report.facts |= {
        "points": points, "n_clusters": found.n_clusters, "sizes": sizes, "n_outside": n_outside,
        "eigenvalues": found.eigenvalues,
    }  # fmt: skip


def labels(
    points: options.PointsOrGraph,
    output: Annotated[str, options.output("Table: .csv, .tsv, .parquet")],
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    mu: Annotated[float | None, option("Weight of the known labels.", default="1")] = None,
    spread_tol: Annotated[
        float | None, option("Largest error of a probability.", default="1e-4")
    ] = None,
    spread_steps: Annotated[int | None, option("Limit of iterations.")] = None,
    weights: options.Weights = False,
    *,
    building: options.GraphOptions,
    reading: options.ReadOptions,
    report: Report,
) -> None:
    """Spread a few known labels over all points, with probabilities.

    Labels are a column of the points (--label-column), or a table (--labels) with one row per
    point, or with names of rows and labels. Empty cells and -1 are unknown labels. --eps auto
    chooses the eps that finds hidden labels best.
    """
    place = target(output, TABLES, what="a table of labels", report=report)
    check_label_source(labels, label_column)
    import otgraph

    known: Array | None = None

    def choose(data: Points) -> Keywords:
        nonlocal known  # standard input can be read only once
        known = known_labels(labels, data, data.values.shape[0])
        return _chosen_by_labels(report, data, known, choice_keywords(building) | given(mu=mu))

    graph, data = graph_from(
        points, reading, building, report, weights=weights, aside=label_column,
        choose=choose if building.chooses_eps else None,
    )  # fmt: skip
    if known is None:
        known = known_labels(labels, data, graph.n)
    with report.stage("spread"), blaming(tol="--spread-tol", max_iter="--spread-steps"):
        keywords = given(mu=mu, tol=spread_tol, max_iter=spread_steps)
        spread = otgraph.spread_labels(graph, known, **keywords)
    names = None if data is None else data.row_names
    with report.writing(place):
        write_labels(place, spread, {"unreachable": spread.unreachable}, names)
    report.describe(graph)
    report.describe_labels(spread)
    n_unreachable = int(np.count_nonzero(spread.unreachable))
    report.row("unreachable", f"{n_unreachable:,}")
    report.facts |= {"points": points, "n_unreachable": n_unreachable, "error": spread.error}


def _chosen_by_labels(report: Report, data: Points, known: Array, keywords: Keywords) -> Keywords:
    """The eps that finds hidden labels best; nothing if they do not tell."""
    import otgraph
    from otgraph.graphs.choice import GRAVE

    choice = otgraph.choose_eps(data.values, known, **keywords)
    if choice.doubt:
        msg = f"--eps auto: labels do not tell the best eps, {choice.doubt.value}."
        warnings.warn(msg, UserWarning, stacklevel=2)
    if choice.doubt in GRAVE:
        return {}
    report.row("chosen eps", choice.summary())
    return {"eps": choice.eps}


def denoise(
    features: Annotated[str, argument("FEATURES", "File of points, as for `otgraph graph`.")],
    output: Annotated[str, options.output("Denoised features: .csv, .npy, .parquet, …")],
    graph: Annotated[
        str | None, option("Graph to use instead of building one.", metavar="FILE")
    ] = None,
    t: Annotated[
        str, typer.Option("-t", "--t", help="Steps of the walk, or auto as MAGIC chooses.")
    ] = "3",
    genes: Annotated[
        list[str] | None, option("Columns to denoise and write.", default="all", metavar="NAMES")
    ] = None,
    rescale: Annotated[bool, option("Restore the range of the columns.")] = False,
    *,
    building: options.GraphOptions,
    reading: options.ReadOptions,
    report: Report,
) -> None:
    """Smooth features by a short random walk on the graph of the points.

    The graph is built from the same file with the options of `otgraph graph`, or taken from
    --graph. For .h5ad files, the graph is built on --use-rep and X is denoised.
    """
    place = target(output, (*TABLES, *ARRAYS), what="an array", report=report)
    if t != "auto" and not t.isdecimal():
        refuse(f"--t must be a number of steps or auto, got {t!r}.")
    steps = t if t == "auto" else int(t)
    import otgraph

    if graph is None:
        built, data = built_graph(features, reading, building, report)
    else:
        with report.stage("read"):
            built = finished_graph(graph, building)
            data = read_points(features, replace(reading, use_rep=reading.use_rep or "X"))
    values, names = data.original, data.column_names
    if data.adata is not None:
        values, names = data.adata.X, np.asarray(data.adata.var_names, str)
    if names is None:
        names = np.array([f"x{i}" for i in range(values.shape[1])])
    columns = chosen(names, split_list(genes), None, data.source)
    if built.n != values.shape[0]:
        refuse(f"{features}: has {values.shape[0]} rows, but the graph has {built.n} points.")
    with report.stage("denoise"), blaming(X=f"{data.source}:"):
        smooth = otgraph.denoise(built, values, steps, columns=columns, rescale=rescale)
    with report.writing(place):
        write_array(place, smooth, names[columns], data.row_names)
    report.describe(built)
    report.row("denoised", f"{len(columns):,} column(s) by {steps} steps")
    report.facts |= {"points": features, "t": steps, "n_columns": len(columns)}
