"""Which graphs label and cluster digits best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.experiments._contenders import CONTENDERS, NMI
from otgraph.experiments._framework import Claim, Summary, best_per_seed, paired_sentence, spread
from otgraph.experiments._framework.statistics import SYMBOLS
from otgraph.experiments._framework.style import HOLLOW, QUADRATIC
from otgraph.experiments.digits.compute import ACCURACY, PREDICTED, SPREADING, TOGETHER, TUNING

if TYPE_CHECKING:
    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.digits.compute import Parameters

PARAMETERS = ("k", "eps", "mu", "gamma", "alpha")
MOST_LOST = 0.02  # accuracy that digits may lose by not being in the fit


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """Accuracy at the parameters chosen on other seeds, the best in hindsight, and clusters."""
    judged = {method: chosen(scores, method) for method in SPREADING}
    clusters = best_per_seed(scores, NMI, largest=True, by=("method",)).set_index("method")
    table = [
        {
            "method": method, "score": ACCURACY,
            "mean": float(rows["value"].mean()),
            "std": float(rows["value"].std()) if len(rows) > 1 else 0.0,
            "per seed": rows["value"].tolist(),
            "chosen on other seeds": where,
            "best of the grid": best_mean(scores, method),
            "best NMI": float(clusters["value"].get(method, np.nan)),
        }
        for method, (rows, where) in judged.items()
    ]  # fmt: skip
    values = {method: rows["value"].to_numpy() for method, (rows, _) in judged.items()}
    return Summary(table, [_labels(scores, values), _clusters(clusters["value"]), _later(scores)])


def _used(rows: Scores) -> list[str]:
    return [name for name in PARAMETERS if name in rows and rows[name].notna().all()]


def chosen(scores: Scores, method: str) -> tuple[Scores, str]:
    """Accuracies of all seeds at the parameters that are best on the tuning seeds."""
    mine = scores[scores["method"] == method]
    tuning, judged = (mine[mine["score"] == score] for score in (TUNING, ACCURACY))
    names = _used(judged)
    best = np.atleast_1d(tuning.groupby(names)["value"].mean().idxmax())
    kept = (judged[names] == list(best)).all(axis=1)
    where = ", ".join(f"{SYMBOLS.get(n, n)} {v:g}" for n, v in zip(names, best, strict=True))
    return judged[kept], where


def best_mean(scores: Scores, method: str) -> float:
    """The highest mean accuracy of the grid: a choice in hindsight."""
    mine = scores[(scores["method"] == method) & (scores["score"] == ACCURACY)]
    return float(mine.groupby(_used(mine))["value"].mean().max())


def _labels(scores: Scores, values: dict[str, Any]) -> Claim:
    """Between the two quadratic graphs, too, the tuning seeds choose."""
    tuned = {method: _best_tuning(scores, method) for method in values}
    ours = max((QUADRATIC, HOLLOW), key=lambda method: tuned[method])
    rivals = [method for method in values if method not in (QUADRATIC, HOLLOW)]
    best = max(rivals, key=lambda method: values[method].mean())
    numbers = ", ".join(f"{method} {spread(found)}" for method, found in values.items())
    return Claim(
        "Labels spread better on quadratic OT graphs than on any other graph, in every seed.",
        bool(all((values[ours] > values[rival]).all() for rival in rivals)),
        f"Accuracy from 1 % of the labels, parameters chosen on other seeds: {numbers}. {ours} "
        f"against the best rival, {best}: {paired_sentence(values[ours], values[best])}.",
    )


def _best_tuning(scores: Scores, method: str) -> float:
    mine = scores[(scores["method"] == method) & (scores["score"] == TUNING)]
    return float(mine.groupby(_used(mine))["value"].mean().max())


def _clusters(best: Any) -> Claim:
    ours = best[[QUADRATIC, HOLLOW]].max()
    rivals = best.drop([QUADRATIC, HOLLOW])
    numbers = ", ".join(f"{method} {best[method]:.3f}" for method in CONTENDERS)
    return Claim(
        "Spectral clusters of quadratic OT graphs agree with the digits better than those of any "
        "other graph.",
        bool(ours > rivals.max()),
        f"Best NMI over the grid, the digits in hand: {numbers}.",
    )


def _later(scores: Scores) -> Claim:
    predicted, together = (
        scores[scores["score"] == score]["value"].to_numpy() for score in (PREDICTED, TOGETHER)
    )
    loss = together - predicted
    return Claim(
        "Digits that come after the fit are labeled about as well as if they had taken part in it "
        f"(at most {MOST_LOST:g} lost in the mean).",
        bool(loss.mean() <= MOST_LOST),
        f"Predicted {spread(predicted)}, in the fit {spread(together)}.",
    )
