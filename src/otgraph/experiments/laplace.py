r"""The paper's open question: whether quadratic OT tends to the operator of Laplace-Beltrami.

Section 4 finds it plausible. Here it is measured on three manifolds whose spectra are known.
All graphs are compared at the same mean square step (see ``_manifolds``), which shrinks with
growing n such that the radius of the quadratic OT graph is :math:`\propto n^{-1/(d+4)}`. Then the
bias, of the order of the radius squared, and the scatter of a random sample fall at the same
rate :math:`n^{-2/(d+4)}`, degrees grow like :math:`n^{4/(d+4)}`, and eps grows like
:math:`n^{2/(d+4)}`. For comparison eps is also held fixed; then the radius is
:math:`\propto n^{-1/(d+2)}` and degrees grow like :math:`n^{2/(d+2)}`. No graph has self-loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

import otgraph
from otgraph._optional import require
from otgraph.experiments._framework import Claim, Experiment, Picture, Summary, spread
from otgraph.experiments._framework.figures import new_figure
from otgraph.experiments._framework.statistics import CONFIDENCE, course, falls, rate
from otgraph.experiments._framework.style import (
    BAND_ALPHA,
    CORRECTED,
    HOLLOW,
    HOLLOW_ENTROPIC,
    KNN,
    METHOD_STYLES,
    QUADRATIC,
)
from otgraph.experiments._manifolds import MANIFOLDS, mode_values, modes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from otgraph.experiments._framework import Task
    from otgraph.experiments._framework.experiment import Row, Scores
    from otgraph.experiments._manifolds import Manifold
    from otgraph.typing import FloatArray, SparseMatrix

__all__ = ["EXPERIMENT", "corrected"]

FIXED = "quadratic OT, hollow, fixed eps"

EVEN, UNEVEN = "even", "uneven"
EIGENVALUES = "eigenvalue error"
EIGENFUNCTIONS = "eigenfunction error"
OWN_EIGENVALUES = "eigenvalue error, own limit"
OWN_EIGENFUNCTIONS = "eigenfunction error, own limit"
STEP_RATIO = "first eigenvalue over theory"
BOTH = {EIGENVALUES: "eigenvalues", EIGENFUNCTIONS: "eigenfunctions"}
OWN = {OWN_EIGENVALUES: "eigenvalues", OWN_EIGENFUNCTIONS: "eigenfunctions"}

REFERENCE_N = 500  # where `degree` holds
# Sampling noise is a few percent, so more digits would be useless.
EIGENVECTOR_TOL = 1e-8
# Smaller weights are dropped. Rows sum to one, so thousands of them are below the tolerance.
NEGLIGIBLE_WEIGHT = 1e-13
# Allowed distance from the asymptotic ratio of eigenvalues at the largest n.
STEP_TOLERANCE = 0.03
# Why kNN, unweighted, can win on a curve.
RANK_EFFECT = (
    " On a curve the unweighted kNN graph knows little more than the order of the points: it is "
    "nearly that of evenly spaced ones, whose eigenvalues have no scatter from sampling. Its "
    "eigenfunctions, which need the places of the points, gain nothing."
)

STYLES: dict[str, dict[str, Any]] = {
    HOLLOW: METHOD_STYLES[HOLLOW],
    # Nearly equal to the line above, so it gets rings behind the points.
    FIXED: {
        **METHOD_STYLES[QUADRATIC], "linestyle": ":", "markerfacecolor": "white", "markersize": 7,
        "zorder": 1.5,
    },
    CORRECTED: {**METHOD_STYLES[CORRECTED], "markersize": 7},
    KNN: METHOD_STYLES[KNN],
    HOLLOW_ENTROPIC: METHOD_STYLES[HOLLOW_ENTROPIC],
}  # fmt: skip
GUIDE = "rate of the radius squared"
LABELS = {FIXED: "quadratic OT, hollow, fixed ε"}
ROOM_BELOW = 3.0  # factor by which panels reach below the errors, for the legend


@dataclass(frozen=True)
class Parameters:
    """Sizes; `degree` is that of quadratic OT on 500 even points, `dense_n` ends entropic OT."""

    n: tuple[int, ...] = (500, 1000, 2000, 4000, 8000)
    dense_n: int = 4000
    manifolds: tuple[str, ...] = tuple(MANIFOLDS)
    degree: float = 30.0
    concentration: float = 0.5


QUICK = Parameters(n=(250, 500, 1000), dense_n=500)


def methods(parameters: Parameters, variant: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The largest graphs first: they take longest."""
    for n in sorted(parameters.n, reverse=True):
        for manifold in parameters.manifolds:
            for density in (EVEN, UNEVEN):
                at = {"manifold": manifold, "density": density, "n": n}
                if n <= parameters.dense_n:
                    yield HOLLOW_ENTROPIC, at
                for method in (HOLLOW, CORRECTED, KNN):
                    yield method, at
                if density == EVEN:
                    yield FIXED, at


