"""Section 3.3: denoising the expression of genes in single cells.

In every step MAGIC keeps a share of each cell's own noisy values. A plan without self-loops keeps
none of them. The two are therefore compared twice: as the authors run them, and with a plan that
keeps the same share (:data:`LAZY`).
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.metrics.pairwise import euclidean_distances

import otgraph
from otgraph.exceptions import ConvergenceWarning
from otgraph.experiments._cells_data import (
    ABOUT,
    PAPER,
    Parameters,
    compared_columns,
    expression,
    is_papers,
    prepared,
    with_data,
)
from otgraph.experiments._framework import figures
from otgraph.experiments._framework.experiment import Claim, Experiment, Picture, Summary, Task
from otgraph.experiments._framework.methods import ENTROPIC, HOLLOW, MAGIC, METHOD_STYLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure
    from pandas import Series

    from otgraph import Graph
    from otgraph.experiments._framework.experiment import Params, Scored, Scores
    from otgraph.typing import FloatArray

LAZY = "quadratic OT, self-share of MAGIC"
MATCHED = "entropic OT, same perplexity"
WIDER = "MAGIC, twice the neighbors"  # a small change, as a yardstick for the others
RAW = "no denoising"  # scores of the data as they are

GENE_CORRELATION = "correlation with MAGIC"
LOWEST_CORRELATION = "correlation with MAGIC, lowest gene"
LOW_CORRELATION = "correlation with MAGIC, 5 % of genes below"
DISTANCES = "distances, rank correlation with MAGIC"
VARIANCE = "variance kept"
DIMENSION = "effective dimension"
PERPLEXITY = "perplexity"
EPS = "eps"
OWN_SHARE = "share of a cell's own values after one step"
HUB_SHARE = "share of all weight that the most popular tenth receives"
DEGREES = ("smallest degree", "largest degree")
COMPONENTS = "components"

IN_TABLE = (
    GENE_CORRELATION, LOW_CORRELATION, DISTANCES, VARIANCE, DIMENSION, PERPLEXITY, OWN_SHARE,
    HUB_SHARE, *DEGREES, COMPONENTS, EPS,
)  # fmt: skip

# Cells whose pairs are compared; a rank correlation of 1e5 distances is accurate to 1e-2.
CELLS_IN_DISTANCES = 500
ENTROPIC_SHARE = 0.5 / 30  # ratio of the authors' two eps
PERPLEXITY_RTOL = 0.01
MOST_HALVINGS = 30
EPS_RANGE = (1e-3, 1.0)  # of the mean distance: from single neighbors to most of all cells

# Mean correlation over the genes that counts as nearly identical; without denoising it is lower.
NEARLY_IDENTICAL = 0.95
# Cells and genes that the authors' preparation leaves.
PAPER_SHAPE = (2416, 10782)

SHOWN = (MAGIC, HOLLOW, ENTROPIC, MATCHED)
COLOR_QUANTILES = (0.01, 0.99)  # ends of the color scale, which a few cells would stretch otherwise

QUICK = Parameters(max_cells=200, max_genes=100)


def tasks(parameters: Parameters, variant: str) -> Iterator[tuple[str, Params]]:
    """The three graphs of the paper, three more for comparison, and none."""
    for method in (MATCHED, ENTROPIC, HOLLOW, LAZY, MAGIC, WIDER, RAW):
        yield method, {}


def run(task: Task, parameters: Parameters) -> Iterator[Scored]:
    """How far every denoised matrix is from that of MAGIC, and what is left in it."""
    X = expression(parameters)
    shown = compared_columns(X, parameters)
    magic = graph(MAGIC, X, parameters)
    own = None if task.method == RAW else graph(task.method, X, parameters)
    for t in parameters.t:
        denoised = shown if own is None else otgraph.denoise(own, shown, t)
        yield {"t": t}, compare(denoised, otgraph.denoise(magic, shown, t), shown)
    if own is not None:
        yield {"t": 0}, describe(own)


def compare(denoised: FloatArray, reference: FloatArray, raw: FloatArray) -> dict[str, float]:
    """All scores of a denoised matrix."""
    correlation = gene_correlations(denoised, reference)
    spread = np.linalg.svd(denoised - denoised.mean(axis=0), compute_uv=False) ** 2
    return {
        GENE_CORRELATION: float(correlation.mean()),
        LOWEST_CORRELATION: float(correlation.min()),
        LOW_CORRELATION: float(np.quantile(correlation, 0.05)),
        DISTANCES: distance_correlation(denoised, reference),
        VARIANCE: float(denoised.var(axis=0).sum() / raw.var(axis=0).sum()),
        DIMENSION: float(spread.sum() ** 2 / (spread**2).sum()),
    }


def describe(of: Graph) -> dict[str, float]:
    """Properties of the graph: how wide its rows are, how even, how many components."""
    P = of.transition()
    own = P.diagonal()
    received = np.sort(np.asarray(P.sum(axis=0)).ravel() - own)[::-1]
    found = {
        PERPLEXITY: otgraph.methods.perplexity(of),
        OWN_SHARE: float(own.mean()),
        HUB_SHARE: float(received[: of.n // 10].sum() / received.sum()),
        "mean degree": of.mean_degree,
        DEGREES[0]: float(of.degrees.min()),
        DEGREES[1]: float(of.degrees.max()),
        COMPONENTS: float(of.n_connected),
    }
    if isinstance(of, otgraph.TransportGraph):
        found |= {EPS: of.certificate.eps, "marginal error": of.certificate.marginal_error}
    return found


def gene_correlations(A: FloatArray, B: FloatArray) -> FloatArray:
    """Pearson correlation of each gene between two matrices; 0 where one is constant."""
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    size = np.linalg.norm(A, axis=0) * np.linalg.norm(B, axis=0)
    return np.divide((A * B).sum(axis=0), size, out=np.zeros_like(size), where=size > 0)


def distance_correlation(A: FloatArray, B: FloatArray) -> float:
    """Spearman correlation of the distances between cells, evenly chosen if they are many."""
    chosen = np.unique(np.linspace(0, len(A) - 1, CELLS_IN_DISTANCES).astype(int))
    return float(spearmanr(pdist(A[chosen]), pdist(B[chosen])).statistic)


def graph(method: str, X: FloatArray, parameters: Parameters) -> Graph:
    """A graph with the authors' settings, or those for other data (see :class:`Parameters`)."""
    if method in (MAGIC, WIDER):
        n_pca = min(parameters.n_pca, min(X.shape) - 1)
        k = parameters.magic_k * (2 if method == WIDER else 1)
        return otgraph.magic_graph(X, k, n_pca=n_pca, n_jobs=1)
    if method == HOLLOW and parameters.eps is not None:
        return transport(method, X, parameters.eps)
    if method == HOLLOW:
        wanted = graph(MAGIC, X, parameters).mean_degree
        return otgraph.quadratic_ot_graph(X, mean_degree=wanted, power=1, normalize=False, n_jobs=1)
    if method == ENTROPIC and parameters.entropic_eps is not None:
        return transport(method, X, parameters.entropic_eps)
    quadratic = graph(HOLLOW, X, parameters)
    if method == LAZY:
        return lazy(quadratic, graph(MAGIC, X, parameters))
    if method == MATCHED:
        return _of_perplexity(X, otgraph.methods.perplexity(quadratic))
    return transport(method, X, ENTROPIC_SHARE * float(quadratic.params["eps"] or 0.0))


