"""What the run says about the operator that quadratic OT graphs tend to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph.experiments._framework import Claim, Summary, spread
from otgraph.experiments._framework.style import ENTROPIC, HOLLOW, KNN
from otgraph.experiments.laplace.compute import (
    CORRECTED,
    EIGENFUNCTIONS,
    EIGENVALUES,
    EVEN,
    FIXED,
    OWN_EIGENFUNCTIONS,
    OWN_EIGENVALUES,
    STEP_RATIO,
    UNEVEN,
)
from otgraph.experiments.laplace.manifolds import MANIFOLDS
from otgraph.experiments.laplace.rates import course, errors, falls, rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.laplace.compute import Parameters

# The theoretical ratio of eigenvalues is asymptotic; this much may be left at the largest n.
STEP_TOLERANCE = 0.03
BOTH = {EIGENVALUES: "eigenvalues", EIGENFUNCTIONS: "eigenfunctions"}
OWN = {OWN_EIGENVALUES: "eigenvalues", OWN_EIGENFUNCTIONS: "eigenfunctions"}


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """Errors at the ends and rates of every method, and the verdicts."""
    manifolds = parameters.manifolds
    claims = [
        _converges(scores, manifolds),
        _step(scores, manifolds),
        _against_others(scores, manifolds, parameters),
        _fixed_eps(scores, manifolds),
        _own_limit(scores, manifolds),
        _divided_out(scores, manifolds),
    ]
    return Summary(list(_table(scores)), claims)


def _table(scores: Scores) -> Iterable[dict[str, Any]]:
    """Errors at the largest n and rates, one row for each graph on each manifold."""
    groups = scores[scores["score"] == EIGENVALUES].groupby(
        ["density", "manifold", "method"], sort=False
    )
    for (density, manifold, method), group in groups:
        row = {"sampling": density, "manifold": manifold, "method": method}
        row["largest n"] = int(group["n"].max())
        for score in (*BOTH, *OWN):
            table = errors(scores, score, method, manifold, density)
            row[score] = None if table.empty else float(table[table.columns[-1]].mean())
            row[f"rate of {score}"] = None if table.empty else rate(table)[0]
        yield row


def _courses(
    scores: Scores, names: dict[str, str], method: str, manifolds: Iterable[str], density: str
) -> tuple[bool, str]:
    """Whether all errors fall, and how, in words."""
    tables = {
        (word, manifold): errors(scores, score, method, manifold, density)
        for score, word in names.items()
        for manifold in manifolds
    }
    sentences = [
        f"{word}: "
        + ", ".join(f"{manifold} {course(tables[word, manifold])}" for manifold in manifolds)
        for word in names.values()
    ]
    return all(map(falls, tables.values())), "; ".join(sentences)


def _converges(scores: Scores, manifolds: Iterable[str]) -> Claim:
    confirmed, sentence = _courses(scores, BOTH, HOLLOW, manifolds, EVEN)
    expected = ", ".join(f"{name} {-2 / (MANIFOLDS[name].dim + 4):.2f}" for name in manifolds)
    return Claim(
        "The operator of quadratic OT may plausibly converge to that of Laplace-Beltrami (evenly "
        "sampled manifolds).",
        confirmed,
        f"Errors from the smallest to the largest n, and their rate over it: {sentence}. A bias of "
        f"the order of the radius squared would give the exponents {expected}. Measured over this "
        "range of n, not proved.",
    )


def _step(scores: Scores, manifolds: Iterable[str]) -> Claim:
    last = {}
    for manifold in manifolds:
        table = errors(scores, STEP_RATIO, HOLLOW, manifold, EVEN)
        last[manifold] = table[table.columns[-1]]
    confirmed = all(abs(ratio.mean() - 1) <= STEP_TOLERANCE for ratio in last.values())
    numbers = ", ".join(f"{manifold} {spread(ratio)}" for manifold, ratio in last.items())
    return Claim(
        "1 - λ is r²/(2(d + 4)) times the eigenvalue of Laplace-Beltrami, where the support has "
        "radius r = (ε V (d + 2) / (2 n b_d))^(1/(d+2)).",
        confirmed,
        f"First eigenvalue over this prediction, largest n: {numbers}.",
    )


def _against_others(scores: Scores, manifolds: Iterable[str], parameters: Parameters) -> Claim:
    n = max(n for n in parameters.n if n <= parameters.dense_n)
    parts, ahead = [], []
    for score, word in BOTH.items():
        for manifold in manifolds:
            at = {
                method: errors(scores, score, method, manifold, EVEN)[n]
                for method in (HOLLOW, KNN, ENTROPIC)
            }
            ahead.append(bool(at[HOLLOW].mean() < min(at[KNN].mean(), at[ENTROPIC].mean())))
            numbers = ", ".join(f"{method} {spread(values)}" for method, values in at.items())
            parts.append(f"{word}, {manifold}: {numbers}")
    return Claim(
        "Quadratic OT is closer to Laplace-Beltrami than kNN and entropic OT graphs with the same "
        "mean square step (evenly sampled).",
        all(ahead),
        f"Ahead in {sum(ahead)} of {len(ahead)} comparisons at n = {n}: {'; '.join(parts)}.",
    )


def _fixed_eps(scores: Scores, manifolds: Iterable[str]) -> Claim:
    confirmed, sentence = _courses(scores, BOTH, FIXED, manifolds, EVEN)
    return Claim(
        "Eps need not be adapted to n: at a fixed eps (costs not depending on n) radii shrink and "
        "degrees grow by themselves, and errors fall as well.",
        confirmed,
        f"{sentence}.",
    )


def _own_limit(scores: Scores, manifolds: Iterable[str]) -> Claim:
    falling, sentence = _courses(scores, OWN, HOLLOW, manifolds, UNEVEN)
    closer, numbers = [], []
    for manifold in manifolds:
        table = errors(scores, EIGENFUNCTIONS, HOLLOW, manifold, UNEVEN)
        own = errors(scores, OWN_EIGENFUNCTIONS, HOLLOW, manifold, UNEVEN)
        n = table.columns[-1]
        closer.append(bool((own[n] < table[n]).all()))
        numbers.append(f"{manifold} {spread(table[n])} against {spread(own[n])}")
    return Claim(
        "Unevenly sampled with density p, the limit is not Laplace-Beltrami but "
        "div(p^(d/(d+2)) grad f) / p, between that of entropic OT, div(p grad f) / p, and that of "
        "kNN, div(p^(1-2/d) grad f) / p.",
        falling and all(closer),
        f"Distance from this limit: {sentence}. Eigenfunctions at the largest n, Laplace-Beltrami "
        f"against this limit: {', '.join(numbers)}.",
    )


def _divided_out(scores: Scores, manifolds: Iterable[str]) -> Claim:
    falling, sentence = _courses(scores, BOTH, CORRECTED, manifolds, UNEVEN)
    closer = []
    for manifold in manifolds:
        mine, plain = (
            errors(scores, EIGENFUNCTIONS, method, manifold, UNEVEN)
            for method in (CORRECTED, HOLLOW)
        )
        n = mine.columns[-1]
        closer.append(bool((mine[n] < plain[n]).all()))
    return Claim(
        "Unevenly sampled, Laplace-Beltrami is reached if the density, known from the potentials "
        "as u^(-(d+2)/2), is divided out; this needs the dimension.",
        falling and all(closer),
        f"{sentence}; eigenfunctions at the largest n are closer to Laplace-Beltrami than without "
        f"it {'in every seed' if all(closer) else 'not in every seed'}.",
    )