def run(task: Task, parameters: Parameters) -> Iterator[Row]:
    """Errors against Laplace-Beltrami and, if that differs, against the method's own limit."""
    name, n = task.params["manifold"], task.params["n"]
    manifold = MANIFOLDS[name]
    kappa = 0.0 if task.params["density"] == EVEN else parameters.concentration
    sample = manifold.sample(n, concentration=kappa, random_state=task.seed)
    angles = sample.t
    assert angles is not None  # manifolds have coordinates
    radius = support_radius(manifold, n, parameters, fixed_eps=task.method == FIXED)
    weights = graph(task.method, sample.X, manifold, radius)
    embedding = otgraph.eigenmaps(weights, manifold.n_modes, tol=EIGENVECTOR_TOL)
    steps = 1 - embedding.eigenvalues

    def errors_against(kappa: float, q: float) -> tuple[float, float, float]:
        leading = modes(name, kappa, q)
        eigenvalues = np.array([mode.eigenvalue for mode in leading])
        step, error = fitted_step(steps, eigenvalues, manifold.n_first)
        functions = mode_values(name, leading, angles)
        return step, error, otgraph.subspace_angle(embedding, functions)

    step, of_values, of_functions = errors_against(0.0, 0.0)
    yield {"score": EIGENVALUES, "value": of_values}
    yield {"score": EIGENFUNCTIONS, "value": of_functions}
    if kappa and task.method != CORRECTED:  # that one should divide the density out
        q = density_exponent(task.method, manifold.dim)
        _, of_values, of_functions = errors_against(kappa, q)
        yield {"score": OWN_EIGENVALUES, "value": of_values}
        yield {"score": OWN_EIGENFUNCTIONS, "value": of_functions}
    if not kappa and task.method != CORRECTED:  # whose step is arbitrary
        yield {"score": STEP_RATIO, "value": step / manifold.step(radius)}
    yield {"score": "mean degree", "value": np.diff(weights.indptr).mean()}


def support_radius(
    manifold: Manifold, n: int, parameters: Parameters, *, fixed_eps: bool = False
) -> float:
    """Radius of the quadratic OT graph on an even sample of n points."""
    start = manifold.radius_of_degree(parameters.degree, REFERENCE_N)
    exponent = manifold.dim + (2 if fixed_eps else 4)
    return float(start * (n / REFERENCE_N) ** (-1 / exponent))


def graph(method: str, X: FloatArray, manifold: Manifold, radius: float) -> SparseMatrix:
    """Weights of a graph with the mean square step of the quadratic OT graph of that radius."""
    n = len(X)
    if method == HOLLOW_ENTROPIC:
        eps = manifold.entropic_eps(radius)
        weights = otgraph.entropic_ot_graph(X, eps, normalize=False, n_jobs=1).weights
        weights.data[weights.data < NEGLIGIBLE_WEIGHT] = 0.0
        weights.eliminate_zeros()
        return weights
    if method == KNN:
        k = manifold.neighbors(radius, n)
        return otgraph.knn_gaussian_graph(X, k, symmetrize="average", n_jobs=1).weights
    eps = manifold.quadratic_eps(radius, n)
    quadratic = otgraph.quadratic_ot_graph(X, eps, normalize=False, n_jobs=1)
    return corrected(quadratic, manifold.dim) if method == CORRECTED else quadratic.weights


def corrected(quadratic: otgraph.TransportGraph, dim: int) -> SparseMatrix:
    r"""Weights from which the density is divided out with the help of the potentials.

    The potential is half the squared radius, hence :math:`\rho \propto u^{-(d+2)/2}`. With
    :math:`V_{ij} = \pi_{ij} (u_i u_j)^{d/4}` the sum :math:`\sum_j V_{ij} (f_i - f_j)` tends to
    :math:`-\rho^{-1} \Delta f`. Loops give the rows sums proportional to :math:`\rho^{-1}`, by
    which the random walk divides.
    """
    u = quadratic.potentials
    factor = sp.diags(u ** (dim / 4))
    weights = factor @ quadratic.weights @ factor
    sums = np.asarray(weights.sum(axis=1)).ravel()
    wanted = u ** ((dim + 2) / 2)
    loops = np.maximum(wanted * (sums / wanted).max() - sums, 0.0)  # one is zero up to rounding
    return (weights + sp.diags(loops)).tocsr()


