r"""The paper's open question: whether quadratic OT tends to the operator of Laplace-Beltrami.

Section 4 finds it plausible. Here it is measured on three manifolds whose spectra are known, and
on a half of each, which has a border.
All graphs are compared at the same mean square step (see ``_manifolds``). It shrinks with growing
n: the radius of the quadratic OT graph is :math:`\propto n^{-1/(d+4)}`. Then the bias, of the order
of the radius squared, and the scatter of a random sample fall at the same rate
:math:`n^{-2/(d+4)}`. Degrees grow like :math:`n^{4/(d+4)}`, and eps grows like
:math:`n^{2/(d+4)}`. For comparison eps is also held fixed; then the radius is
:math:`\propto n^{-1/(d+2)}` and degrees grow like :math:`n^{2/(d+2)}`. No graph has self-loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import otgraph
from otgraph._optional import require
from otgraph.experiments._framework import figures
from otgraph.experiments._framework.experiment import Experiment, Picture, Task
from otgraph.experiments._framework.methods import (
    CORRECTED,
    GAUSSIAN,
    HOLLOW,
    HOLLOW_ENTROPIC,
    KNN,
    METHOD_STYLES,
    QUADRATIC,
)
from otgraph.experiments._framework.statistics import rate
from otgraph.experiments._laplace_claims import (
    AT_FIXED_EPS,
    DEGREE,
    DIFFUSION,
    DIVIDED_OUT,
    EIGENFUNCTIONS,
    EIGENVALUES,
    EVEN,
    FIXED,
    FIXED_CORRECTED,
    OWN_EIGENFUNCTIONS,
    OWN_EIGENVALUES,
    STEP_RATIO,
    UNEVEN,
    errors,
    on,
    summarize,
)
from otgraph.experiments._manifolds import (
    CLOSED,
    MANIFOLDS,
    WITH_BORDER,
    Manifold,
    mode_values,
    modes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from otgraph import Graph
    from otgraph.experiments._framework.experiment import Params, Row, Scored, Scores
    from otgraph.typing import FloatArray

REFERENCE_N = 500  # number of points for which `degree` is given
# Sampling noise is a few percent: more digits would be useless.
EIGENVECTOR_TOL = 1e-8
# Smaller weights are dropped. Rows sum to one: thousands of them are below the tolerance.
NEGLIGIBLE_WEIGHT = 1e-13

STYLES: dict[str, Row] = {
    HOLLOW: METHOD_STYLES[HOLLOW],
    # Nearly equal to the line above, hence rings behind the points.
    FIXED: {
        **METHOD_STYLES[QUADRATIC], "linestyle": ":", "markerfacecolor": "white", "markersize": 7,
        "zorder": 1.5,
    },
    CORRECTED: {**METHOD_STYLES[CORRECTED], "markersize": 7},
    KNN: METHOD_STYLES[KNN],
    FIXED_CORRECTED: {
        **METHOD_STYLES[CORRECTED], "linestyle": ":", "markerfacecolor": "white", "markersize": 9,
        "zorder": 1.5,
    },
    DIFFUSION: METHOD_STYLES[GAUSSIAN],
    HOLLOW_ENTROPIC: METHOD_STYLES[HOLLOW_ENTROPIC],
}  # fmt: skip
GUIDE = "rate of the radius squared"
LABELS = {
    FIXED: "quadratic OT, hollow, fixed ε",
    FIXED_CORRECTED: "density divided out, fixed ε",
    DIFFUSION: "diffusion maps, alpha = 1",
}
ROOM_BELOW = 3.0  # factor by which panels reach below the errors, for the legend


@dataclass(frozen=True)
class Parameters:
    """Sizes; `degree` is the mean of quadratic OT on 500 points.

    Dense kernels end at `dense_n`. At a fixed eps degrees grow most slowly. So `large_n` are for
    it, with the density divided out, on surfaces: these have some 400 neighbors there, a curve
    1000.
    """

    n: tuple[int, ...] = (500, 1000, 2000, 4000, 8000)
    large_n: tuple[int, ...] = (32_000, 100_000)
    dense_n: int = 4000
    manifolds: tuple[str, ...] = tuple(MANIFOLDS)
    degree: float = 30.0
    concentration: float = 0.5


QUICK = Parameters(n=(250, 500, 1000), large_n=(), dense_n=500)


def tasks(parameters: Parameters, variant: str) -> Iterator[tuple[str, Params]]:
    """The largest graphs first: they take longest."""
    for n in sorted((*parameters.large_n, *parameters.n), reverse=True):
        for manifold in parameters.manifolds:
            # The border matters for the correction; evenly sampled halves would show little else.
            for density in (EVEN, UNEVEN) if manifold in CLOSED else (UNEVEN,):
                at = {"manifold": manifold, "density": density, "n": n}
                for method in methods_at(parameters, manifold, density, n):
                    yield method, at


def methods_at(parameters: Parameters, manifold: str, density: str, n: int) -> Iterator[str]:
    """The methods that are run on a sample."""
    dim = MANIFOLDS[manifold].dim
    if n in parameters.n:
        if n <= parameters.dense_n:
            yield DIFFUSION
            if manifold in CLOSED:
                yield HOLLOW_ENTROPIC
        yield from (HOLLOW, CORRECTED, KNN)
        if density == EVEN:
            yield FIXED
    if density == UNEVEN and manifold in CLOSED and (n in parameters.n or dim > 1):
        yield FIXED_CORRECTED


def run(task: Task, parameters: Parameters) -> Iterator[Scored]:
    """Errors against Laplace-Beltrami and, if that differs, against the method's own limit."""
    name, n = task.params["manifold"], task.params["n"]
    manifold = MANIFOLDS[name]
    kappa = 0.0 if task.params["density"] == EVEN else parameters.concentration
    sample = manifold.sample(n, concentration=kappa, random_state=task.seed)
    angles = sample.t
    assert angles is not None  # manifolds have coordinates
    radius = support_radius(manifold, n, parameters, fixed_eps=task.method in AT_FIXED_EPS)
    found = graph(task.method, sample.X, manifold, radius)
    divided: Row = {"density": "corrected", "dim": manifold.dim}
    embedding = otgraph.eigenmaps(
        found, manifold.n_modes, tol=EIGENVECTOR_TOL,
        **(divided if task.method in DIVIDED_OUT else {}),
    )  # fmt: skip
    steps = 1 - embedding.eigenvalues

    def errors_against(kappa: float, q: float) -> tuple[float, float, float]:
        leading = modes(name, kappa, q)
        eigenvalues = np.array([mode.eigenvalue for mode in leading])
        step, error = fitted_step(steps, eigenvalues, manifold.n_first)
        functions = mode_values(name, leading, angles)
        return step, error, otgraph.subspace_angle(embedding, functions)

    step, of_values, of_functions = errors_against(0.0, 0.0)
    scores = {EIGENVALUES: of_values, EIGENFUNCTIONS: of_functions}
    if kappa and task.method not in DIVIDED_OUT:  # whose limit is Laplace-Beltrami
        q = density_exponent(task.method, manifold.dim)
        _, scores[OWN_EIGENVALUES], scores[OWN_EIGENFUNCTIONS] = errors_against(kappa, q)
    if not kappa and task.method not in DIVIDED_OUT:  # whose step is arbitrary
        scores[STEP_RATIO] = step / manifold.step(radius)
    yield {}, {**scores, DEGREE: found.mean_degree}


