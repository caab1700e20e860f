"""From options to the function that builds the graph."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

from otgraph._optional import require
from otgraph.cli.options import GraphOptions, SolverOptions
from otgraph.cli.preparation import RECORD, warn_of_doubts
from otgraph.cli.reading import is_graph_file, read_graph, read_points, read_vector
from otgraph.cli.report import blaming, one_line
from otgraph.cli.terminal import compilation_noted, refuse
from otgraph.graphs.constructions import CONSTRUCTIONS, DEFAULT
from otgraph.graphs.options import QuadraticOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distributed import Client

    from otgraph.cli.options import ReadOptions
    from otgraph.cli.reading import Points
    from otgraph.cli.report import Report
    from otgraph.graphs import Graph
    from otgraph.typing import Array, Keywords

MULTISCALE = "multiscale"  # takes several values
QUADRATIC = "quadratic"  # the construction that chooses its eps and runs on a cluster


def builder(options: GraphOptions, *, progress: bool) -> Callable[..., Graph]:
    """The function that builds the graph; options are checked here, before points are read.

    It takes the points, and keywords that replace the options.
    """
    given = options.given()
    method = given.pop("method", DEFAULT)
    address = given.pop("dask", None)
    construction = CONSTRUCTIONS[method]
    function: Callable[..., Any] = construction.build
    what = f"--method {method}"
    if address is not None:
        if method != QUADRATIC:
            refuse(f"--dask computes quadratic graphs only, not --method {method}.")
        from otgraph.distributed import quadratic_ot_graph as function

        what = "--dask"
    known = inspect.signature(function).parameters
    unknown = [name for name in given if name not in known]
    if unknown:
        there = [name for name in GraphOptions.__dataclass_fields__ if name in known]
        asks_for_neighbors = "n_neighbors" in unknown and "mean_degree" in there
        hint = " --mean-degree sets their number, on average." if asks_for_neighbors else ""
        refuse(f"{what} has no {as_options(unknown)}; it knows {as_options(there)}.{hint}")
    if options.chooses_eps and method != QUADRATIC:
        refuse(f"--eps auto chooses for quadratic graphs only, not for --method {method}.")
    construction.options(**{n: v for n, v in given.items() if n in construction.options.names()})
    if method == QUADRATIC:
        from otgraph.graphs.quadratic import check_goal

        check_goal(given.get("eps"), given.get("mean_degree"))
    if method == MULTISCALE:
        from otgraph.graphs.multiscale import check_scales

        check_scales(given.get("eps"), given.get("mean_degree"))
    keywords = _with_files_read(given)
    if "progress" in known:
        keywords["progress"] = progress

    def build(points: Points, **changes: object) -> Graph:
        chosen = points.aligned({**keywords, **changes})
        if address is None:
            graph: Graph = function(points.values, **chosen)
        else:
            with _dask_client(address) as client:
                graph = function(points.values, client=client, **chosen).to_graph()
        if points.preparation is not None:
            graph.params[RECORD] = points.preparation.record()
        return graph

    return build


@contextlib.contextmanager
def computing(report: Report, stage: str, points: Points) -> Iterator[None]:
    """A stage that computes with points: errors name their file, compilation is announced."""
    source, shown = f"{points.source}:", report.run.shows_progress
    with report.stage(stage), compilation_noted(shown), blaming(X=source):
        yield


def built_graph(
    path: str,
    reading: ReadOptions,
    building: GraphOptions,
    report: Report,
    *,
    aside: str | None = None,
    choose: Callable[[Points], Keywords] | None = None,
) -> tuple[Graph, Points]:
    """A graph built from a file of points, with these points.

    ``choose`` returns keywords that replace options when the points are known.
    """
    build = builder(building, progress=report.run.shows_progress)
    with report.stage("read"):
        points = read_points(path, reading, aside=aside)
    changes = {}
    if choose is not None:
        with computing(report, "choose", points):
            changes = choose(points)
    warn_of_doubts(points, building.given().get("metric"))
    with computing(report, "build", points):
        return build(points, **changes), points


def graph_from(
    path: str,
    reading: ReadOptions,
    building: GraphOptions,
    report: Report,
    *,
    weights: bool = False,
    aside: str | None = None,
    choose: Callable[[Points], Keywords] | None = None,
) -> tuple[Graph, Points | None]:
    """A graph from a graph file, or else :func:`built_graph`."""
    if not (weights or is_graph_file(path)):
        return built_graph(path, reading, building, report, aside=aside, choose=choose)
    if aside is not None:
        refuse(f"{path}: is a graph and has no column {aside!r}; give the points instead.")
    with report.stage("read"):
        return finished_graph(path, building), None


def finished_graph(path: str, building: GraphOptions) -> Graph:
    """The graph in a file; options for building a graph are an error."""
    given = building.given()
    if given:
        refuse(
            f"{path}: is a graph already; {as_options(list(given))} would build one from points."
        )
    return read_graph(path)


def path_keywords(options: SolverOptions, report: Report) -> Keywords:
    """Keywords of :func:`otgraph.eps_path`."""
    return {**_with_files_read(options.given()), "progress": report.run.shows_progress}


def choice_keywords(options: GraphOptions) -> Keywords:
    """Keywords of :func:`otgraph.choose_eps` among the options of a graph."""
    known = (*QuadraticOptions.names(), "mass", "n_jobs")
    given = {name: value for name, value in options.given().items() if name in known}
    return _with_files_read(given)


def as_options(names: list[str]) -> str:
    """Keywords as options, such as ``--n-jobs``."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _with_files_read(given: Keywords) -> Keywords:
    keywords = dict(given)
    if "mass" in keywords:
        keywords["mass"] = read_vector(keywords["mass"], what="--mass")
    if "u0" in keywords:
        keywords["u0"] = _potentials(keywords["u0"])
    return keywords


def _potentials(path: str) -> Array:
    if not is_graph_file(path):
        return read_vector(path, what="--u0")
    potentials = getattr(read_graph(path), "potentials", None)
    if potentials is None or potentials.ndim > 1:
        refuse(
            f"{path}: has no potentials for --u0; only optimal transport graphs of one eps have "
            "them."
        )
    return potentials


def _dask_client(address: str) -> Client:
    """A client, for a ``with`` statement that closes it."""
    try:
        return require("distributed", "distributed").Client(address)
    except (OSError, ValueError, TimeoutError) as error:
        refuse(f"--dask {address}: no scheduler answers there ({one_line(error)}).")
