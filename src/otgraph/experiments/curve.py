"""Figure 1: a closed curve in the plane with uneven density, and the graphs of its points.

The text gives no numbers for this figure. The authors' script does, and is followed: the outline
of an elephant, 200 noisy points at von Mises angles, kNN with k = 15, quadratic OT with ε = 1 and
self-loops. A peanut without noise is added, where no short cut can be due to noise.

An edge is spurious if it is a short cut: the way along the curve between its ends is longer than
the distance of its ends by more than a tenth. Such edges appear where points are sparse, because
there the nearest neighbors are far away. The eigenvectors of a graph are compared with the
Laplace-Beltrami eigenfunctions of the curve, the waves along its length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

import otgraph
from otgraph import datasets
from otgraph._optional import require
from otgraph.experiments._framework import figures, methods
from otgraph.experiments._framework.experiment import Claim, Experiment, Picture, Summary, Task
from otgraph.experiments._framework.figures import DRAWN_SEED
from otgraph.experiments._framework.methods import CORRECTED, HOLLOW, KNN, METHOD_STYLES, QUADRATIC
from otgraph.experiments._framework.statistics import as_title, judged_lead, spread
from otgraph.experiments._outline import Outline, Places, eigenfunctions, outline_of
from otgraph.plots.colors import INK, POINT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from otgraph import Graph
    from otgraph.experiments._framework.experiment import Params, Row, Scored, Scores, Verdict
    from otgraph.typing import BoolArray, FloatArray

CURVES = ELEPHANT, PEANUT = "elephant", "peanut"
PAPERS_EPS, PAPERS_K = 1.0, 15  # of figure 1
LARGEST_DETOUR = 1.1  # way along the curve over distance of the ends
N_EIGENVECTORS = 2  # the plane of the embedding, which is a circle for a closed curve
OUTLINE_SIZE = 20_000  # points of the curve itself: lengths to four digits

SPURIOUS = "spurious edges"
ELSEWHERE = "spurious edges elsewhere"
MEAN_DEGREE = "mean degree"
ANGLE = "angle to Laplace-Beltrami"
OF_RIVAL = " of kNN"
PARAMETER = {QUADRATIC: "eps", HOLLOW: "eps", CORRECTED: "eps", KNN: "k"}
SHORT_CUT = "#b5123b"
EMBEDDED = {KNN: KNN, QUADRATIC: QUADRATIC, CORRECTED: "density divided out"}
CURVE_INK = 0.5  # per point; more than elsewhere, because lines on a curve overlap
OUTLINE_MARGIN = 5.0  # of the outline around a neighborhood; two standard deviations of the noise


@dataclass(frozen=True)
class Parameters:
    """Sizes of the authors' script, a peanut of the same size, and grids around their values."""

    n: int = 200
    concentration: float = 1.1
    noise: float = 2.5
    contrast: float = 10.0
    eps: tuple[float, ...] = methods.log_grid(-1.5, 1.5, 25)
    k: tuple[int, ...] = tuple(range(2, 41))


QUICK = Parameters(n=100, eps=methods.log_grid(-1, 1, 5), k=tuple(range(3, 41, 4)))


def tasks(parameters: Parameters, variant: str) -> Iterator[tuple[str, Params]]:
    """A task for each method and curve."""
    for curve in CURVES:
        for method in (QUADRATIC, HOLLOW, CORRECTED, KNN):
            yield method, {"curve": curve}


def sample(name: str, parameters: Parameters, seed: int) -> datasets.Sample:
    """The points of a curve and a seed, in their order along it."""
    if name == PEANUT:
        return datasets.closed_curve(parameters.n, contrast=parameters.contrast, random_state=seed)
    shape = {"concentration": parameters.concentration, "noise": parameters.noise}
    return datasets.elephant_curve(parameters.n, random_state=seed, **shape)


@cache
def _outline(name: str, parameters: Parameters) -> Outline:
    return outline_of(sample(name, replace(parameters, n=OUTLINE_SIZE, noise=0.0), 0))


def places(name: str, curve: datasets.Sample, parameters: Parameters) -> Places:
    """Positions of the points of a sample along its curve."""
    return _outline(name, parameters).places(curve)


def short_cuts(graph: Graph, clean: FloatArray, at: Places) -> BoolArray:
    """Whether the way along the curve is much longer than the distance, for every edge."""
    i, j, _ = graph.edges()
    way = np.abs(at.position[i] - at.position[j])
    way = np.minimum(way, at.length - way)
    return np.asarray(way > LARGEST_DETOUR * np.linalg.norm(clean[i] - clean[j], axis=1))


