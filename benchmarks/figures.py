"""Pictures of the benchmark results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

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


def draw_growth(rows: list[dict[str, Any]], path: Path) -> None:
    """Time against n for both searches, with the fitted exponents."""
    figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
    colors = {"approximate": OURS, "exact": LIMIT}
    for search, color in colors.items():
        mine = [row for row in rows if row["search"] == search]
        n = np.array([row["n"] for row in mine])
        for key, style, what in (("seconds", "o-", "all"), ("solve_seconds", "s:", "solve")):
            slope = growth.exponent(mine, key)
            label = f"{search}, {what}: n^{slope:.2f}"
            ax.plot(n, [row[key] for row in mine], style, color=color, ms=4, label=label)
    ax.set(xscale="log", yscale="log", xlabel="points", ylabel="seconds")
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
