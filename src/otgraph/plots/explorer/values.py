"""Default values of eps for the page."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.graphs.quadratic import quadratic_ot_graph

if TYPE_CHECKING:
    from otgraph.typing import FloatArray, PointsLike

N_VALUES = 15
# Range of mean degrees. With three neighbors almost every graph is disconnected; with sixty the
# structure of most data is blurred.
SPARSEST, DENSEST = 3.0, 60.0
LARGEST_SHARE = 0.5  # of all other points as neighbors, where there are few points
SEARCH_TOL = 1e-2  # tolerance for the ends
DIGITS = 3  # digits of the values, which are then easy to type


def chosen_eps(X: PointsLike, **options: Any) -> FloatArray:
    """Fifteen values, evenly spaced in log eps, from a sparse graph to a dense one."""
    n = (X.shape if hasattr(X, "shape") else np.shape(X))[0]
    dense = min(DENSEST, max(1.0, LARGEST_SHARE * (n - 1)))
    search = {**options, "tol": max(SEARCH_TOL, options.get("tol", 0.0))}
    ends = []
    for degree in (min(SPARSEST, dense), dense):
        with warnings.catch_warnings():  # the path repeats the warnings
            warnings.simplefilter("ignore", UserWarning)
            graph = quadratic_ot_graph(X, mean_degree=degree, **search)
        ends.append(float(graph.params["eps"] or 0.0))
    values = np.geomspace(min(ends), max(ends), N_VALUES)
    return np.unique([float(f"{value:.{DIGITS}g}") for value in values])