def run(task: Task, parameters: Parameters) -> Iterator[Scored]:
    """Edges and short cuts of every graph, and the angle of its eigenvectors to the curve's."""
    name = task.params["curve"]
    curve = sample(name, parameters, task.seed)
    at = places(name, curve, parameters)
    grid: Row = {"eps": parameters.eps, "k": parameters.k}
    for params, graph in methods.graphs_along(task.method, curve.X, variant="code", **grid):
        i, j, _ = graph.edges()
        spurious = short_cuts(graph, curve.clean, at)
        sparse = at.sparse[i] | at.sparse[j]
        scores = {
            MEAN_DEGREE: 2 * len(i) / graph.n,  # loops do not count
            "components": float(graph.n_connected),
            SPURIOUS: float(np.count_nonzero(spurious & sparse)),
            ELSEWHERE: float(np.count_nonzero(spurious & ~sparse)),
            ANGLE: otgraph.subspace_angle(embedding(task.method, graph), eigenfunctions(at)),
        }
        yield params, scores


def embedding(method: str, graph: Graph) -> FloatArray:
    """First two eigenvectors; the density is divided out for dimension one, that of a curve."""
    divided: Row = {"density": "corrected", "dim": 1} if method == CORRECTED else {}
    return otgraph.eigenmaps(graph, N_EIGENVECTORS, **divided).coordinates


def one_row_per_graph(scores: Scores, method: str, curve: str) -> Scores:
    """Scores as columns, one row for each seed and parameter."""
    mine = scores[(scores["method"] == method) & (scores["curve"] == curve)]
    graphs = ["seed", PARAMETER[method]]
    return mine.pivot(index=graphs, columns="score", values="value").reset_index()


def matched(scores: Scores, method: str, curve: str) -> Scores:
    """Each graph of a method beside the kNN graph of the same seed with the nearest mean degree.

    Graphs with more edges than any of the kNN graphs are left out.
    """
    knn = one_row_per_graph(scores, KNN, curve)
    pairs = []
    for seed, mine in one_row_per_graph(scores, method, curve).groupby("seed"):
        rivals = knn[knn["seed"] == seed]
        mine = mine[mine[MEAN_DEGREE] <= rivals[MEAN_DEGREE].max()].reset_index(drop=True)
        distance = np.subtract.outer(mine[MEAN_DEGREE].to_numpy(), rivals[MEAN_DEGREE].to_numpy())
        nearest = rivals.iloc[np.abs(distance).argmin(axis=1)].reset_index(drop=True)
        pairs.append(mine.join(nearest.add_suffix(OF_RIVAL)))
    return require("pandas", "data").concat(pairs, ignore_index=True)


def at_papers_eps(scores: Scores, method: str, curve: str) -> Scores:
    """The pairs of :func:`matched` at the paper's eps, one row per seed."""
    pairs = matched(scores, method, curve)
    return pairs[pairs["eps"] == PAPERS_EPS]


def rivals_k(scores: Scores, curve: str) -> int:
    """The k with as many edges as quadratic OT at the paper's eps, on the sample that is drawn."""
    pairs = at_papers_eps(scores, QUADRATIC, curve)
    return int(pairs[pairs["seed"] == DRAWN_SEED]["k" + OF_RIVAL].iloc[0])


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """Quadratic OT against nearest neighbors at the same mean degree, on both curves."""
    claims = [
        *(_more_spurious(scores, curve) for curve in CURVES),
        _free_of_them(scores),
        _geometry(scores),
        _divided_out(scores),
    ]
    table = [row for curve in CURVES for row in _rows(scores, curve)]
    return Summary(table, [replace(claim, variant="text") for claim in claims])


def _rows(scores: Scores, curve: str) -> Iterator[Row]:
    digits = {MEAN_DEGREE: 1, SPURIOUS: 1, ELSEWHERE: 1, ANGLE: 3}

    def row(method: str, at: Row, table: Scores, suffix: str = "") -> Row:
        numbers = {score: spread(table[score + suffix], d) for score, d in digits.items()}
        return {"curve": curve, "method": method, "at": at, **numbers}

    for method in (QUADRATIC, HOLLOW, CORRECTED):
        yield row(method, {"eps": PAPERS_EPS}, at_papers_eps(scores, method, curve))
    pairs = at_papers_eps(scores, QUADRATIC, curve)
    at = {"k": [int(k) for k in pairs["k" + OF_RIVAL]]}
    yield row(f"{KNN}, as many edges as {QUADRATIC}", at, pairs, OF_RIVAL)
    knn = one_row_per_graph(scores, KNN, curve)
    yield row(KNN, {"k": PAPERS_K}, knn[knn["k"] == PAPERS_K])


