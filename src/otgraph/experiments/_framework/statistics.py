"""Statistics of scores: best parameters, spread over seeds, paired comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from otgraph.experiments._framework.experiment import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import ArrayLike

    from otgraph import Graph
    from otgraph.experiments._framework.experiment import Params, Row, Scores
    from otgraph.typing import BoolArray, FloatArray

NOT_PARAMETERS = ("experiment", "variant", "seed", "method", "score", "value")
CONFIDENCE = 0.95  # of the interval of a rate
SYMBOLS = {"eps": "ε"}  # as printed


def best_per_seed(
    scores: Scores, score: str, *, largest: bool, by: Iterable[str] = ("variant", "method", "seed")
) -> Scores:
    """The rows with the best value of a score, one for each combination of `by`.

    Of equal values, the first in the grid is taken.
    """
    chosen = scores[scores["score"] == score].dropna(subset=["value"])
    groups = chosen.groupby(list(by), sort=False)["value"]
    return chosen.loc[groups.idxmax() if largest else groups.idxmin()]


def as_title(params: Params) -> str:
    """Parameters as text for a title."""
    return ", ".join(f"{SYMBOLS.get(name, name)} = {v:.3g}" for name, v in params.items())


class Best(NamedTuple):
    """The best value of a score, and the parameters that gave it."""

    value: float
    params: Row

    def __str__(self) -> str:
        return as_title(self.params)


def best_of(scores: Scores, score: str, method: str, *, largest: bool, seed: int = 0) -> Best:
    """The best of all parameters of a method on one sample."""
    mine = scores[(scores["method"] == method) & (scores["seed"] == seed)]
    row = best_per_seed(mine, score, largest=largest).iloc[0].drop(list(NOT_PARAMETERS[:-1]))
    return Best(row.pop("value"), row.dropna().to_dict())


def at_best(scores: Scores, method: str, score: str, other: str, *, largest: bool) -> FloatArray:
    """The score `other` of a method at the parameters with its best `score`, one per seed."""
    mine = scores[scores["method"] == method]
    best = best_per_seed(mine, score, largest=largest)
    names = [column for column in mine if column not in NOT_PARAMETERS]
    at = ["seed", *(name for name in names if best[name].notna().all())]
    found = best[at].merge(mine[mine["score"] == other], on=at)
    return np.asarray(found["value"], dtype=np.float64)


def by_method(rows: Scores) -> dict[str, FloatArray]:
    """Values of each method, one per seed, from rows of :func:`best_per_seed`."""
    return {method: group["value"].to_numpy() for method, group in rows.groupby("method")}


def table_of_best(best: Scores) -> list[Row]:
    """Rows for a summary from those of :func:`best_per_seed`: spread, and where it was reached."""
    parameters = [column for column in best.columns if column not in NOT_PARAMETERS]
    rows = []
    for (variant, method), group in best.groupby(["variant", "method"], sort=False):
        used = group[parameters].dropna(axis="columns", how="all")
        at = {name: used[name].tolist() for name in used}
        row = {"variant": variant, "method": method, "score": group["score"].iloc[0]}
        rows.append({**row, **mean_and_std(group["value"]), "best at": at})
    return rows


def mean_and_std(values: ArrayLike) -> Row:
    """Entries of a table: mean, standard deviation, and the value of every seed."""
    array = np.asarray(values, dtype=np.float64)
    return {"mean": float(array.mean()), "std": sample_std(array), "per seed": array.tolist()}


def sample_std(values: ArrayLike) -> float:
    """Standard deviation of a sample; zero for a single value."""
    array = np.asarray(values, dtype=np.float64)
    return float(array.std(ddof=1)) if len(array) > 1 else 0.0


def spread(values: ArrayLike, digits: int = 3) -> str:
    """``mean ± standard deviation`` of the values of all seeds."""
    array = np.asarray(values, dtype=np.float64)
    return f"{array.mean():.{digits}f} ± {sample_std(array):.{digits}f}"


def listing(
    values: Mapping[str, ArrayLike], chosen: Iterable[str] = (), separator: str = "; "
) -> str:
    """Each name (by default all of them) with the :func:`spread` of its values."""
    return separator.join(f"{name} {spread(values[name])}" for name in chosen or values)


def paired_sentence(better: ArrayLike, worse: ArrayLike, digits: int = 3) -> str:
    """The lead of one method over another on the same samples, as a sentence.

    The p-value is that of a one-sided paired t-test over the seeds.
    """
    difference = np.asarray(better, dtype=np.float64) - np.asarray(worse, dtype=np.float64)
    sentence = (
        f"difference {spread(difference, digits)}, in every seed between "
        f"{difference.min():.{digits}f} and {difference.max():.{digits}f}"
    )
    if len(difference) > 1 and np.ptp(difference) > 0:
        p = stats.ttest_1samp(difference, 0.0, alternative="greater").pvalue
        sentence += f" (paired t-test over {len(difference)} seeds: p = {p:.1g})"
    return sentence


def judged_lead(lead: ArrayLike, of: str = "seeds") -> tuple[Verdict, str]:
    """Verdict on "is ahead", and its reason, from the lead in every sample.

    A lead in all samples is confirmed. Otherwise, a mean within the standard deviation is a tie.
    """
    values = np.asarray(lead, dtype=np.float64)
    ahead, n = int((values > 0).sum()), len(values)
    reason = f"ahead in {ahead} of {n} {of}"
    if ahead == n:
        return Verdict.CONFIRMED, f"{reason}."
    std = sample_std(values)
    numbers = f"the mean lead {values.mean():.3g}"
    if abs(values.mean()) <= std:
        return Verdict.TIE, f"{reason}, and {numbers} is within its spread {std:.2g}."
    verdict = Verdict.CONFIRMED if values.mean() > 0 else Verdict.NOT_CONFIRMED
    return verdict, f"{reason}, and {numbers} is beyond its spread {std:.2g}."


def share_within(graph: Graph, members: BoolArray) -> float:
    """Share of the weight of some points that stays among them, without self-loops."""
    i, j, weight = graph.edges()
    number = members[i].astype(int) + members[j]  # an edge inside counts for both of its ends
    total = float(number @ weight)
    return float(2 * weight[number == 2].sum() / total) if total else 0.0


def rate(table: Scores) -> tuple[float, float]:
    """The exponent a of error ∝ n^a, and half the width of its confidence interval.

    Least squares on logarithms for every seed, then the mean; NaN for a single n.
    """
    if table.shape[1] < 2:
        return np.nan, np.inf
    log_n = np.log(table.columns.to_numpy(dtype=np.float64))
    rates = np.polyfit(log_n, np.log(table.to_numpy(dtype=np.float64)).T, 1)[0]
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


def circle_variations(plane: FloatArray) -> tuple[float, float]:
    """Coefficients of variation of the radius and of the angular gaps; 0 for a circle."""
    radius = np.hypot(*plane.T)
    if not radius.all():
        return np.nan, np.nan  # points at the origin have no angle
    angle = np.sort(np.arctan2(plane[:, 1], plane[:, 0]))
    gaps = np.diff(angle, append=angle[0] + 2 * np.pi)
    return float(radius.std() / radius.mean()), float(gaps.std() / gaps.mean())
