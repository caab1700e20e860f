"""Pictures of graphs; matplotlib and bokeh are imported when first used."""

from __future__ import annotations

from otgraph.plots.comparison import compare_graphs
from otgraph.plots.curves import plot_choice, plot_convergence, plot_eigenvalues, plot_path
from otgraph.plots.degrees import plot_degrees
from otgraph.plots.embedding import plot_embedding
from otgraph.plots.explorer import explore
from otgraph.plots.graph import draw_graph
from otgraph.plots.layouts import layout
from otgraph.plots.scales import plot_scales

__all__ = [
    "compare_graphs",
    "draw_graph",
    "explore",
    "layout",
    "plot_choice",
    "plot_convergence",
    "plot_degrees",
    "plot_eigenvalues",
    "plot_embedding",
    "plot_path",
    "plot_scales",
]
