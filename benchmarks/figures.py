"""Pictures of the benchmark results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from benchmarks import growth

if TYPE_CHECKING:
    from pathlib import Path

mpl.use("Agg")
import matplotlib.pyplot as plt  # after the backend is chosen

OURS, PEER, LIMIT = "#0072B2", "#999999", "#D55E00"  # Okabe and Ito's colors


def draw_ratios(results: list[dict[str, Any]], path: Path) -> None:
    """One bar per line: our time over the fastest peer's, and the mark to stay below."""
    figure, ax = plt.subplots(figsize=(9, 0.5 * len(results) + 1.4), layout="constrained")
    for y, result in enumerate(results):
        ax.barh(y, result["ratio"], color=OURS, height=0.6)
        ax.plot([result["at_most"]] * 2, [y - 0.4, y + 0.4], color=LIMIT, lw=2)
        text = f"  {result['ratio']:.3g}"
        ax.text(result["at_most"] * 1.15, y, text, va="center", fontsize=8)
    ax.set_yticks(range(len(results)), [f"{r['line']}: {r['title']}" for r in results], fontsize=7)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xlim(5e-3, 30)
    ax.axvline(1.0, color=PEER, lw=1, zorder=0)
    ax.set_xlabel("time / time of the fastest peer; the bar must end left of the mark")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


# One color for each contender of `growth`, in its order; Okabe and Ito's.
COLORS = ("#0072B2", "#D55E00", "#56B4E9", "#999999", "#009E73", "#CC79A7")


def draw_scaling(rows: list[dict[str, Any]], path: Path) -> None:
    """Time and memory against n for ours and for peers, with the fitted exponents."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    columns = (("seconds", "seconds"), ("peak_gb", "peak memory of the process, GB"))
    for ax, (key, name) in zip(axes, columns, strict=True):
        for label, color in zip(growth.CONTENDERS, COLORS, strict=True):
            mine = growth.of(rows, label)
            if not mine:
                continue
            slope = growth.exponent(mine, key)
            text = label if slope is None or key != "seconds" else f"{label}: n^{slope:.2f}"
            style = "o-" if label in growth.OURS else "s--"
            n = [row["n"] for row in mine]
            ax.plot(n, [row[key] for row in mine], style, color=color, ms=4, lw=1.5, label=text)
        ax.set(xscale="log", yscale="log", xlabel="points", ylabel=name)
        ax.grid(which="major", color="#dddddd", lw=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)