def density_exponent(method: str, dim: int) -> float:
    """The q of the limit operator."""
    return {HOLLOW: 2 / (dim + 2), KNN: 2 / dim, HOLLOW_ENTROPIC: 0.0}[method]


def fitted_step(steps: FloatArray, eigenvalues: FloatArray, n_first: int) -> tuple[float, float]:
    """Ratio 1 - λ : eigenvalue by the first group, and the mean relative error of the others."""
    step = steps[:n_first].mean() / eigenvalues[:n_first].mean()
    return float(step), float(np.abs(steps[n_first:] / step / eigenvalues[n_first:] - 1).mean())


def errors(scores: Scores, score: str, method: str, manifold: str, density: str) -> Scores:
    """Errors of one method, one row per seed and one column per n."""
    chosen = scores[
        (scores["score"] == score)
        & (scores["method"] == method)
        & (scores["manifold"] == manifold)
        & (scores["density"] == density)
    ]
    return chosen.pivot_table(index="seed", columns="n", values="value")


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """Errors at the largest n and rates of every method, and the verdicts."""
    manifolds = parameters.manifolds
    n = max(n for n in parameters.n if n <= parameters.dense_n)
    claims = [
        _converges(scores, manifolds),
        _step(scores, manifolds),
        _against_others(
            scores, manifolds, n, HOLLOW,
            "Quadratic OT is closer to Laplace-Beltrami than kNN and entropic OT graphs with the "
            "same mean square step (evenly sampled).",
        ),
        _against_others(
            scores, manifolds, n, CORRECTED,
            "With the density divided out it is closer than both in every comparison: a random "
            "sample is uneven by chance, and that is divided out, too (evenly sampled).",
        ),
        _fixed_eps(scores, manifolds),
        _own_limit(scores, manifolds),
        _divided_out(scores, manifolds),
    ]  # fmt: skip
    return Summary(list(_table(scores)), claims)


def _table(scores: Scores) -> Iterable[dict[str, Any]]:
    groups = scores[scores["score"] == EIGENVALUES].groupby(
        ["density", "manifold", "method"], sort=False
    )
    for (density, manifold, method), group in groups:
        row = {"sampling": density, "manifold": manifold, "method": method}
        row["largest n"] = int(group["n"].max())
        for score in (*BOTH, *OWN):
            table = errors(scores, score, method, manifold, density)
            row[score] = None if table.empty else float(table[table.columns[-1]].mean())
            row[f"rate of {score}"] = None if table.empty else rate(table)[0]
        yield row


def _courses(
    scores: Scores, names: dict[str, str], method: str, manifolds: Iterable[str], density: str
) -> tuple[bool, str, str]:
    """Whether all errors fall; how, in words; and how many do, as a reason."""
    tables = {
        (word, manifold): errors(scores, score, method, manifold, density)
        for score, word in names.items()
        for manifold in manifolds
    }
    sentences = [
        f"{word}: "
        + ", ".join(f"{manifold} {course(tables[word, manifold])}" for manifold in manifolds)
        for word in names.values()
    ]
    falling = [falls(table) for table in tables.values()]
    reason = (
        f"The {CONFIDENCE:.0%} interval of the exponent lies below zero in {sum(falling)} of "
        f"{len(falling)} cases."
    )
    return all(falling), "; ".join(sentences), reason


def _converges(scores: Scores, manifolds: Iterable[str]) -> Claim:
    confirmed, sentence, reason = _courses(scores, BOTH, HOLLOW, manifolds, EVEN)
    expected = ", ".join(f"{name} {-2 / (MANIFOLDS[name].dim + 4):.2f}" for name in manifolds)
    return Claim(
        "The operator of quadratic OT may plausibly converge to that of Laplace-Beltrami (evenly "
        "sampled manifolds).",
        confirmed,
        f"Errors from the smallest to the largest n, and their rate over it: {sentence}. A bias of "
        f"the order of the radius squared would give the exponents {expected}.",
        reason=f"{reason} Measured over this range of n, not proved.",
    )


