"""What the paper says about the closed curve, against the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._optional import require
from otgraph.experiments._framework import Claim, Summary, spread
from otgraph.experiments._framework.style import HOLLOW, KNN, QUADRATIC
from otgraph.experiments.curve.compute import GAP_VARIATION, MEAN_DEGREE, RADIUS_VARIATION, SPURIOUS

if TYPE_CHECKING:
    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.curve.compute import Parameters
    from otgraph.typing import FloatArray

PARAMETER = {QUADRATIC: "eps", HOLLOW: "eps", KNN: "k"}
OF_RIVAL = " of kNN"
SHOWN_EPS = 1.0  # of the graph that is drawn; in the middle of the grid


def one_row_per_graph(scores: Scores, method: str) -> Scores:
    """Scores as columns, one row for each seed and parameter."""
    mine = scores[scores["method"] == method]
    return mine.pivot(
        index=["seed", PARAMETER[method]], columns="score", values="value"
    ).reset_index()


def matched(scores: Scores, method: str) -> Scores:
    """Each graph of a method beside the kNN graph of the same seed with the nearest mean degree.

    Graphs with more edges than any of the kNN graphs are left out.
    """
    knn = one_row_per_graph(scores, KNN)
    pairs = []
    for seed, mine in one_row_per_graph(scores, method).groupby("seed"):
        rivals = knn[knn["seed"] == seed]
        mine = mine[mine[MEAN_DEGREE] <= rivals[MEAN_DEGREE].max()].reset_index(drop=True)
        distance = np.subtract.outer(mine[MEAN_DEGREE].to_numpy(), rivals[MEAN_DEGREE].to_numpy())
        nearest = rivals.iloc[np.abs(distance).argmin(axis=1)].reset_index(drop=True)
        pairs.append(mine.join(nearest.add_suffix(OF_RIVAL)))
    return require("pandas", "data").concat(pairs, ignore_index=True)


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """Quadratic OT against nearest neighbors at the same mean degree."""
    table = []
    for method in (QUADRATIC, HOLLOW):
        pairs = matched(scores, method)
        shown = pairs[pairs["eps"] == SHOWN_EPS]
        table += [
            _row(method, {"eps": [SHOWN_EPS]}, shown, ""),
            _row(f"{KNN}, as many edges", {"k": _plain(shown, "k")}, shown, OF_RIVAL),
        ]
    return Summary(table, [_more_spurious(scores), _free_of_them(scores), _circle(scores)])


def _plain(pairs: Scores, name: str) -> list[int]:
    return [int(value) for value in pairs[name + OF_RIVAL]]


def _row(method: str, at: dict[str, Any], shown: Scores, suffix: str) -> dict[str, Any]:
    measured = {
        score: spread(shown[score + suffix], digits)
        for score, digits in (
            (MEAN_DEGREE, 1), (SPURIOUS, 1), (RADIUS_VARIATION, 3), (GAP_VARIATION, 3)
        )
    }  # fmt: skip
    return {"method": method, "at": at, **measured}


def _more_spurious(scores: Scores) -> Claim:
    pairs = matched(scores, QUADRATIC)
    lead = pairs[SPURIOUS + OF_RIVAL] - pairs[SPURIOUS]
    shown = pairs[pairs["eps"] == SHOWN_EPS]
    ahead = (shown[SPURIOUS + OF_RIVAL] > shown[SPURIOUS]).all()
    return Claim(
        "kNN forms a graph that has more spurious edges in low-density regions.",
        bool(ahead and (lead >= 0).all()),
        f"Spurious edges in the sparse half of the curve: quadratic OT at ε = {SHOWN_EPS:g} "
        f"{spread(shown[SPURIOUS], 1)}, kNN with as many edges "
        f"{spread(shown[SPURIOUS + OF_RIVAL], 1)}. "
        f"Of {len(lead)} pairs of graphs with equal mean degree, kNN has more spurious edges in "
        f"{(lead > 0).sum()}, as many in {(lead == 0).sum()} and fewer in {(lead < 0).sum()}.",
        "text",
    )


def _free_of_them(scores: Scores) -> Claim:
    free = {method: largest_free_degree(scores, method) for method in (QUADRATIC, HOLLOW, KNN)}
    numbers = ", ".join(f"{method} {spread(degrees, 1)}" for method, degrees in free.items())
    return Claim(
        "Quadratic OT can have more edges than kNN before the first of them is spurious.",
        bool((free[QUADRATIC] > free[KNN]).all()),
        f"Largest mean degree without a spurious edge: {numbers}.",
        "text",
    )


def largest_free_degree(scores: Scores, method: str) -> FloatArray:
    """Mean degree of the densest graph before the first with a spurious edge, one per seed."""
    table = one_row_per_graph(scores, method).sort_values(["seed", MEAN_DEGREE])
    clean = table[SPURIOUS].eq(0).groupby(table["seed"]).cummin()
    return np.asarray(table[clean].groupby("seed")[MEAN_DEGREE].max(), dtype=np.float64)


def _circle(scores: Scores) -> Claim:
    pairs = matched(scores, QUADRATIC)
    shown = pairs[pairs["eps"] == SHOWN_EPS]
    radius, rival = shown[RADIUS_VARIATION], shown[RADIUS_VARIATION + OF_RIVAL]
    return Claim(
        "Beyond the paper: here, too, quadratic OT gives a rounder embedding than kNN.",
        bool((radius < rival).all()),
        "Coefficient of variation of the radius of the two-dimensional embedding at "
        f"ε = {SHOWN_EPS:g}: {spread(radius)}; kNN with as many edges {spread(rival)}. Of the "
        f"angular gaps: {spread(shown[GAP_VARIATION])} and "
        f"{spread(shown[GAP_VARIATION + OF_RIVAL])}.",
        "text",
    )
