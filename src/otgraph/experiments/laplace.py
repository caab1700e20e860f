r"""The paper's open question: whether quadratic OT tends to the operator of Laplace-Beltrami.

Section 4 finds it plausible. Here it is measured on three manifolds whose spectra are known.
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
from otgraph.experiments._framework.experiment import Claim, Experiment, Picture, Summary, Task
from otgraph.experiments._framework.methods import (
    CORRECTED,
    HOLLOW,
    HOLLOW_ENTROPIC,
    KNN,
    METHOD_STYLES,
    QUADRATIC,
)
from otgraph.experiments._framework.statistics import (
    CONFIDENCE,
    course,
    falls,
    listing,
    rate,
    spread,
)
from otgraph.experiments._manifolds import MANIFOLDS, Manifold, corrected, mode_values, modes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from otgraph.experiments._framework.experiment import Params, Row, Scored, Scores
    from otgraph.typing import FloatArray, SparseMatrix

FIXED = "quadratic OT, hollow, fixed eps"

EVEN, UNEVEN = "even", "uneven"
EIGENVALUES = "eigenvalue error"
EIGENFUNCTIONS = "eigenfunction error"
OWN_EIGENVALUES = "eigenvalue error, own limit"
OWN_EIGENFUNCTIONS = "eigenfunction error, own limit"
STEP_RATIO = "first eigenvalue over theory"
BOTH = {EIGENVALUES: "eigenvalues", EIGENFUNCTIONS: "eigenfunctions"}
OWN = {OWN_EIGENVALUES: "eigenvalues", OWN_EIGENFUNCTIONS: "eigenfunctions"}

REFERENCE_N = 500  # number of points for which `degree` is given
# Sampling noise is a few percent: more digits would be useless.
EIGENVECTOR_TOL = 1e-8
# Smaller weights are dropped. Rows sum to one: thousands of them are below the tolerance.
NEGLIGIBLE_WEIGHT = 1e-13
# Allowed distance from the asymptotic ratio of eigenvalues at the largest n.
STEP_TOLERANCE = 0.03
# Why kNN, unweighted, can win on a curve.
RANK_EFFECT = (
    " On a curve the unweighted kNN graph reflects little more than the order of the points. It is "
    "nearly the graph of evenly spaced points, whose eigenvalues have no scatter from sampling. "
    "Its eigenfunctions need the positions of the points, and gain nothing."
)

STYLES: dict[str, Row] = {
    HOLLOW: METHOD_STYLES[HOLLOW],
    # Nearly equal to the line above, hence rings behind the points.
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
    """Sizes; `degree` is the mean of quadratic OT on 500 points; entropic OT ends at `dense_n`."""

    n: tuple[int, ...] = (500, 1000, 2000, 4000, 8000)
    dense_n: int = 4000
    manifolds: tuple[str, ...] = tuple(MANIFOLDS)
    degree: float = 30.0
    concentration: float = 0.5


QUICK = Parameters(n=(250, 500, 1000), dense_n=500)


def tasks(parameters: Parameters, variant: str) -> Iterator[tuple[str, Params]]:
    """The largest graphs first: they take longest."""
    for n in sorted(parameters.n, reverse=True):
        for manifold in parameters.manifolds:
            for density in (EVEN, UNEVEN):
                at = {"manifold": manifold, "density": density, "n": n}
                if n <= parameters.dense_n:
                    yield HOLLOW_ENTROPIC, at
                yield from ((method, at) for method in (HOLLOW, CORRECTED, KNN))
                if density == EVEN:
                    yield FIXED, at


def run(task: Task, parameters: Parameters) -> Iterator[Scored]:
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
    scores = {EIGENVALUES: of_values, EIGENFUNCTIONS: of_functions}
    if kappa and task.method != CORRECTED:  # whose limit is Laplace-Beltrami
        q = density_exponent(task.method, manifold.dim)
        _, scores[OWN_EIGENVALUES], scores[OWN_EIGENFUNCTIONS] = errors_against(kappa, q)
    if not kappa and task.method != CORRECTED:  # whose step is arbitrary
        scores[STEP_RATIO] = step / manifold.step(radius)
    yield {}, {**scores, "mean degree": np.diff(weights.indptr).mean()}


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


def density_exponent(method: str, dim: int) -> float:
    """The exponent q in the limit of a method (see ``_manifolds``)."""
    return {HOLLOW: 2 / (dim + 2), KNN: 2 / dim, HOLLOW_ENTROPIC: 0.0}[method]


def fitted_step(steps: FloatArray, eigenvalues: FloatArray, n_first: int) -> tuple[float, float]:
    """Ratio of 1 - λ to the first eigenvalues, and mean relative error of the others."""
    step = steps[:n_first].mean() / eigenvalues[:n_first].mean()
    return float(step), float(np.abs(steps[n_first:] / step / eigenvalues[n_first:] - 1).mean())


def errors(scores: Scores, score: str, method: str, density: str) -> dict[str, Scores]:
    """Errors of one method by manifold, one row per seed and one column per n."""
    wanted = {"score": score, "method": method, "density": density}
    chosen = scores[(scores[list(wanted)] == list(wanted.values())).all(axis=1)]
    return {
        manifold: rows.pivot_table(index="seed", columns="n", values="value")
        for manifold, rows in chosen.groupby("manifold", sort=False)
    }


def at_largest_n(scores: Scores, score: str, method: str, density: str) -> Row:
    """Errors of one method at the largest n by manifold, one per seed."""
    tables = errors(scores, score, method, density)
    return {manifold: table[table.columns[-1]] for manifold, table in tables.items()}


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """Errors at the largest n and rates of every method, and the verdicts."""
    n = max(n for n in parameters.n if n <= parameters.dense_n)
    claims = [
        _converges(scores),
        _step(scores),
        _against_others(
            scores, n, HOLLOW,
            "Quadratic OT is closer to Laplace-Beltrami than kNN and entropic OT graphs with the "
            "same mean square step (evenly sampled).",
        ),
        _against_others(
            scores, n, CORRECTED,
            "With the density divided out it is closer than both in every comparison: a random "
            "sample is uneven by chance, and this is divided out as well (evenly sampled).",
        ),
        _fixed_eps(scores),
        _own_limit(scores),
        _divided_out(scores),
    ]  # fmt: skip
    return Summary(list(_table(scores)), claims)


def _table(scores: Scores) -> Iterator[Row]:
    columns = ["density", "manifold", "method"]
    groups = scores[scores["score"] == EIGENVALUES].groupby(columns, sort=False)
    for (density, manifold, method), group in groups:
        row = {"sampling": density, "manifold": manifold, "method": method}
        row["largest n"] = int(group["n"].max())
        for score in (*BOTH, *OWN):
            table = errors(scores, score, method, density).get(manifold)
            row[score] = None if table is None else float(table[table.columns[-1]].mean())
            row[f"rate of {score}"] = None if table is None else rate(table)[0]
        yield row


def _courses(
    scores: Scores, names: dict[str, str], method: str, density: str
) -> tuple[bool, str, str]:
    """Whether all errors fall; how, in words; and how many do, as a reason."""
    sentences, falling = [], []
    for score, word in names.items():
        tables = errors(scores, score, method, density)
        courses = ", ".join(f"{manifold} {course(table)}" for manifold, table in tables.items())
        sentences.append(f"{word}: {courses}")
        falling += [falls(table) for table in tables.values()]
    reason = (
        f"The {CONFIDENCE:.0%} interval of the exponent lies below zero in {sum(falling)} of "
        f"{len(falling)} cases."
    )
    return all(falling), "; ".join(sentences), reason


def _converges(scores: Scores) -> Claim:
    confirmed, sentence, reason = _courses(scores, BOTH, HOLLOW, EVEN)
    expected = ", ".join(
        f"{name} {-2 / (MANIFOLDS[name].dim + 4):.2f}" for name in scores["manifold"].unique()
    )
    return Claim(
        "The operator of quadratic OT may plausibly converge to that of Laplace-Beltrami (evenly "
        "sampled manifolds).",
        confirmed,
        f"Errors from the smallest to the largest n, and their rate over it: {sentence}. A bias of "
        f"the order of the radius squared would give the exponents {expected}.",
        f"{reason} Measured over this range of n, not proved.",
    )


def _step(scores: Scores) -> Claim:
    last = at_largest_n(scores, STEP_RATIO, HOLLOW, EVEN)
    largest = max(abs(ratio.mean() - 1) for ratio in last.values())
    return Claim(
        "1 - λ is r²/(2(d + 4)) times the eigenvalue of Laplace-Beltrami, where the support has "
        "radius r = (ε V (d + 2) / (2 n b_d))^(1/(d+2)).",
        bool(largest <= STEP_TOLERANCE),
        f"First eigenvalue over this prediction, largest n: {listing(last, separator=', ')}.",
        f"The largest deviation is {largest:.1%}; {STEP_TOLERANCE:.0%} are allowed.",
    )


def _against_others(scores: Scores, n: int, method: str, text: str) -> Claim:
    """A method against kNN and entropic OT on evenly sampled manifolds."""
    parts, lost = [], []
    for score, word in BOTH.items():
        tables = {m: errors(scores, score, m, EVEN) for m in (method, KNN, HOLLOW_ENTROPIC)}
        for manifold in tables[method]:
            at = {each: table[manifold][n] for each, table in tables.items()}
            if at[method].mean() >= min(at[KNN].mean(), at[HOLLOW_ENTROPIC].mean()):
                lost.append(f"{word} of the {manifold}")
            parts.append(f"{word}, {manifold}: {listing(at)}")
    reason = f"Ahead in {len(parts) - len(lost)} of {len(parts)} comparisons."
    if lost:
        reason += f" Lost: {', '.join(lost)}."
    if "eigenvalues of the circle" in lost:
        reason += RANK_EFFECT
    return Claim(text, not lost, f"At n = {n}: {'. '.join(parts)}.", reason)


def _fixed_eps(scores: Scores) -> Claim:
    confirmed, sentence, reason = _courses(scores, BOTH, FIXED, EVEN)
    return Claim(
        "Eps need not be adapted to n: at a fixed eps (costs not depending on n) radii shrink, "
        "degrees grow, and errors fall as well.",
        confirmed,
        f"{sentence}.",
        reason,
    )


def _own_limit(scores: Scores) -> Claim:
    falling, sentence, reason = _courses(scores, OWN, HOLLOW, UNEVEN)
    plain, own = (
        at_largest_n(scores, score, HOLLOW, UNEVEN)
        for score in (EIGENFUNCTIONS, OWN_EIGENFUNCTIONS)
    )
    closer = [bool((own[name] < plain[name]).all()) for name in plain]
    numbers = [f"{name} {spread(plain[name])} against {spread(own[name])}" for name in plain]
    return Claim(
        "Unevenly sampled with density p, the limit is not Laplace-Beltrami but "
        "div(p^(d/(d+2)) grad f) / p, between that of entropic OT, div(p grad f) / p, and that of "
        "kNN, div(p^(1-2/d) grad f) / p.",
        falling and all(closer),
        f"Distance from this limit: {sentence}. Eigenfunctions at the largest n, Laplace-Beltrami "
        f"against this limit: {', '.join(numbers)}.",
        f"{reason} This limit is closer than Laplace-Beltrami in every seed on "
        f"{sum(closer)} of {len(closer)} manifolds.",
    )


def _divided_out(scores: Scores) -> Claim:
    falling, sentence, reason = _courses(scores, BOTH, CORRECTED, UNEVEN)
    mine, plain = (
        at_largest_n(scores, EIGENFUNCTIONS, method, UNEVEN) for method in (CORRECTED, HOLLOW)
    )
    closer = [bool((mine[name] < plain[name]).all()) for name in plain]
    return Claim(
        "Unevenly sampled, the limit is Laplace-Beltrami if the density, known from the potentials "
        "as u^(-(d+2)/2), is divided out. This needs the dimension.",
        falling and all(closer),
        f"{sentence}.",
        f"{reason} Eigenfunctions at the largest n are closer than without it in every seed "
        f"on {sum(closer)} of {len(closer)} manifolds.",
    )


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """One picture for even sampling, two for uneven."""
    rows = {
        EIGENVALUES: "eigenvalues\n(relative error)",
        EIGENFUNCTIONS: "eigenfunctions\n(mean angle, radians)",
    }
    yield Picture(
        "even",
        _figure(scores, EVEN, rows),
        "Evenly sampled manifolds: distance of the leading eigenvalues and eigenfunctions from "
        "those of Laplace-Beltrami (mean over the seeds, range shaded). The legends give the "
        "fitted rates, the dotted line that of the radius squared. On the circle the unweighted "
        "kNN graph depends only on the order of the points, hence the small errors of its "
        "eigenvalues.",
    )
    for name, against, own, unit, remark in (
        ("uneven-eigenfunctions", EIGENFUNCTIONS, OWN_EIGENFUNCTIONS, "mean angle, radians",
         "which only the graph with the density divided out approaches"),
        ("uneven-eigenvalues", EIGENVALUES, OWN_EIGENVALUES, "relative error",
         "which the graph with the density divided out approaches; on the circle that of kNN has "
         "the same eigenvalues, with other eigenfunctions"),
    ):  # fmt: skip
        rows = {
            against: f"against Laplace-Beltrami\n({unit})",
            own: f"against the own limit\n({unit})",
        }
        yield Picture(
            name,
            _figure(scores, UNEVEN, rows),
            f"Unevenly sampled manifolds: above, the distance from Laplace-Beltrami, {remark}. "
            "Below, the distance from the limit that theory gives for each construction.",
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