def lazy(plan: Graph, like: Graph) -> Graph:
    """A plan with self-loops, which get the mean share that they have in another graph."""
    share = float(like.transition().diagonal().mean())
    loops = sp.identity(plan.n, format="csr")
    return otgraph.Graph.from_weights((1 - share) * plan.weights + share * loops)


def transport(method: str, X: FloatArray, eps: float) -> Graph:
    """A hollow plan for Euclidean distances that are neither squared nor normalized."""
    if method == HOLLOW:
        return otgraph.quadratic_ot_graph(X, eps, power=1, normalize=False, n_jobs=1)
    return _entropic(_distances(X), eps)


def _distances(X: FloatArray) -> FloatArray:
    found = euclidean_distances(X)
    return np.asarray((found + found.T) / 2)  # equal in both directions to the last bit


def _entropic(distances: FloatArray, eps: float) -> Graph:
    with warnings.catch_warnings():
        # At small eps the plan is nearly a matching. The remaining error is recorded as a score.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return otgraph.entropic_ot_graph(
            distances, eps, metric="precomputed", normalize=False, n_jobs=1
        )


def _of_perplexity(X: FloatArray, wanted: float) -> Graph:
    """Entropic OT with the wanted number of effective neighbors, by bisection of log eps."""
    distances = _distances(X)
    low, high = np.log(distances.mean() * np.array(EPS_RANGE))
    for _ in range(MOST_HALVINGS):
        middle = (low + high) / 2
        found = _entropic(distances, float(np.exp(middle)))
        value = otgraph.methods.perplexity(found)
        if abs(value / wanted - 1) < PERPLEXITY_RTOL:
            break
        low, high = (middle, high) if value < wanted else (low, middle)
    return found


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """A row for every graph, and the claims."""
    table = [
        {"method": method, **{score: _entry(scores, method, score) for score in IN_TABLE}}
        for method in scores["method"].unique()
    ]
    claims = [_preparation(parameters)] if is_papers(parameters.data) else []
    claims += [_nearly_identical(scores, parameters, t) for t in parameters.t]
    return Summary(table, [*claims, _loses_geometry(scores, parameters)])