def _step(scores: Scores, manifolds: Iterable[str]) -> Claim:
    last = {}
    for manifold in manifolds:
        table = errors(scores, STEP_RATIO, HOLLOW, manifold, EVEN)
        last[manifold] = table[table.columns[-1]]
    largest = max(abs(ratio.mean() - 1) for ratio in last.values())
    numbers = ", ".join(f"{manifold} {spread(ratio)}" for manifold, ratio in last.items())
    return Claim(
        "1 - λ is r²/(2(d + 4)) times the eigenvalue of Laplace-Beltrami, where the support has "
        "radius r = (ε V (d + 2) / (2 n b_d))^(1/(d+2)).",
        bool(largest <= STEP_TOLERANCE),
        f"First eigenvalue over this prediction, largest n: {numbers}.",
        reason=f"The largest deviation is {largest:.1%}; {STEP_TOLERANCE:.0%} are allowed.",
    )


def _against_others(
    scores: Scores, manifolds: Iterable[str], n: int, method: str, text: str
) -> Claim:
    """A method against kNN and entropic OT on evenly sampled manifolds."""
    parts, lost = [], []
    for score, word in BOTH.items():
        for manifold in manifolds:
            at = {
                each: errors(scores, score, each, manifold, EVEN)[n]
                for each in (method, KNN, HOLLOW_ENTROPIC)
            }
            if at[method].mean() >= min(at[KNN].mean(), at[HOLLOW_ENTROPIC].mean()):
                lost.append(f"{word} of the {manifold}")
            numbers = "; ".join(f"{each} {spread(values)}" for each, values in at.items())
            parts.append(f"{word}, {manifold}: {numbers}")
    reason = f"Ahead in {len(parts) - len(lost)} of {len(parts)} comparisons."
    if lost:
        reason += f" Lost: {', '.join(lost)}."
    if "eigenvalues of the circle" in lost:
        reason += RANK_EFFECT
    return Claim(text, not lost, f"At n = {n}: {'. '.join(parts)}.", reason=reason)


def _fixed_eps(scores: Scores, manifolds: Iterable[str]) -> Claim:
    confirmed, sentence, reason = _courses(scores, BOTH, FIXED, manifolds, EVEN)
    return Claim(
        "Eps need not be adapted to n: at a fixed eps (costs not depending on n) radii shrink and "
        "degrees grow by themselves, and errors fall as well.",
        confirmed,
        f"{sentence}.",
        reason=reason,
    )


def _own_limit(scores: Scores, manifolds: Iterable[str]) -> Claim:
    falling, sentence, reason = _courses(scores, OWN, HOLLOW, manifolds, UNEVEN)
    closer, numbers = [], []
    for manifold in manifolds:
        table = errors(scores, EIGENFUNCTIONS, HOLLOW, manifold, UNEVEN)
        own = errors(scores, OWN_EIGENFUNCTIONS, HOLLOW, manifold, UNEVEN)
        n = table.columns[-1]
        closer.append(bool((own[n] < table[n]).all()))
        numbers.append(f"{manifold} {spread(table[n])} against {spread(own[n])}")
    return Claim(
        "Unevenly sampled with density p, the limit is not Laplace-Beltrami but "
        "div(p^(d/(d+2)) grad f) / p, between that of entropic OT, div(p grad f) / p, and that of "
        "kNN, div(p^(1-2/d) grad f) / p.",
        falling and all(closer),
        f"Distance from this limit: {sentence}. Eigenfunctions at the largest n, Laplace-Beltrami "
        f"against this limit: {', '.join(numbers)}.",
        reason=f"{reason} This limit is closer than Laplace-Beltrami in every seed on "
        f"{sum(closer)} of {len(closer)} manifolds.",
    )


