"""What the paper says about the noisy spiral, against the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph.experiments._framework import (
    Claim,
    Summary,
    best_per_seed,
    spread,
    table_of_best,
)
from otgraph.experiments._framework.style import (
    ENTROPIC,
    GAUSSIAN,
    HOLLOW,
    KNN_GAUSSIAN,
    MAGIC,
    QUADRATIC,
)
from otgraph.experiments.spiral.compute import ANGLE, GAP_VARIATION, RADIUS_VARIATION

if TYPE_CHECKING:
    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.spiral.compute import Parameters
    from otgraph.typing import FloatArray

# What this reproduction must reach (radians, and the ratio to the best kNN graph).
LARGEST_ANGLE = 0.10
LARGEST_RATIO = 1 / 3


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """Best graph of each method and seed, and what the paper says about them."""
    best = best_per_seed(scores, ANGLE, largest=False)
    claims = []
    for variant in scores["variant"].unique():
        mine = scores[scores["variant"] == variant]
        claims += [_order(mine, variant), _aim(mine, variant), _circle(mine, variant)]
    return Summary(table_of_best(best), claims)


def _best_values(scores: Scores) -> dict[str, FloatArray]:
    """Smallest angle of each method, one per seed."""
    best = best_per_seed(scores, ANGLE, largest=False)
    return {method: group["value"].to_numpy() for method, group in best.groupby("method")}


def _order(scores: Scores, variant: str) -> Claim:
    best = _best_values(scores)
    sparse = np.minimum(best[KNN_GAUSSIAN], best[MAGIC])
    worst_sparse = np.maximum(best[KNN_GAUSSIAN], best[MAGIC])
    dense = np.minimum(best[ENTROPIC], best[GAUSSIAN])
    confirmed = (best[QUADRATIC] < sparse).all() and (worst_sparse < dense).all()
    numbers = ", ".join(
        f"{method} {spread(best[method])}"
        for method in (QUADRATIC, MAGIC, KNN_GAUSSIAN, ENTROPIC, GAUSSIAN)
    )
    return Claim(
        "Quadratic OT outperforms kNN and MAGIC; entropic OT and the Gaussian kernel perform the "
        "worst, and there are no parameter settings for which they perform well.",
        bool(confirmed),
        f"Best mean angle over the grid: {numbers}; this order "
        f"{'holds' if confirmed else 'does not hold'} in every seed.",
        variant,
    )


def _aim(scores: Scores, variant: str) -> Claim:
    best = _best_values(scores)
    angle, ratio = best[QUADRATIC], best[QUADRATIC] / best[KNN_GAUSSIAN]
    confirmed = angle.mean() <= LARGEST_ANGLE and ratio.mean() <= LARGEST_RATIO
    return Claim(
        f"Aim: the best mean angle of quadratic OT is at most {LARGEST_ANGLE:.2f}, and at most a "
        "third of that of the best kNN graph.",
        bool(confirmed),
        f"Quadratic OT {spread(angle)} (hollow {spread(best[HOLLOW])}), kNN with Gaussian weights "
        f"{spread(best[KNN_GAUSSIAN])}; ratio {spread(ratio)}.",
        variant,
    )


def _circle(scores: Scores, variant: str) -> Claim:
    """Rounder than kNN and MAGIC, with more even gaps; these in turn rounder than the stars."""
    shapes = {method: _shape_of_best(scores, method) for method in scores["method"].unique()}
    radius = {method: shape[0] for method, shape in shapes.items()}
    gaps = {method: shape[1] for method, shape in shapes.items()}
    circles, stars = (KNN_GAUSSIAN, MAGIC), (ENTROPIC, GAUSSIAN)
    confirmed = (
        all((radius[QUADRATIC] < radius[other]).all() for other in circles)
        and all((gaps[QUADRATIC] < gaps[other]).all() for other in circles)
        and all((radius[circle] < radius[star]).all() for circle in circles for star in stars)
    )
    numbers = "; ".join(
        f"{method} {spread(radius[method])} and {spread(gaps[method])}" for method in shapes
    )
    return Claim(
        "Only quadratic OT produces a near-perfect circle; kNN and MAGIC produce circles on which "
        "points concentrate in places, entropic OT and the Gaussian kernel stars.",
        bool(confirmed),
        "Coefficients of variation of the radius and of the angular gaps in the best "
        "two-dimensional embedding (0 and 0 for evenly spaced points on a circle, 1 for the gaps "
        f"of random points): {numbers}.",
        variant,
    )


def _shape_of_best(scores: Scores, method: str) -> FloatArray:
    """Variation of radius and of gaps at the smallest angle: two rows, one column per seed."""
    mine = scores[scores["method"] == method]
    at = [column for column in ("seed", "k", "eps") if mine[column].notna().all()]
    best = best_per_seed(mine, ANGLE, largest=False)[at]
    return np.stack(
        [
            best.merge(mine[mine["score"] == score], on=at)["value"].to_numpy()
            for score in (RADIUS_VARIATION, GAP_VARIATION)
        ]
    )