def _entry(scores: Scores, method: str, score: str) -> str | None:
    """The value of a graph, or one for each number of steps; None where there is none."""
    return " / ".join(f"{value:.3g}" for value in _at(scores, method, score)) or None


def _at(scores: Scores, method: str, score: str) -> Series:
    chosen = scores[(scores["method"] == method) & (scores["score"] == score)]
    return chosen.set_index("t")["value"]


def _course(scores: Scores, method: str, score: str) -> str:
    return ", ".join(f"{value:.3f}" for value in _at(scores, method, score))


def _where(parameters: Parameters) -> str:
    name = Path(parameters.data.replace("\\", "/")).name
    about = ABOUT.get(PAPER if is_papers(parameters.data) else name, "not the paper's cells")
    return f"On {name} ({about}: {parameters.n_cells} cells, {parameters.n_genes} genes)"


def _preparation(parameters: Parameters) -> Claim:
    shape = (parameters.n_cells, parameters.n_genes)
    return Claim(
        f"The authors' preparation leaves {PAPER_SHAPE[0]} cells and {PAPER_SHAPE[1]} genes.",
        shape == PAPER_SHAPE,
        f"It leaves {shape[0]} cells and {shape[1]} genes.",
    )


def _nearly_identical(scores: Scores, parameters: Parameters, t: int) -> Claim:
    mean = {m: _at(scores, m, GENE_CORRELATION)[t] for m in (LAZY, HOLLOW, WIDER, RAW)}
    low, lowest = (_at(scores, LAZY, s)[t] for s in (LOW_CORRELATION, LOWEST_CORRELATION))
    needed = min(NEARLY_IDENTICAL, mean[WIDER])
    share = _at(scores, MAGIC, OWN_SHARE)[0]
    confirmed = bool(mean[LAZY] >= needed)
    reason = (
        f"The mean must be at least {NEARLY_IDENTICAL:g}, or that of MAGIC with twice as many "
        f"neighbors: here {needed:.3f}."
    )
    if not confirmed:
        reason += f" {_hubs(scores)}"
    return Claim(
        f"Quadratic OT performs nearly identical to MAGIC (t = {t}).",
        confirmed,
        f"{_where(parameters)}, correlation per gene between the two denoised matrices, both with "
        f"a share of {share:.3f} of each cell's own values left in place at every step: mean "
        f"{mean[LAZY]:.3f}, 5 % of the genes below {low:.3f}, lowest {lowest:.3f}. As the authors "
        f"run it, without own values: {mean[HOLLOW]:.3f}. MAGIC with twice as many neighbors: "
        f"{mean[WIDER]:.3f}. Without denoising: {mean[RAW]:.3f}.",
        reason,
    )