def _more_spurious(scores: Scores, curve: str) -> Claim:
    shown = at_papers_eps(scores, QUADRATIC, curve)
    verdict, reason = judged_lead(shown[SPURIOUS + OF_RIVAL] - shown[SPURIOUS])
    pairs = matched(scores, QUADRATIC, curve)
    lead = pairs[SPURIOUS + OF_RIVAL] - pairs[SPURIOUS]
    knn = one_row_per_graph(scores, KNN, curve)
    papers = knn[knn["k"] == PAPERS_K]
    worse = int((papers[SPURIOUS].to_numpy() > shown[SPURIOUS].to_numpy()).sum())
    beyond = "" if curve == ELEPHANT else "Beyond the paper, on a peanut without noise: "
    return Claim(
        f"{beyond}kNN forms a graph that has more spurious edges in low-density regions.",
        verdict,
        f"Spurious edges in the sparse half of the {curve}: quadratic OT at ε = {PAPERS_EPS:g} "
        f"{spread(shown[SPURIOUS], 1)}, kNN with as many edges "
        f"{spread(shown[SPURIOUS + OF_RIVAL], 1)}, kNN with k = {PAPERS_K}, which has fewer, "
        f"{spread(papers[SPURIOUS], 1)}. In the dense half: {spread(shown[ELSEWHERE], 1)}, "
        f"{spread(shown[ELSEWHERE + OF_RIVAL], 1)} and {spread(papers[ELSEWHERE], 1)}. Of "
        f"{len(lead)} pairs of graphs with equal mean degree, kNN has more in the sparse half in "
        f"{(lead > 0).sum()}, as many in {(lead == 0).sum()} and fewer in {(lead < 0).sum()}.",
        f"By fewer spurious edges in graphs with as many edges, quadratic OT is {reason} With "
        f"k = {PAPERS_K} kNN has more of them in {worse} of {len(shown)} seeds, although it has "
        "fewer edges.",
    )


def _free_of_them(scores: Scores) -> Claim:
    free = {
        method: largest_free_degree(scores, method, PEANUT) for method in (QUADRATIC, HOLLOW, KNN)
    }
    verdict, reason = judged_lead(free[QUADRATIC] - free[KNN])
    numbers = "; ".join(f"{method} {spread(degrees, 1)}" for method, degrees in free.items())
    return Claim(
        "Beyond the paper: on the peanut quadratic OT can have more edges than kNN before the "
        "first of them is spurious.",
        verdict,
        f"Largest mean degree without a spurious edge: {numbers}.",
        f"Quadratic OT is {reason}",
    )


def largest_free_degree(scores: Scores, method: str, curve: str) -> FloatArray:
    """Mean degree of the densest graph before the first with a spurious edge, one per seed."""
    table = one_row_per_graph(scores, method, curve).sort_values(["seed", MEAN_DEGREE])
    clean = table[SPURIOUS].eq(0).groupby(table["seed"]).cummin()
    degrees = table[MEAN_DEGREE].where(clean, 0.0)
    return np.asarray(degrees.groupby(table["seed"]).max(), dtype=np.float64)


def _geometry(scores: Scores) -> Claim:
    shown = {curve: at_papers_eps(scores, QUADRATIC, curve) for curve in CURVES}
    verdict, reason = _on_both(
        {curve: pairs[ANGLE + OF_RIVAL] - pairs[ANGLE] for curve, pairs in shown.items()}
    )
    numbers = "; ".join(
        f"{curve} {spread(pairs[ANGLE])}, kNN with as many edges {spread(pairs[ANGLE + OF_RIVAL])}"
        for curve, pairs in shown.items()
    )
    return Claim(
        "Beyond the paper: quadratic OT is closer to the geometry of the curve than kNN.",
        verdict,
        "Angle between the first two eigenvectors and the Laplace-Beltrami eigenfunctions at "
        f"ε = {PAPERS_EPS:g}: {numbers}. An unweighted kNN graph on a curve reflects little more "
        "than the order of the points: its eigenvectors are waves in their rank. They form a "
        "circle at any density, but not the circle of the curve.",
        reason,
    )


