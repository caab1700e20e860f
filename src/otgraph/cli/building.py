"""From options to the function that builds the graph."""

from __future__ import annotations

import contextlib
import inspect
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.cli.options import GraphOptions, Method, RunOptions, SolverOptions
from otgraph.cli.readers import is_graph_file, read_graph, read_points, read_vector
from otgraph.cli.wording import naming, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from otgraph.cli.frames import Points
    from otgraph.cli.options import ReadOptions
    from otgraph.cli.report import Report
    from otgraph.graphs import Graph

FUNCTIONS = {
    Method.quadratic: "quadratic_ot_graph",
    Method.entropic: "entropic_ot_graph",
    Method.knn: "knn_gaussian_graph",
    Method.gaussian: "gaussian_graph",
    Method.magic: "magic_graph",
}


def build_graph(points: Points, options: GraphOptions, run: RunOptions) -> Graph:
    """The graph that the options describe."""
    import otgraph

    given = options.given()
    method = Method(given.pop("method", Method.quadratic))
    address = given.pop("dask", None)
    if address is not None:
        return _build_on_cluster(points, method, address, given, run)
    function: Callable[..., Graph] = getattr(otgraph, FUNCTIONS[method])
    check_known(given, function, f"--method {method.value}")
    keywords = keywords_for(function, given, run)
    with naming(points.source):
        return function(points.values, **keywords)


def _build_on_cluster(
    points: Points, method: Method, address: str, given: dict[str, Any], run: RunOptions
) -> Graph:
    if method is not Method.quadratic:
        msg = f"--dask computes quadratic graphs only, not --method {method.value}."
        raise ValueError(msg)
    from otgraph.distributed import quadratic_ot_graph

    check_known(given, quadratic_ot_graph, "--dask")
    keywords = keywords_for(quadratic_ot_graph, given, run)
    values = points.values if hasattr(points.values, "tocsr") else np.asarray(points.values)
    with _dask_client(address) as client, naming(points.source):
        return quadratic_ot_graph(values, client=client, **keywords).to_graph()


def check_known(given: dict[str, Any], function: Callable[..., Any], what: str) -> None:
    """Raise for options that the function has no keyword for, naming them."""
    known = set(inspect.signature(function).parameters)
    unknown = [name for name in given if name not in known]
    if unknown:
        options = [name for name in GraphOptions.__dataclass_fields__ if name in known]
        msg = f"{what} has no {as_options(unknown)}; it knows {as_options(options)}."
        raise ValueError(msg)


def as_options(names: list[str]) -> str:
    """Keywords as they are typed."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def keywords_for(
    function: Callable[..., Any], given: dict[str, Any], run: RunOptions
) -> dict[str, Any]:
    """Keywords of the call: files read, and progress shown where it can be."""
    keywords = dict(given)
    if "mass" in keywords:
        keywords["mass"] = read_vector(keywords["mass"], what="--mass")
    if "u0" in keywords:
        keywords["u0"] = _potentials(keywords["u0"])
    parameters = inspect.signature(function).parameters
    if "progress" in parameters or "options" in parameters:  # **options of a path
        keywords["progress"] = wants_progress(run)
    return keywords


def wants_progress(run: RunOptions) -> bool:
    """Bars on a terminal, unless the user decided or wants no words at all."""
    if run.progress is not None:
        return run.progress
    return sys.stderr.isatty() and not run.json and run.verbose is not False


def graph_from(
    path: str,
    reading: ReadOptions,
    building: GraphOptions,
    run: RunOptions,
    report: Report,
    *,
    weights: bool = False,
    aside: tuple[str, ...] = (),
) -> tuple[Graph, Points | None]:
    """The graph in a file, or the graph of the points in a file and these points."""
    if not (weights or is_graph_file(path)):
        with report.stage("read"):
            points = read_points(path, reading, aside=aside)
        with report.stage("build"):
            return build_graph(points, building, run), points
    if aside:
        msg = f"{path}: is a graph and has no column {aside[0]!r}; give the points instead."
        raise ValueError(msg)
    with report.stage("read"):
        return finished_graph(path, building), None


def finished_graph(path: str, building: GraphOptions) -> Graph:
    """The graph in a file, if no option asks for building one."""
    given = building.given()
    if given:
        msg = f"{path}: is a graph already; {as_options(list(given))} would build one from points."
        raise ValueError(msg)
    graph: Graph = read_graph(path)
    return graph


def path_keywords(options: SolverOptions, run: RunOptions) -> dict[str, Any]:
    """Keywords of :func:`otgraph.eps_path`."""
    import otgraph

    return keywords_for(otgraph.eps_path, options.given(), run)


def _potentials(path: str) -> Any:
    if not is_graph_file(path):
        return read_vector(path, what="--u0")
    potentials = read_graph(path).potentials
    if potentials is None:
        msg = f"{path}: has no potentials for --u0; only optimal transport graphs have them."
        raise ValueError(msg)
    return potentials


@contextlib.contextmanager
def _dask_client(address: str) -> Iterator[Any]:
    from otgraph._optional import require

    distributed = require("distributed", "distributed")
    try:
        client = distributed.Client(address)
    except (OSError, ValueError, TimeoutError) as error:
        msg = f"--dask {address}: no scheduler answers there ({one_line(error)})."
        raise ValueError(msg) from error
    try:
        yield client
    finally:
        client.close()
