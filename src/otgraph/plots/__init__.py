"""Pictures of graphs; matplotlib is loaded by the first one."""

from __future__ import annotations

from otgraph.plots.graph import draw_graph

__all__ = ["draw_graph"]