def support_radius(
    manifold: Manifold, n: int, parameters: Parameters, *, fixed_eps: bool = False
) -> float:
    """Radius of the quadratic OT graph on an even sample of n points."""
    start = manifold.radius_of_degree(parameters.degree, REFERENCE_N)
    exponent = manifold.dim + (2 if fixed_eps else 4)
    return float(start * (n / REFERENCE_N) ** (-1 / exponent))


def graph(method: str, X: FloatArray, manifold: Manifold, radius: float) -> Graph:
    """A graph with the mean square step of the quadratic OT graph of that radius."""
    n = len(X)
    if method in (HOLLOW_ENTROPIC, DIFFUSION):
        build = otgraph.entropic_ot_graph if method == HOLLOW_ENTROPIC else otgraph.gaussian_graph
        dense = build(X, manifold.entropic_eps(radius), normalize=False, n_jobs=1)
        dense.weights.data[dense.weights.data < NEGLIGIBLE_WEIGHT] = 0.0
        dense.weights.eliminate_zeros()
        return dense
    if method == KNN:
        k = manifold.neighbors(radius, n)
        return otgraph.knn_gaussian_graph(X, k, symmetrize="average", n_jobs=1)
    eps = manifold.quadratic_eps(radius, n)
    return otgraph.quadratic_ot_graph(X, eps, normalize=False, n_jobs=1)


def density_exponent(method: str, dim: int) -> float:
    """The exponent q in the limit of a method (see ``_manifolds``)."""
    return {HOLLOW: 2 / (dim + 2), KNN: 2 / dim, HOLLOW_ENTROPIC: 0.0}[method]