def _hubs(scores: Scores) -> str:
    """Why the two differ: in a plan all cells receive the same weight."""

    def of(method: str, score: str) -> float:
        return float(_at(scores, method, score)[0])

    degrees = {m: "{:.0f} to {:.0f}".format(*(of(m, s) for s in DEGREES)) for m in (MAGIC, HOLLOW)}
    pieces = of(HOLLOW, COMPONENTS)
    apart = f", and the plan is in {pieces:.0f} pieces" if pieces > 1 else ""
    return (
        f"MAGIC has hubs: a tenth of the cells receives {100 * of(MAGIC, HUB_SHARE):.0f} % of all "
        f"weight (degrees {degrees[MAGIC]}). Equal masses forbid that: "
        f"{100 * of(HOLLOW, HUB_SHARE):.0f} % (degrees {degrees[HOLLOW]}){apart}."
    )


def _loses_geometry(scores: Scores, parameters: Parameters) -> Claim:
    behind = all(
        (_at(scores, ENTROPIC, score) < _at(scores, HOLLOW, score)).all()
        for score in (GENE_CORRELATION, DISTANCES)
    )
    graphs = (MAGIC, HOLLOW, ENTROPIC)
    numbers = "; ".join(
        f"{name} {', '.join(f'{m} {_course(scores, m, score)}' for m in graphs)}"
        for name, score in (
            ("variance kept:", VARIANCE), ("effective dimension:", DIMENSION),
            ("perplexity of a row:", PERPLEXITY),
        )
    )  # fmt: skip
    steps = ", ".join(map(str, parameters.t))
    return Claim(
        "Entropic OT fails to smooth points near the center and loses geometric information.",
        behind,
        f"{_where(parameters)}, t = {steps}: distances between cells have the rank correlation "
        f"{_course(scores, ENTROPIC, DISTANCES)} with those of MAGIC for entropic OT and "
        f"{_course(scores, HOLLOW, DISTANCES)} for quadratic OT; genes correlate by "
        f"{_course(scores, ENTROPIC, GENE_CORRELATION)} and "
        f"{_course(scores, HOLLOW, GENE_CORRELATION)} in the mean; {numbers}. With the perplexity "
        f"of quadratic OT, entropic OT has {_course(scores, MATCHED, DISTANCES)} and "
        f"{_course(scores, MATCHED, GENE_CORRELATION)}.",
        "Confirmed if entropic OT is farther from MAGIC than quadratic OT in genes and in "
        "distances, for every t. Both plans are hollow here, as in the authors' script.",
    )


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """Progression of three genes, and the correlation of all."""
    X = expression(parameters)
    eps = scores[scores["score"] == EPS].set_index("method")["value"]
    graphs = {m: transport(m, X, eps[m]) for m in (HOLLOW, ENTROPIC, MATCHED)}
    graphs |= {m: graph(m, X, parameters) for m in (MAGIC, WIDER)}
    graphs[LAZY] = lazy(graphs[HOLLOW], graphs[MAGIC])
    x, y, color = parameters.genes
    yield Picture(
        "progression",
        _progression({method: graphs[method] for method in SHOWN}, parameters),
        f"{x} against {y}, colored by {color}, after t steps of diffusion on each graph. On the "
        "left are the data, on their own axes. All other panels share axes and colors. The last "
        "row is not in the paper: entropic OT with as many effective neighbors as quadratic OT.",
    )
    yield Picture(
        "correlations",
        _correlations(graphs, compared_columns(X, parameters), parameters),
        "Correlation of every gene between the matrix denoised by a graph and that of MAGIC. The "
        f"dotted line is {NEARLY_IDENTICAL:g}.",
    )


