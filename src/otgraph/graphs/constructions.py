"""The table of constructions, by the names used everywhere (``method=``, ``--method``).

A new construction is one module with its function, one options class, and one line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from otgraph.graphs.entropic import entropic_ot_graph
from otgraph.graphs.kernels import gaussian_graph, knn_gaussian_graph
from otgraph.graphs.magic import magic_graph
from otgraph.graphs.options import (
    EntropicOptions,
    GaussianOptions,
    KNNGaussianOptions,
    MAGICOptions,
    QuadraticOptions,
)
from otgraph.graphs.quadratic import quadratic_ot_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.graphs.graph import Graph
    from otgraph.graphs.options import Options


@dataclass(frozen=True)
class Construction:
    """A way to build a graph.

    Parameters
    ----------
    title
        Its name in legends.
    build
        The public function.
    options
        Its keywords with their defaults.
    """

    title: str
    build: Callable[..., Graph]
    options: type[Options]


CONSTRUCTIONS = {
    "quadratic": Construction("quadratic OT", quadratic_ot_graph, QuadraticOptions),
    "entropic": Construction("entropic OT", entropic_ot_graph, EntropicOptions),
    "knn": Construction("kNN", knn_gaussian_graph, KNNGaussianOptions),
    "gaussian": Construction("Gaussian", gaussian_graph, GaussianOptions),
    "magic": Construction("MAGIC", magic_graph, MAGICOptions),
}