def fitted_step(steps: FloatArray, eigenvalues: FloatArray, n_first: int) -> tuple[float, float]:
    """Ratio of 1 - λ to the first eigenvalues, and mean relative error of the others."""
    step = steps[:n_first].mean() / eigenvalues[:n_first].mean()
    return float(step), float(np.abs(steps[n_first:] / step / eigenvalues[n_first:] - 1).mean())


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """One picture for even sampling, two for uneven, and one for manifolds with a border."""
    closed, bordered = on(scores, CLOSED), on(scores, WITH_BORDER)
    rows = {
        EIGENVALUES: "eigenvalues\n(relative error)",
        EIGENFUNCTIONS: "eigenfunctions\n(mean angle, radians)",
    }
    yield Picture(
        "even",
        _figure(closed, EVEN, rows),
        "Evenly sampled manifolds: distance of the leading eigenvalues and eigenfunctions from "
        "those of Laplace-Beltrami (mean over the seeds, range shaded). The legends give the "
        "fitted rates, the dotted line that of the radius squared. On the circle the unweighted "
        "kNN graph depends only on the order of the points, hence the small errors of its "
        "eigenvalues.",
    )
    for name, against, own, unit, remark in (
        ("uneven-eigenfunctions", EIGENFUNCTIONS, OWN_EIGENFUNCTIONS, "mean angle, radians",
         "which only graphs with the density divided out approach"),
        ("uneven-eigenvalues", EIGENVALUES, OWN_EIGENVALUES, "relative error",
         "which graphs with the density divided out approach; on the circle that of kNN has the "
         "same eigenvalues, with other eigenfunctions"),
    ):  # fmt: skip
        pair = {
            against: f"against Laplace-Beltrami\n({unit})",
            own: f"against the own limit\n({unit})",
        }
        yield Picture(
            name,
            _figure(closed, UNEVEN, pair),
            f"Unevenly sampled manifolds: above, the distance from Laplace-Beltrami, {remark}. "
            "Below, the distance from the limit that theory gives for each construction.",
        )
    if not bordered.empty:
        yield Picture(
            "border",
            _figure(bordered, UNEVEN, rows),
            "Unevenly sampled manifolds with a border: distance from Laplace-Beltrami with zero "
            "slope across the border.",
        )


def _figure(scores: Scores, density: str, rows: Mapping[str, str]) -> Figure:
    """A row of panels for every score, under its label."""
    manifolds = scores["manifold"].unique()
    figure, axes = figures.subplots(
        3.6 * len(manifolds) + 0.6, 7.2, len(rows), len(manifolds), sharey="row", squeeze=False
    )
    for row, (score, label) in zip(axes, rows.items(), strict=True):
        for ax, manifold in zip(row, manifolds, strict=True):
            _panel(ax, scores, score, manifold, density)
            ax.set_title(f"{manifold} (dimension {MANIFOLDS[manifold].dim})")
        row[0].set_ylabel(label)
        row[0].set_ylim(bottom=row[0].get_ylim()[0] / ROOM_BELOW)
    for ax in axes[-1]:
        ax.set_xlabel("number of points")
    figures.legend_below(figure, axes.ravel(), 3)
    return figure


def _panel(ax: Axes, scores: Scores, score: str, manifold: str, density: str) -> None:
    """Lines of all methods, with the rates in a legend."""
    lines, rates, starts = [], [], []
    for method, style in STYLES.items():
        table = errors(scores, score, method, density).get(manifold)
        if table is None:
            continue
        n = table.columns.to_numpy(dtype=float)
        look = {"markersize": 4.5, "linewidth": 1.6, **style}
        lines += ax.plot(n, table.mean(), label=LABELS.get(method, method), **look)
        ax.fill_between(n, table.min(), table.max(), color=style["color"], **figures.BAND)
        rates.append(f"n$^{{{rate(table)[0]:.2f}}}$" if len(n) > 1 else "one n only")
        starts.append((float(table.mean().iloc[0]), n))
    start, n = max(starts, key=lambda found: len(found[1]))
    slope = -2 / (MANIFOLDS[manifold].dim + 4)
    ax.plot(n, 1.15 * start * (n / n[0]) ** slope, color="0.35", linestyle=":", label=GUIDE)
    ax.set(xscale="log", yscale="log", xticks=n, xticklabels=[f"{value:.0f}" for value in n])
    ax.minorticks_off()
    ticker = require("matplotlib.ticker", "plots")  # numbers such as 0.05 in place of powers
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    figures.light_grid(ax, color="0.9")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=3)
    title = {"title": "fitted rates", "title_fontsize": 9, "fontsize": 9}
    ax.legend(lines, rates, loc="lower left", ncols=2, frameon=False, **title)


EXPERIMENT = Experiment(
    name="laplace", title="Eigenvalues and eigenfunctions against those of Laplace-Beltrami",
    source="section 4, open question", parameters=Parameters(), quick=QUICK,
    tasks=tasks, run=run, summarize=summarize, draw=draw, variants=("text",),
)  # fmt: skip
