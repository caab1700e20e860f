"""The paper's noisy spiral in one minute: its graph, its certificate, and a picture.

Run it with ``python -m otgraph.experiments.demo``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import otgraph
from otgraph import datasets
from otgraph.experiments._framework import figures
from otgraph.experiments._framework.statistics import share_within

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from otgraph import Graph
    from otgraph.typing import FloatArray, IntArray

EPS = 1.0  # in the middle of the range that recovers the spiral
PICTURE = Path("out", "demo", "spiral.png")
ZOOM_BOUNDS = (1.05, 0.22, 0.56, 0.56)  # of the enlarged lobe, beside its panel


def main() -> None:
    """Build, report and draw."""
    report, figure = run()
    print(report)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=150, bbox_inches="tight")
    print(f"\nPicture: {PICTURE}")


def run() -> tuple[str, Figure]:
    """The report as text, and the figure."""
    spiral = datasets.noisy_spiral()
    start = time.perf_counter()
    graph = otgraph.quadratic_ot_graph(spiral.X, eps=EPS, self_loops=False)
    seconds = time.perf_counter() - start
    rival = knn_of_mean_degree(spiral.X, graph.mean_degree)
    n, dim = spiral.X.shape
    lines = [
        f"Noisy spiral: {n} points in {dim} dimensions, noise from {spiral.noise_level.min():.2f}"
        f" to {spiral.noise_level.max():.2f}.",
        f"\nQuadratic OT graph, eps = {EPS:g}, {seconds:.1f} s (the first run compiles):",
        str(graph.certificate),
        findings(graph, spiral),
        f"\nNearest neighbors, k = {rival.params['n_neighbors']}, about the same mean degree:",
        findings(rival, spiral),
    ]
    return "\n".join(lines), draw(graph, rival, spiral)


def knn_of_mean_degree(X: FloatArray, mean_degree: float) -> Graph:
    """The unweighted nearest-neighbor graph whose mean degree is closest to the wanted one."""
    best = otgraph.knn_gaussian_graph(X, n_neighbors=1, eps=None)
    for k in range(2, len(X)):
        graph = otgraph.knn_gaussian_graph(X, n_neighbors=k, eps=None)
        if abs(graph.mean_degree - mean_degree) >= abs(best.mean_degree - mean_degree):
            break  # degrees only grow with k
        best = graph
    return best


def findings(graph: Graph, spiral: datasets.Sample) -> str:
    """Degrees, components, and whether the edges follow the curve."""
    degrees = graph.degrees
    clean_level, noisy_level = np.quantile(spiral.noise_level, [0.25, 0.75])
    clean, noisy = spiral.noise_level <= clean_level, spiral.noise_level >= noisy_level
    pairs = graph.weights.tocoo()
    steps = steps_along_curve(pairs.row, pairs.col, len(degrees))
    return (
        f"  degrees {degrees.min()} / {degrees.mean():.1f} / {degrees.max()} (min / mean / max), "
        f"{degrees[clean].mean():.1f} in the cleanest quarter, "
        f"{degrees[noisy].mean():.1f} in the noisiest\n"
        f"  {graph.n_connected} connected component(s)\n"
        f"  neighbors are {np.average(steps, weights=pairs.data):.1f} steps along the curve away "
        f"on average, {steps.max()} at most\n"
        f"  the noisiest quarter keeps {share_within(graph, noisy):.0%} of its weight to itself"
    )


def steps_along_curve(i: IntArray, j: IntArray, n: int) -> IntArray:
    """Steps from one point to another on the loop; points are numbered along it."""
    steps = np.abs(i - j)
    return np.asarray(np.minimum(steps, n - steps))


def draw(graph: Graph, rival: Graph, spiral: datasets.Sample) -> Figure:
    """Both graphs side by side over the two principal components of the points."""
    figure, axes = figures.subplots(15, 5, 1, 2)
    titles = (f"quadratic OT, ε = {EPS:g}", f"nearest neighbors, k = {rival.params['n_neighbors']}")
    plane = figures.principal_plane(spiral.X)
    for ax, drawn, title in zip(axes, (graph, rival), titles, strict=True):
        figures.draw_with_equal_ink(
            ax,
            drawn,
            plane,
            color=spiral.noise_level,
            title=title,
            zoom=figures.SPIRAL_ZOOM,
            zoom_bounds=ZOOM_BOUNDS,
        )
    figures.color_bar(figure, axes, spiral.noise_level, "size of the noise")
    return figure


if __name__ == "__main__":
    main()