def _divided_out(scores: Scores) -> Claim:
    leads, sentences = {}, []
    for curve in CURVES:
        pairs = at_papers_eps(scores, HOLLOW, curve)
        plain, rival = pairs[ANGLE].to_numpy(), pairs[ANGLE + OF_RIVAL].to_numpy()
        divided = at_papers_eps(scores, CORRECTED, curve)[ANGLE].to_numpy()
        leads[curve] = np.minimum(plain, rival) - divided
        sentences.append(
            f"{curve} {spread(divided)} against {spread(plain)} without it and {spread(rival)} "
            "of kNN with as many edges"
        )
    verdict, reason = _on_both(leads)
    return Claim(
        "Beyond the paper: with the density divided out, which the potentials of quadratic OT "
        "make possible, the graph is closest to the geometry.",
        verdict,
        f"Angle to Laplace-Beltrami at ε = {PAPERS_EPS:g}: {'; '.join(sentences)}.",
        reason,
    )


def _on_both(leads: Mapping[str, ArrayLike]) -> tuple[Verdict, str]:
    """One verdict from the leads on both curves: the less favorable one."""
    order = ("confirmed", "a tie", "not confirmed")
    judged = {curve: judged_lead(lead) for curve, lead in leads.items()}
    reasons = (f"{curve.capitalize()}: {reason}" for curve, (_, reason) in judged.items())
    return max((verdict for verdict, _ in judged.values()), key=order.index), " ".join(reasons)


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """Figure 1 as the authors drew it, the peanut, spurious edges, and embeddings of both."""
    elephant, peanut = (sample(name, parameters, DRAWN_SEED) for name in CURVES)
    yield Picture(
        "figure-1",
        _figure_1(elephant, places(ELEPHANT, elephant, parameters)),
        "Figure 1 with the settings of the authors' script. Left: the neighborhood of one point "
        "(ringed) by quadratic OT, the points that it exchanges mass with. Middle and right: the "
        f"graphs. Red lines are spurious edges (seed {DRAWN_SEED}).",
    )
    yield Picture(
        "peanut",
        _peanut(peanut, places(PEANUT, peanut, parameters), rivals_k(scores, PEANUT)),
        "Quadratic OT and nearest neighbors with about as many edges on a peanut without noise, "
        f"whose points are sparse on the left (seed {DRAWN_SEED}). Red lines are spurious edges: "
        "the way along the curve is longer by more than a tenth.",
    )
    yield Picture(
        "spurious",
        _spurious(scores),
        "Spurious edges in the sparse half of both curves against the mean degree, one line per "
        "seed.",
    )
    yield Picture(
        "embeddings",
        _embeddings(scores, parameters),
        "First two eigenvectors beside the Laplace-Beltrami eigenfunctions of the curve, rotated "
        f"onto them and colored by the length along it (seed {DRAWN_SEED}; angle in brackets). "
        "Equal colors should lie in equal places. The kNN graphs have as many edges as those "
        "of quadratic OT.",
    )


def _figure_1(elephant: datasets.Sample, at: Places) -> Figure:
    figure, (left, middle, right) = figures.subplots(14, 4.6, 1, 3)
    graph = methods.graph_at(QUADRATIC, elephant.X, {"eps": PAPERS_EPS})
    typical = int(np.abs(at.density - 1).argmin())  # a point of medium density
    _neighborhood(left, graph, elephant.X, typical)
    _graph_with_short_cuts(middle, QUADRATIC, {"eps": PAPERS_EPS}, elephant, at)
    _graph_with_short_cuts(right, KNN, {"k": PAPERS_K}, elephant, at)
    return figure


def _peanut(peanut: datasets.Sample, at: Places, k: int) -> Figure:
    figure, (left, right) = figures.subplots(12, 4, 1, 2)
    _graph_with_short_cuts(left, QUADRATIC, {"eps": PAPERS_EPS}, peanut, at)
    _graph_with_short_cuts(right, KNN, {"k": k}, peanut, at)
    return figure


