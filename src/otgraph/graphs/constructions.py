"""The table of constructions, by the names used everywhere (``method=``, ``--method``).

A new construction is one module with its function, one options class, and one line here.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


@dataclass(frozen=True)
class Construction:
    """A way to build a graph.

    Parameters
    ----------
    title
        Its name in legends.
    function
        Name of its public function.
    options
        Its keywords with their defaults.
    """

    title: str
    function: str
    options: type[Options]

    @property
    def build(self) -> Callable[..., Graph]:
        """The public function; loaded here, because the command line reads the table for help."""
        return getattr(importlib.import_module("otgraph.graphs"), self.function)


CONSTRUCTIONS = {
    "quadratic": Construction("quadratic OT", "quadratic_ot_graph", QuadraticOptions),
    "entropic": Construction("entropic OT", "entropic_ot_graph", EntropicOptions),
    "knn": Construction("kNN", "knn_gaussian_graph", KNNGaussianOptions),
    "gaussian": Construction("Gaussian", "gaussian_graph", GaussianOptions),
    "magic": Construction("MAGIC", "magic_graph", MAGICOptions),
}

# The construction that is used where none is named.
DEFAULT = "quadratic"
# Keywords of every construction.
ALL_OPTIONS = {name: construction.options for name, construction in CONSTRUCTIONS.items()}
