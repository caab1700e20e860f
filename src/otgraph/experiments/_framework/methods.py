"""The graphs that are compared: names, styles, and the graphs of each over a grid.

Colors, dashes and markers are distinct in gray and when color-blind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import otgraph
from otgraph.graphs.constructions import CONSTRUCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from otgraph.experiments._framework.experiment import Params, Row
    from otgraph.typing import PointsLike

QUADRATIC, ENTROPIC, KNN, GAUSSIAN, MAGIC = (
    CONSTRUCTIONS[name].title for name in ("quadratic", "entropic", "knn", "gaussian", "magic")
)
HOLLOW = f"{QUADRATIC}, hollow"  # without self-loops
HOLLOW_ENTROPIC = f"{ENTROPIC}, hollow"
CORRECTED = f"{QUADRATIC}, density divided out"
KNN_GAUSSIAN = f"{KNN} + {GAUSSIAN}"

# From dark to light, each with its own dashes and marker, to be distinct in print.
METHOD_STYLES: dict[str, Row] = {
    KNN: {"color": "#5b7db1", "linestyle": (0, (6, 1.5)), "marker": "X"},
    KNN_GAUSSIAN: {"color": "#14213d", "linestyle": "-", "marker": "s"},
    QUADRATIC: {"color": "#b5123b", "linestyle": "-", "marker": "o"},
    CORRECTED: {"color": "#6a2f99", "linestyle": "-.", "marker": "*"},
    GAUSSIAN: {"color": "#4c8c2b", "linestyle": ":", "marker": "v"},
    MAGIC: {"color": "#00a6a6", "linestyle": "-.", "marker": "^"},
    HOLLOW: {"color": "#ee8fa3", "linestyle": "--", "marker": "o"},
    ENTROPIC: {"color": "#f2a900", "linestyle": "--", "marker": "D"},
    HOLLOW_ENTROPIC: {"color": "#a87400", "linestyle": (0, (2, 1)), "marker": "d"},
}
# Digits of grid values. Values printed in a table then give the same graphs.
GRID_DIGITS = 6
# The authors count a point among its own neighbors, and average the two directions.
KNN_OPTIONS: dict[str, Row] = {
    "text": {},
    "code": {"include_self": True, "symmetrize": "average"},
}


def log_grid(low: float, high: float, n: int) -> tuple[float, ...]:
    """``n`` numbers from 10^low to 10^high, evenly on a logarithmic scale."""
    return tuple(float(f"{value:.{GRID_DIGITS}g}") for value in np.logspace(low, high, n))


def knn_gaussian_path(
    X: PointsLike, k: int, eps: Iterable[float], **options: Any
) -> Iterator[otgraph.Graph]:
    """The graphs ``knn_gaussian_graph(X, k, eps, **options)`` for many eps, with one search.

    An edge has the weight s·exp(-c/eps), where s does not depend on eps. The graph for eps = 1 has
    exp(-c), whose power 1/eps is needed. Weights that underflow are dropped without a warning.
    """
    share = otgraph.knn_gaussian_graph(X, k, None, **options).weights
    unit = otgraph.knn_gaussian_graph(X, k, 1.0, **options)
    decay = unit.weights.data / share.data  # same pattern: nothing underflows at eps = 1
    for value in eps:
        weights = share.copy()
        weights.data *= decay ** (1.0 / value)
        weights.eliminate_zeros()
        yield otgraph.Graph(weights, {**unit.params, "eps": value}, points=unit.points)


def graphs_along(
    method: str,
    X: PointsLike,
    *,
    eps: Iterable[float] = (),
    k: Iterable[int] = (),
    variant: str = "text",
) -> Iterator[tuple[Row, otgraph.Graph]]:
    """All graphs of a method over its grid, each with its parameters.

    A method uses the parameters that it has. The variant matters for nearest neighbors only.
    """
    knn = {"n_jobs": 1, **KNN_OPTIONS[variant]}
    if method in (QUADRATIC, HOLLOW, CORRECTED):  # the last is corrected after it is built
        for graph in otgraph.eps_path(X, tuple(eps), self_loops=method == QUADRATIC, n_jobs=1):
            yield {"eps": graph.params["eps"]}, graph
    elif method in (ENTROPIC, HOLLOW_ENTROPIC, GAUSSIAN):
        build = otgraph.gaussian_graph if method == GAUSSIAN else otgraph.entropic_ot_graph
        for value in eps:
            yield {"eps": value}, build(X, value, self_loops=method != HOLLOW_ENTROPIC, n_jobs=1)
    elif method == KNN_GAUSSIAN:
        values = tuple(eps)
        for count in k:
            for nearest in knn_gaussian_path(X, count, values, **knn):
                yield {"k": count, "eps": nearest.params["eps"]}, nearest
    elif method == KNN:
        for count in k:
            yield {"k": count}, otgraph.knn_gaussian_graph(X, count, None, **knn)
    else:
        assert method == MAGIC
        for count in k:
            yield {"k": count}, otgraph.magic_graph(X, count, n_jobs=1)


def graph_at(method: str, X: PointsLike, params: Params, variant: str = "text") -> otgraph.Graph:
    """The one graph of a method at given parameters, such as the best of a grid."""
    eps = (float(params["eps"]),) if "eps" in params else ()
    k = (int(params["k"]),) if "k" in params else ()
    return next(graphs_along(method, X, eps=eps, k=k, variant=variant))[1]