def _divided_out(scores: Scores, manifolds: Iterable[str]) -> Claim:
    falling, sentence, reason = _courses(scores, BOTH, CORRECTED, manifolds, UNEVEN)
    closer = []
    for manifold in manifolds:
        mine, plain = (
            errors(scores, EIGENFUNCTIONS, method, manifold, UNEVEN)
            for method in (CORRECTED, HOLLOW)
        )
        n = mine.columns[-1]
        closer.append(bool((mine[n] < plain[n]).all()))
    return Claim(
        "Unevenly sampled, Laplace-Beltrami is reached if the density, known from the potentials "
        "as u^(-(d+2)/2), is divided out; this needs the dimension.",
        falling and all(closer),
        f"{sentence}.",
        reason=f"{reason} Eigenfunctions at the largest n are closer than without it in every seed "
        f"on {sum(closer)} of {len(closer)} manifolds.",
    )


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """One picture for even sampling, two for uneven."""
    manifolds = parameters.manifolds
    yield Picture(
        "even",
        _figure(
            scores,
            manifolds,
            {
                EIGENVALUES: ("eigenvalues\n(relative error)", EVEN),
                EIGENFUNCTIONS: ("eigenfunctions\n(mean angle, radians)", EVEN),
            },
        ),
        "Evenly sampled manifolds: distance of the leading eigenvalues and eigenfunctions from "
        "those of Laplace-Beltrami (mean over the seeds, range shaded). The legends give the "
        "fitted rates, the dotted line that of the radius squared. On the circle the unweighted "
        "kNN graph depends on the order of the points only, which makes its eigenvalues good.",
    )
    for name, against, own, unit, remark in (
        ("uneven-eigenfunctions", EIGENFUNCTIONS, OWN_EIGENFUNCTIONS, "mean angle, radians",
         "which only the graph with the density divided out approaches"),
        ("uneven-eigenvalues", EIGENVALUES, OWN_EIGENVALUES, "relative error",
         "which the graph with the density divided out approaches; on the circle that of kNN has "
         "the same eigenvalues, with other eigenfunctions"),
    ):  # fmt: skip
        rows = {
            against: (f"against Laplace-Beltrami\n({unit})", UNEVEN),
            own: (f"against the own limit\n({unit})", UNEVEN),
        }
        yield Picture(
            name,
            _figure(scores, manifolds, rows),
            f"Unevenly sampled manifolds: above, the distance from Laplace-Beltrami, {remark}. "
            "Below, the distance from the limit that theory gives for each construction.",
        )


def _figure(scores: Scores, manifolds: Sequence[str], rows: Mapping[str, tuple[str, str]]) -> Any:
    figure = new_figure(3.6 * len(manifolds) + 0.6, 7.2)
    axes = figure.subplots(len(rows), len(manifolds), sharey="row", squeeze=False)
    handles: dict[str, Any] = {}
    for row, (score, (label, density)) in zip(axes, rows.items(), strict=True):
        for ax, manifold in zip(row, manifolds, strict=True):
            handles |= _panel(ax, scores, score, manifold, density)
            ax.set_title(f"{manifold} (dimension {MANIFOLDS[manifold].dim})")
        row[0].set_ylabel(label)
        row[0].set_ylim(bottom=row[0].get_ylim()[0] / ROOM_BELOW)
    for ax in axes[-1]:
        ax.set_xlabel("number of points")
    names = [LABELS.get(method, method) for method in handles]
    figure.legend(handles.values(), names, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _panel(ax: Any, scores: Scores, score: str, manifold: str, density: str) -> dict[str, Any]:
    """Lines of all methods, with the rates in a legend; handles by method."""
    handles, rates, starts = {}, [], []
    for method, style in STYLES.items():
        table = errors(scores, score, method, manifold, density)
        if table.empty:
            continue
        n = table.columns.to_numpy(dtype=float)
        look = {"markersize": 4.5, **style}
        handles[method] = ax.plot(n, table.mean(), linewidth=1.6, **look)[0]
        ax.fill_between(
            n, table.min(), table.max(), color=style["color"], alpha=BAND_ALPHA, linewidth=0
        )
        rates.append(f"n$^{{{rate(table)[0]:.2f}}}$" if len(n) > 1 else "one n only")
        starts.append((float(table.mean().iloc[0]), n))
    start, n = max(starts, key=lambda found: len(found[1]))
    slope = -2 / (MANIFOLDS[manifold].dim + 4)
    guide = ax.plot(n, 1.15 * start * (n / n[0]) ** slope, color="0.35", linestyle=":")[0]
    ax.set(xscale="log", yscale="log", xticks=n, xticklabels=[f"{value:.0f}" for value in n])
    ax.minorticks_off()
    ticker = require("matplotlib.ticker", "plots")  # numbers such as 0.05 in place of powers
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=3)
    ax.legend(
        handles.values(), rates, loc="lower left", ncols=2, fontsize=9, frameon=False,
        title="fitted rates", title_fontsize=9,
    )  # fmt: skip
    return {**handles, GUIDE: guide}


EXPERIMENT = Experiment(
    name="laplace",
    title="Eigenvalues and eigenfunctions against those of Laplace-Beltrami",
    source="section 4, open question",
    parameters=Parameters(),
    quick=QUICK,
    methods=methods,
    run=run,
    summarize=summarize,
    draw=draw,
    variants=("text",),
)
