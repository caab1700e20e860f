"""Graphs: points in, :class:`Graph` out; one function per construction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph._optional import lazily

if TYPE_CHECKING:
    from otgraph.graphs.choice import Doubt, EpsChoice
    from otgraph.graphs.cross import transport_graph
    from otgraph.graphs.cross_graph import Both, CrossGraph, LabelTransfer
    from otgraph.graphs.dimension import IntrinsicDimension, intrinsic_dimension
    from otgraph.graphs.distances import Neighbors
    from otgraph.graphs.entropic import entropic_ot_graph
    from otgraph.graphs.graph import Graph, TransportGraph
    from otgraph.graphs.io import load_graph
    from otgraph.graphs.kernels import gaussian_graph, knn_gaussian_graph
    from otgraph.graphs.magic import magic_graph
    from otgraph.graphs.masses import balanced_mass
    from otgraph.graphs.mean import MeanCertificate, MultiscaleGraph
    from otgraph.graphs.multiscale import multiscale_graph
    from otgraph.graphs.path import EpsPath, eps_path
    from otgraph.graphs.quadratic import quadratic_ot_graph

__all__ = [
    "Both",
    "CrossGraph",
    "Doubt",
    "EpsChoice",
    "EpsPath",
    "Graph",
    "IntrinsicDimension",
    "LabelTransfer",
    "MeanCertificate",
    "MultiscaleGraph",
    "Neighbors",
    "TransportGraph",
    "balanced_mass",
    "entropic_ot_graph",
    "eps_path",
    "gaussian_graph",
    "intrinsic_dimension",
    "knn_gaussian_graph",
    "load_graph",
    "magic_graph",
    "multiscale_graph",
    "quadratic_ot_graph",
    "transport_graph",
]

# Loaded when first used: the table of constructions is read by programs that build no graph.
_HOMES = (
    "graph", "io", "distances", "choice", "path", "dimension", "quadratic", "entropic", "kernels",
    "magic", "masses", "mean", "multiscale", "cross_graph", "cross",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    return lazily(__name__, name, __all__, _HOMES)
