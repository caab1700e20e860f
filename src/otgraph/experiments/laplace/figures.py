"""Errors against the number of points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph._optional import require
from otgraph.experiments._framework import Picture
from otgraph.experiments._framework.figures import new_figure
from otgraph.experiments._framework.style import BAND_ALPHA, ENTROPIC, HOLLOW, KNN
from otgraph.experiments.laplace.compute import (
    CORRECTED,
    EIGENFUNCTIONS,
    EIGENVALUES,
    EVEN,
    FIXED,
    OWN_EIGENFUNCTIONS,
    OWN_EIGENVALUES,
    UNEVEN,
)
from otgraph.experiments.laplace.manifolds import MANIFOLDS
from otgraph.experiments.laplace.rates import errors, rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.laplace.compute import Parameters

# From dark to light, with dashes and markers of their own; quadratic OT appears three times.
STYLES: dict[str, dict[str, Any]] = {
    HOLLOW: {"color": "#b5123b", "linestyle": "-", "marker": "o"},
    FIXED: {"color": "#ee8fa3", "linestyle": "--", "marker": "o", "markerfacecolor": "white"},
    CORRECTED: {"color": "#5e2a84", "linestyle": "-.", "marker": "*", "markersize": 7},
    KNN: {"color": "#14213d", "linestyle": "-", "marker": "s"},
    ENTROPIC: {"color": "#f2a900", "linestyle": "--", "marker": "D"},
}
GUIDE = "rate of the radius squared"
LABELS = {FIXED: "quadratic OT, hollow, fixed ε"}
ROOM_BELOW = 3.0  # factor by which panels reach below the errors, for the legend


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """One picture for even sampling, two for uneven."""
    yield Picture(
        "even",
        _figure(
            scores,
            parameters.manifolds,
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
    for name, against, own, remark in (
        (
            "uneven-eigenfunctions",
            EIGENFUNCTIONS,
            OWN_EIGENFUNCTIONS,
            "which only the graph with the density divided out approaches",
        ),
        (
            "uneven-eigenvalues",
            EIGENVALUES,
            OWN_EIGENVALUES,
            "which the graph with the density divided out approaches; on the circle that of kNN "
            "has the same eigenvalues, with other eigenfunctions",
        ),
    ):
        unit = "mean angle, radians" if against == EIGENFUNCTIONS else "relative error"
        yield Picture(
            name,
            _figure(
                scores,
                parameters.manifolds,
                {
                    against: (f"against Laplace-Beltrami\n({unit})", UNEVEN),
                    own: (f"against the own limit\n({unit})", UNEVEN),
                },
            ),
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
    handles, rates, largest = {}, [], []
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
        largest.append((float(table.mean().iloc[0]), n))
    start, n = max(largest, key=lambda found: len(found[1]))
    slope = -2 / (MANIFOLDS[manifold].dim + 4)
    guide = ax.plot(n, 1.15 * start * (n / n[0]) ** slope, color="0.35", linestyle=":")[0]
    ax.set(xscale="log", yscale="log", xticks=n, xticklabels=[f"{value:.0f}" for value in n])
    ax.minorticks_off()
    _plain_decades(ax)
    ax.legend(
        handles.values(), rates, loc="lower left", ncols=2, fontsize=9, frameon=False,
        title="fitted rates", title_fontsize=9,
    )  # fmt: skip
    return {**handles, GUIDE: guide}


def _plain_decades(ax: Any) -> None:
    """Numbers such as 0.05 on the axis of errors, in place of powers."""
    ticker = require("matplotlib.ticker", "plots")
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=3)
