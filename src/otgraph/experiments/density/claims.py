"""What the paper says about its heat map, against the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from otgraph.experiments._framework import Claim, Summary
from otgraph.experiments._framework.style import KNN, QUADRATIC

if TYPE_CHECKING:
    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.density.compute import Parameters

PARAMETER = {QUADRATIC: "eps", KNN: "k"}


class OneForAll(NamedTuple):
    """How a method fares with the best parameter of each density, and with one for all.

    Attributes
    ----------
    best_at
        Density to best parameter.
    best
        Density to mean accuracy there.
    single
        The one parameter with the best mean over all densities.
    loss
        Density to accuracy that is lost by using it.
    """

    best_at: dict[int, float]
    best: dict[int, float]
    single: float
    loss: dict[int, float]


def one_for_all(scores: Scores, method: str) -> OneForAll:
    """Of the mean over the seeds."""
    table = scores[scores["method"] == method].pivot_table(
        index="n_per_arm", columns=PARAMETER[method], values="value", aggfunc="mean"
    )
    best = table.max(axis="columns")
    single = table.mean(axis="index").idxmax()
    return OneForAll(
        best_at=table.idxmax(axis="columns").to_dict(),
        best=best.to_dict(),
        single=float(single),
        loss=(best - table[single]).to_dict(),
    )


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """Where the best parameter of every density lies."""
    table: list[dict[str, Any]] = []
    claims = []
    for variant in scores["variant"].unique():
        mine = scores[scores["variant"] == variant]
        found = {method: one_for_all(mine, method) for method in (QUADRATIC, KNN)}
        table += [
            {
                "variant": variant,
                "points per arm": int(n),
                "method": method,
                "best at": {PARAMETER[method]: each.best_at[n]},
                "accuracy": each.best[n],
                "with one for all": each.best[n] - each.loss[n],
            }
            for method, each in found.items()
            for n in each.best
        ]
        claims += [_comparable(found, variant), _one_is_best(found, variant)]
    return Summary(table, claims)


def _comparable(found: dict[str, OneForAll], variant: str) -> Claim:
    """One parameter for all densities costs quadratic OT less than kNN."""
    losses = {method: np.array(list(each.loss.values())) for method, each in found.items()}
    numbers = "; ".join(
        f"{method} with {PARAMETER[method]} = {found[method].single:.3g} loses "
        f"{loss.mean():.3f} in the mean over the densities and {loss.max():.3f} at most"
        for method, loss in losses.items()
    )
    return Claim(
        "Quadratic OT achieves comparable performance across problem scales with one ε; for kNN "
        "the best k changes with the number of points per arm.",
        bool(
            losses[QUADRATIC].max() < losses[KNN].max()
            and losses[QUADRATIC].mean() < losses[KNN].mean()
        ),
        f"Accuracy lost with one parameter for all densities: {numbers}.",
        variant,
    )


def _one_is_best(found: dict[str, OneForAll], variant: str) -> Claim:
    """The literal reading of the caption: the best cell of each row is in the same column."""
    at = {method: list(each.best_at.values()) for method, each in found.items()}
    numbers = "; ".join(
        f"{method}: {PARAMETER[method]} = {', '.join(f'{value:.3g}' for value in values)}, largest "
        f"over smallest {max(values) / min(values):.2g}"
        for method, values in at.items()
    )
    densities = list(found[KNN].best_at)
    return Claim(
        "For quadratic OT a single value of ε is optimal at every density, while the best k moves.",
        len(set(at[QUADRATIC])) == 1 and len(set(at[KNN])) > 1,
        f"Best parameters for {densities[0]} to {densities[-1]} points per arm (mean over the "
        f"seeds): {numbers}.",
        variant,
    )
