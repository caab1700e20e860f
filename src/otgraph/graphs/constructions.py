"""The table of constructions, by the names used everywhere (``method=``, ``--method``).

A new construction is one module with its function, one options class, and one line here.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from otgraph.graphs.options import (
    EntropicOptions,
    GaussianOptions,
    KNNGaussianOptions,
    MAGICOptions,
    QuadraticOptions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.graphs.graph import Graph
    from otgraph.graphs.keywords import Options
    from otgraph.typing import SparseMatrix


@dataclass(frozen=True)
class Construction:
    """A way to build a graph."""

    title: str  # in legends
    module: str  # loaded when used: the command line reads the table for its help
    function: str  # the public one
    rows: str  # the function for rows of new points, for ``Graph.extend``
    options: type[Options]

    @property
    def build(self) -> Callable[..., Graph]:
        """The public function."""
        return self._named(self.function)

    @property
    def extend(self) -> Callable[..., SparseMatrix]:
        """Rows of new points, from a graph, the points, their masses and the metric."""
        return self._named(self.rows)

    def _named(self, name: str) -> Any:
        return getattr(importlib.import_module(f"otgraph.graphs.{self.module}"), name)


CONSTRUCTIONS = {
    "quadratic": Construction(
        "quadratic OT", "quadratic", "quadratic_ot_graph", "quadratic_rows", QuadraticOptions
    ),
    "multiscale": Construction(
        "multiscale OT", "multiscale", "multiscale_graph", "multiscale_rows", QuadraticOptions
    ),
    "entropic": Construction(
        "entropic OT", "entropic", "entropic_ot_graph", "entropic_rows", EntropicOptions
    ),
    "knn": Construction(
        "kNN", "kernels", "knn_gaussian_graph", "knn_gaussian_rows", KNNGaussianOptions
    ),
    "gaussian": Construction(
        "Gaussian", "kernels", "gaussian_graph", "gaussian_rows", GaussianOptions
    ),
    "magic": Construction("MAGIC", "magic", "magic_graph", "magic_rows", MAGICOptions),
}

# The construction that is used where none is named.
DEFAULT = "quadratic"
# Keywords of every construction.
ALL_OPTIONS = {name: construction.options for name, construction in CONSTRUCTIONS.items()}
