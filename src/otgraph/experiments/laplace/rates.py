"""How fast errors fall: slopes on a logarithmic scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from otgraph.experiments._framework.experiment import Scores
    from otgraph.typing import FloatArray

CONFIDENCE = 0.95


def errors(scores: Scores, score: str, method: str, manifold: str, density: str) -> Scores:
    """Errors of one method, one row per seed and one column per n."""
    chosen = scores[
        (scores["score"] == score)
        & (scores["method"] == method)
        & (scores["manifold"] == manifold)
        & (scores["density"] == density)
    ]
    return chosen.pivot_table(index="seed", columns="n", values="value")


def seed_rates(table: Scores) -> FloatArray:
    """The exponent a of error ∝ n^a for every seed, by least squares; NaN for a single n."""
    if table.shape[1] < 2:
        return np.full(len(table), np.nan)
    log_n = np.log(table.columns.to_numpy(dtype=np.float64))
    return np.polyfit(log_n, np.log(table.to_numpy(dtype=np.float64)).T, 1)[0]


def rate(table: Scores) -> tuple[float, float]:
    """Mean exponent over the seeds, and half the width of its confidence interval."""
    rates = seed_rates(table)
    if len(rates) == 1:
        return float(rates[0]), np.inf
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(rates) - 1)
    return float(rates.mean()), float(quantile * rates.std(ddof=1) / np.sqrt(len(rates)))


def falls(table: Scores) -> bool:
    """Whether the whole confidence interval of the exponent lies below zero."""
    mean, half_width = rate(table)
    return mean + half_width < 0


def course(table: Scores) -> str:
    """First and last error, and the exponent between them."""
    mean, half_width = rate(table)
    first, last = (float(table[n].mean()) for n in (table.columns[0], table.columns[-1]))
    between = f" ± {half_width:.2f}" if np.isfinite(half_width) else ""
    return f"{first:.3f} → {last:.3f}, n^({mean:.2f}{between})"
