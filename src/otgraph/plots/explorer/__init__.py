"""A page to choose eps by eye, with one graph per value and a slider."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from otgraph._atomic import replacing
from otgraph._optional import require
from otgraph._text import printable
from otgraph._validation import check_count, check_path
from otgraph.exceptions import DisconnectedWarning, invalid
from otgraph.graphs.graph import TransportGraph
from otgraph.graphs.keywords import shows
from otgraph.graphs.options import QuadraticOptions
from otgraph.graphs.path import EpsPath, eps_path
from otgraph.plots.colors import one_per_point
from otgraph.plots.explorer.eps import chosen_eps, curve_of
from otgraph.plots.explorer.page import Page, page_html
from otgraph.plots.explorer.rebuild import METHOD
from otgraph.plots.explorer.scene import scene_of

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Literal, Unpack

    from numpy.typing import ArrayLike

    from otgraph.graphs.choice import EpsChoice
    from otgraph.graphs.options import QuadraticKeywords
    from otgraph.methods import Embedding
    from otgraph.typing import Keywords, PointsLike

__all__ = ["Page", "explore"]

# Sizes that a browser draws without delay when the slider moves.
MAX_POINTS = 5000
MAX_EDGES = 80_000


@shows({"quadratic": QuadraticOptions})
def explore(
    path: EpsPath | PointsLike,
    out: str | os.PathLike[str] | None = None,
    *,
    eps: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    columns: Mapping[str, ArrayLike] | None = None,
    names: ArrayLike | None = None,
    coordinates: ArrayLike | Embedding | None = None,
    layout: str = "pca",
    choice: EpsChoice | Literal["auto"] | None = "auto",
    title: str | None = None,
    source: str = "POINTS",
    max_points: int = MAX_POINTS,
    max_edges: int = MAX_EDGES,
    mass: ArrayLike | None = None,
    progress: bool = False,
    n_jobs: int | None = -1,
    **options: Unpack[QuadraticKeywords],
) -> Page:
    """Interactive page to choose ``eps`` by eye.

    It shows the points with the edges of one graph, the distribution of degrees, mean degree,
    number of components, perplexity and certificate, with a slider over the values of ``eps``.
    Pointing at a dot marks its neighbors, and a lasso lists points with theirs. Below the slider
    are the number of components and the error behind ``eps="auto"``. A button shows the code that
    builds the current graph. The page is one file and needs no network.

    Parameters
    ----------
    path
        Graphs from :func:`otgraph.eps_path`, or points to build them from.
    out
        File to write, usually ``.html``. An existing file is replaced when the new one is
        complete. By default no file is written, and the page can be shown in a notebook.
    eps
        Values for points. By default 15 values with three digits, evenly spaced in log eps, from
        where the mean degree is about 3 to where it is about 60, or half of the other points.
    labels
        Group of each point, to color by; -1 and missing ones are gray.
    columns
        More to color by: names and values, one value per point, or a table. Numbers get a color
        scale, everything else groups.
    names
        Name of each point, shown beside its row number.
    coordinates
        As in :func:`otgraph.plots.draw_graph`.
    layout
        As in :func:`otgraph.plots.draw_graph`, of the graph that is shown first.
    choice
        Curve below the slider: from :func:`otgraph.choose_eps`, None for no curve. By default it is
        computed if the graphs hold their points.
    title
        Heading of the page.
    source
        File name in the command that the page shows, such as ``"cells.csv"``.
    max_points
        Most points that are drawn. Of more, a random choice is drawn, and the page says so. Its
        numbers are always those of the whole graphs.
    max_edges
        Most edges per eps that are drawn.
    mass, progress, n_jobs
        As in :func:`otgraph.quadratic_ot_graph`; like the keywords below, for points only.
    **options

    Returns
    -------
    Page
        Path of the file for functions that open files; shows itself in a notebook.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> page = otgraph.plots.explore(X, eps=[0.3, 1.0, 3.0])
    >>> "<iframe" in page._repr_html_()
    True
    """
    require("bokeh", "plots")  # checked before the work
    max_points = check_count(max_points, "max_points")
    max_edges = check_count(max_edges, "max_edges")
    QuadraticOptions.of(explore, options)
    running = {"progress": progress, "n_jobs": n_jobs}
    graphs = _graphs(path, eps, {"mass": mass, **options}, running)
    n = graphs[0].n
    scene = scene_of(
        graphs,
        coordinates=coordinates,
        layout=layout,
        columns={
            str(name): one_per_point(values, f"columns[{name!r}]", n)
            for name, values in (columns if columns is not None else {}).items()
        },
        curve=curve_of(graphs, choice),
        labels=None if labels is None else one_per_point(labels, "labels", n),
        names=None if names is None else one_per_point(names, "names", n),
        max_points=max_points,
        max_edges=max_edges,
        source=printable(source),
    )
    html = page_html(
        scene, printable(title) if title else f"{n:,} points, {len(graphs)} values of ε"
    )
    if out is None:
        return Page(html)
    with replacing(check_path(out, "out")) as file:
        file.write(html.encode())
    return Page(html, Path(out))


def _graphs(
    path: EpsPath | PointsLike, eps: ArrayLike | None, options: Keywords, running: Keywords
) -> list[TransportGraph]:
    """Graphs in the order of eps, each value once."""
    if isinstance(path, TransportGraph):
        msg = "must be a path or points, got one graph. Pass its points, `graph.points`."
        raise invalid("path", msg, TypeError)
    if not isinstance(path, EpsPath):
        with warnings.catch_warnings():  # the page shows the number of components
            warnings.simplefilter("ignore", DisconnectedWarning)
            values = chosen_eps(path, options | running) if eps is None else eps
            path = eps_path(path, values, **options, **running)
    elif given := [name for name, value in {"eps": eps, **options}.items() if value is not None]:
        names = ", ".join(f"`{name}`" for name in given)
        msg = f"{names} cannot be chosen for a finished path; pass the points instead of a path."
        raise TypeError(msg)
    if not len(path):
        raise invalid("path", "must hold at least one graph, got an empty path.")
    if any(graph.params.get("method") != METHOD for graph in path):
        msg = "must hold quadratic optimal transport graphs, as `otgraph.eps_path` returns."
        raise invalid("path", msg, TypeError)
    by_eps = {float(graph.params["eps"] or 0.0): graph for graph in path}
    return [by_eps[value] for value in sorted(by_eps)]