def _progression(graphs: dict[str, Graph], parameters: Parameters) -> Figure:
    values = prepared(parameters.data, parameters.max_cells).expression(parameters.genes)
    steps = (0, *parameters.t)
    panels = {(m, t): otgraph.denoise(of, values, t) for m, of in graphs.items() for t in steps}
    denoised = np.concatenate([found for (_, t), found in panels.items() if t])
    low, high = np.quantile(denoised[:, 2], COLOR_QUANTILES)
    look = {"s": 6, "vmin": low, "vmax": high, "cmap": "viridis", "linewidths": 0}
    n_rows, n_columns = len(graphs), len(steps)
    figure, axes = figures.subplots(
        2.5 * n_columns + 1.4, 2.3 * n_rows, n_rows, n_columns, squeeze=False
    )
    x, y, color = parameters.genes
    for row, method in zip(axes, graphs, strict=True):
        for ax, t in zip(row, steps, strict=True):
            shown = panels[method, t]
            # Cells with high expression of the third gene are few. They are drawn on top.
            shown = shown[np.argsort(shown[:, 2], kind="stable")]
            points = ax.scatter(*shown[:, :2].T, c=shown[:, 2], **look)
            limits = _limits(denoised if t else values)
            ax.set(xlim=limits[0], ylim=limits[1])
            ax.tick_params(labelsize=7)
        row[0].set_ylabel(f"{method.replace(', ', chr(10))}\n\n{y}")
    for ax, t in zip(axes[0], steps, strict=True):
        ax.set_title(f"t = {t}" if t else "data")
    for ax in axes[-1]:
        ax.set_xlabel(x)
    bar = figure.colorbar(points, ax=axes.ravel().tolist(), label=color, extend="both", shrink=0.5)
    bar.ax.tick_params(labelsize=7)
    return figure


def _limits(values: FloatArray) -> list[tuple[float, float]]:
    """Range of the first two columns with a margin, for all panels that are compared."""
    low, high = values[:, :2].min(axis=0), values[:, :2].max(axis=0)
    margin = 0.05 * (high - low)
    return list(zip(low - margin, high + margin, strict=True))


def _correlations(graphs: dict[str, Graph], X: FloatArray, parameters: Parameters) -> Figure:
    n = len(parameters.t)
    figure, axes = figures.subplots(3.6 * n, 3.8, 1, n, sharex=True, sharey=True, squeeze=False)
    looks = {
        HOLLOW: (METHOD_STYLES[HOLLOW]["color"], "--"), LAZY: ("#b5123b", "-"),
        ENTROPIC: (METHOD_STYLES[ENTROPIC]["color"], "--"), MATCHED: ("#a87400", ":"),
        WIDER: (METHOD_STYLES[MAGIC]["color"], "-."),
    }  # fmt: skip
    for ax, t in zip(axes[0], parameters.t, strict=True):
        reference = otgraph.denoise(graphs[MAGIC], X, t)
        for method, (line, dashes) in looks.items():
            found = np.sort(gene_correlations(otgraph.denoise(graphs[method], X, t), reference))
            share = np.arange(1, len(found) + 1) / len(found)
            ax.plot(found, share, color=line, linestyle=dashes, linewidth=2, label=method)
        ax.axvline(NEARLY_IDENTICAL, color="0.4", linestyle=":", linewidth=1)
        ax.set(title=f"t = {t}", xlabel="correlation with MAGIC", xlim=(0, 1), ylim=(0, 1))
        figures.light_grid(ax)
    axes[0, 0].set_ylabel("share of genes below")
    figures.legend_below(figure, axes[0], 3)
    return figure


EXPERIMENT = Experiment(
    name="cells", title="Denoised gene expression of single cells", source="section 3.3",
    parameters=Parameters(), quick=QUICK, tasks=tasks, run=run, summarize=summarize, draw=draw,
    variants=("text",),  # the text names no settings; all are those of the authors' scripts
    seeded=False, with_data=with_data,
)  # fmt: skip