def _neighborhood(ax: Axes, graph: Graph, X: FloatArray, point: int) -> None:
    """One point, the edges of its row, and an outline around them."""
    row = graph.weights[[point]].tocoo()
    others = row.col[row.col != point]
    strength = row.data[row.col != point] / row.data.max()
    ends = np.stack([np.broadcast_to(X[point], X[others].shape), X[others]])
    ax.scatter(X[:, 0], X[:, 1], s=9, color="0.75", linewidths=0)
    for start, end, opacity in zip(*ends, strength, strict=True):
        ax.plot(*np.stack([start, end]).T, color=INK, alpha=max(opacity, 0.15), linewidth=1)
    ax.scatter(X[others, 0], X[others, 1], s=16, color=POINT, linewidths=0, zorder=3)
    x, y = X[point]
    ax.scatter(x, y, s=70, facecolor=POINT, edgecolor=INK, linewidths=1.6, zorder=4)
    along = np.linspace(0, 1, 30)[:, None, None] * (ends[1] - ends[0]) + ends[0]
    low, high = X.min(axis=0) - 2 * OUTLINE_MARGIN, X.max(axis=0) + 2 * OUTLINE_MARGIN
    grid = np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 300))
    distance, _ = cKDTree(along.reshape(-1, 2)).query(np.stack(grid, axis=-1))
    ax.contourf(*grid, distance, levels=[0, OUTLINE_MARGIN], colors=[POINT], alpha=0.12, zorder=0)
    ax.contour(*grid, distance, levels=[OUTLINE_MARGIN], colors=[INK], linewidths=1.2)
    figures.hide_axes(ax)
    ax.set_title(f"neighborhood of one point: {len(others)} others")


def _graph_with_short_cuts(
    ax: Axes, method: str, params: Params, curve: datasets.Sample, at: Places
) -> None:
    graph = methods.graph_at(method, curve.X, params, "code")
    i, j, _ = graph.edges()
    wrong = short_cuts(graph, curve.clean, at)
    sparse = np.count_nonzero(wrong & (at.sparse[i] | at.sparse[j]))
    title = (
        f"{method}, {as_title(params)}: {len(i)} edges\n"
        f"{np.count_nonzero(wrong)} spurious, {sparse} in the sparse half"
    )
    figures.draw_with_equal_ink(ax, graph, curve.X, CURVE_INK, title=title)
    lines = curve.X[np.stack([i[wrong], j[wrong]])]  # ends, edges, coordinates
    ax.plot(*lines.transpose(2, 0, 1), color=SHORT_CUT, linewidth=0.6, alpha=0.5, zorder=1.5)


def _spurious(scores: Scores) -> Figure:
    figure, axes = figures.subplots(10, 4, 1, 2)
    for ax, curve in zip(axes, CURVES, strict=True):
        for method in (QUADRATIC, HOLLOW, KNN):
            table = one_row_per_graph(scores, method, curve).sort_values(MEAN_DEGREE)
            look = {"markersize": 2.5, "linewidth": 0.8, **METHOD_STYLES[method]}
            for number, (_, group) in enumerate(table.groupby("seed")):
                label = None if number else method
                ax.plot(group[MEAN_DEGREE], group[SPURIOUS], label=label, **look)
        largest = one_row_per_graph(scores, KNN, curve)
        ax.set(xlim=(0, largest[MEAN_DEGREE].max()), title=curve, xlabel="mean degree")
        ax.set_ylim(-0.02 * largest[SPURIOUS].max(), 1.02 * largest[SPURIOUS].max())
    axes[0].set_ylabel("spurious edges, sparse half")
    axes[0].legend(frameon=False)
    return figure


def _embeddings(scores: Scores, parameters: Parameters) -> Figure:
    figure, rows = figures.subplots(11, 5.8, 2, 4)
    for axes, name in zip(rows, CURVES, strict=True):
        curve = sample(name, parameters, DRAWN_SEED)
        at = places(name, curve, parameters)
        truth = np.sqrt(2) * eigenfunctions(at)  # mean square one, as eigenmaps
        params = {"eps": PAPERS_EPS, "k": rivals_k(scores, name)}
        planes = {f"{name}:\nLaplace-Beltrami": truth}
        for method, label in EMBEDDED.items():
            found = embedding(method, methods.graph_at(method, curve.X, params, "code"))
            planes[f"{label}\n({otgraph.subspace_angle(found, truth):.2f})"] = found
        figures.draw_embeddings(axes, planes, at.position)
    return figure


EXPERIMENT = Experiment(
    name="curve", title="Spurious edges on a closed curve of uneven density", source="figure 1",
    parameters=Parameters(), quick=QUICK, tasks=tasks, run=run, summarize=summarize, draw=draw,
    variants=("text",),  # the text has no numbers that the authors' script could differ from
)  # fmt: skip
