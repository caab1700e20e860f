"""What the scores of ``laplace`` say: errors by method and manifold, and the claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otgraph.experiments._framework.experiment import Claim, Summary
from otgraph.experiments._framework.methods import (
    CORRECTED,
    GAUSSIAN,
    HOLLOW,
    HOLLOW_ENTROPIC,
    KNN,
)
from otgraph.experiments._framework.statistics import (
    CONFIDENCE,
    course,
    falls,
    listing,
    rate,
    spread,
)
from otgraph.experiments._manifolds import CLOSED, MANIFOLDS, WITH_BORDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from otgraph.experiments._framework.experiment import Row, Scores
    from otgraph.experiments.laplace import Parameters

FIXED = "quadratic OT, hollow, fixed eps"
FIXED_CORRECTED = "quadratic OT, density divided out, fixed eps"
DIFFUSION = f"{GAUSSIAN}, density divided out"  # diffusion maps with alpha = 1
DIVIDED_OUT = (CORRECTED, FIXED_CORRECTED, DIFFUSION)
AT_FIXED_EPS = (FIXED, FIXED_CORRECTED)

EVEN, UNEVEN = "even", "uneven"
EIGENVALUES = "eigenvalue error"
EIGENFUNCTIONS = "eigenfunction error"
OWN_EIGENVALUES = "eigenvalue error, own limit"
OWN_EIGENFUNCTIONS = "eigenfunction error, own limit"
STEP_RATIO = "first eigenvalue over theory"
DEGREE = "mean degree"
BOTH = {EIGENVALUES: "eigenvalues", EIGENFUNCTIONS: "eigenfunctions"}
OWN = {OWN_EIGENVALUES: "eigenvalues", OWN_EIGENFUNCTIONS: "eigenfunctions"}

# Allowed distance from the asymptotic ratio of eigenvalues at the largest n.
STEP_TOLERANCE = 0.03
# Why kNN, unweighted, can win on a curve.
RANK_EFFECT = (
    " On a curve the unweighted kNN graph reflects little more than the order of the points. It is "
    "nearly the graph of evenly spaced points, whose eigenvalues have no scatter from sampling. "
    "Its eigenfunctions need the positions of the points, and gain nothing."
)


def on(scores: Scores, manifolds: Iterable[str]) -> Scores:
    """The scores on some of the manifolds."""
    return scores[scores["manifold"].isin(list(manifolds))]


def errors(scores: Scores, score: str, method: str, density: str) -> dict[str, Scores]:
    """Errors of one method by manifold, one row per seed and one column per n."""
    wanted = {"score": score, "method": method, "density": density}
    chosen = scores[(scores[list(wanted)] == list(wanted.values())).all(axis=1)]
    return {
        manifold: rows.pivot_table(index="seed", columns="n", values="value")
        for manifold, rows in chosen.groupby("manifold", sort=False)
    }


def at_largest_n(scores: Scores, score: str, method: str, density: str) -> Row:
    """Errors of one method at the largest n by manifold, one per seed."""
    tables = errors(scores, score, method, density)
    return {manifold: table[table.columns[-1]] for manifold, table in tables.items()}


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """Errors at the largest n and rates of every method, and the verdicts."""
    n = max(n for n in parameters.n if n <= parameters.dense_n)
    closed, bordered = on(scores, CLOSED), on(scores, WITH_BORDER)
    others = (KNN, HOLLOW_ENTROPIC)
    claims = [
        _converges(closed),
        _step(closed),
        _against_others(
            closed, n, HOLLOW, others, EVEN,
            "Quadratic OT is closer to Laplace-Beltrami than kNN and entropic OT graphs with the "
            "same mean square step (evenly sampled).",
        ),
        _against_others(
            closed, n, CORRECTED, others, EVEN,
            "With the density divided out it is closer than both in every comparison: a random "
            "sample is uneven by chance, and this is divided out as well (evenly sampled).",
        ),
        _fixed_eps(closed, FIXED, EVEN,
            "Eps need not be adapted to n: at a fixed eps (costs not depending on n) radii shrink, "
            "degrees grow, and errors fall as well."),
        _own_limit(closed),
        _divided_out(
            closed,
            "Unevenly sampled, the limit is Laplace-Beltrami if the density, known from the "
            "potentials as u^(-(d+2)/2), is divided out. This needs the dimension.",
        ),
    ]  # fmt: skip
    if not bordered.empty:
        claims.append(
            _divided_out(
                bordered,
                "Beyond the paper: the same holds on manifolds with a border, where the slope of "
                "the eigenfunctions across it is zero. The density is underestimated there: half "
                "of a neighborhood is missing.",
            )
        )
    claims += [
        _against_others(
            scores, n, CORRECTED, (KNN,), UNEVEN,
            "Beyond the paper: unevenly sampled, quadratic OT with the density divided out is "
            "closer to Laplace-Beltrami than kNN graphs with the same mean square step, with or "
            "without a border.",
        ),
        _against_others(
            scores, n, CORRECTED, (DIFFUSION,), UNEVEN,
            "Beyond the paper: it is closer than diffusion maps (alpha = 1) with the same mean "
            "square step, with or without a border.",
        ),
        _fixed_eps(
            closed, FIXED_CORRECTED, UNEVEN,
            "Beyond the paper: at a fixed eps, with the density divided out, errors fall all the "
            "way to the largest n (unevenly sampled).",
        ),
    ]  # fmt: skip
    return Summary(list(_table(scores)), claims)


def _table(scores: Scores) -> Iterator[Row]:
    columns = ["density", "manifold", "method"]
    groups = scores[scores["score"] == EIGENVALUES].groupby(columns, sort=False)
    for (density, manifold, method), group in groups:
        row = {"sampling": density, "manifold": manifold, "method": method}
        row["largest n"] = int(group["n"].max())
        for score in (*BOTH, *OWN):
            table = errors(scores, score, method, density).get(manifold)
            row[score] = None if table is None else float(table[table.columns[-1]].mean())
            row[f"rate of {score}"] = None if table is None else rate(table)[0]
        yield row


def _courses(
    scores: Scores, names: dict[str, str], method: str, density: str
) -> tuple[bool, str, str]:
    """Whether all errors fall; how, in words; and how many do, as a reason."""
    sentences, falling = [], []
    for score, word in names.items():
        tables = errors(scores, score, method, density)
        courses = ", ".join(f"{manifold} {course(table)}" for manifold, table in tables.items())
        sentences.append(f"{word}: {courses}")
        falling += [falls(table) for table in tables.values()]
    reason = (
        f"The {CONFIDENCE:.0%} interval of the exponent lies below zero in {sum(falling)} of "
        f"{len(falling)} cases."
    )
    return all(falling), "; ".join(sentences), reason


def _converges(scores: Scores) -> Claim:
    confirmed, sentence, reason = _courses(scores, BOTH, HOLLOW, EVEN)
    expected = ", ".join(
        f"{name} {-2 / (MANIFOLDS[name].dim + 4):.2f}" for name in scores["manifold"].unique()
    )
    return Claim(
        "The operator of quadratic OT may plausibly converge to that of Laplace-Beltrami (evenly "
        "sampled manifolds).",
        confirmed,
        f"Errors from the smallest to the largest n, and their rate over it: {sentence}. A bias of "
        f"the order of the radius squared would give the exponents {expected}.",
        f"{reason} Measured over this range of n, not proved.",
    )


def _step(scores: Scores) -> Claim:
    last = at_largest_n(scores, STEP_RATIO, HOLLOW, EVEN)
    largest = max(abs(ratio.mean() - 1) for ratio in last.values())
    return Claim(
        "1 - λ is r²/(2(d + 4)) times the eigenvalue of Laplace-Beltrami, where the support has "
        "radius r = (ε V (d + 2) / (2 n b_d))^(1/(d+2)).",
        bool(largest <= STEP_TOLERANCE),
        f"First eigenvalue over this prediction, largest n: {listing(last, separator=', ')}.",
        f"The largest deviation is {largest:.1%}; {STEP_TOLERANCE:.0%} are allowed.",
    )


def _against_others(
    scores: Scores, n: int, method: str, rivals: Sequence[str], density: str, text: str
) -> Claim:
    """A method against others by the mean error at one n."""
    parts, lost = [], []
    for score, word in BOTH.items():
        tables = {m: errors(scores, score, m, density) for m in (method, *rivals)}
        for manifold in tables[method]:
            at = {each: table[manifold][n] for each, table in tables.items()}
            if at[method].mean() >= min(at[rival].mean() for rival in rivals):
                lost.append(f"{word} of the {manifold}")
            parts.append(f"{word}, {manifold}: {listing(at)}")
    reason = f"Ahead in {len(parts) - len(lost)} of {len(parts)} comparisons."
    if lost:
        reason += f" Lost: {', '.join(lost)}."
    if any(f"eigenvalues of the {curve}" in lost for curve in ("circle", "half circle")):
        reason += RANK_EFFECT
    return Claim(text, not lost, f"At n = {n}: {'. '.join(parts)}.", reason)


def _fixed_eps(scores: Scores, method: str, density: str, text: str) -> Claim:
    confirmed, sentence, reason = _courses(scores, BOTH, method, density)
    largest = int(scores.loc[scores["method"] == method, "n"].max())
    return Claim(text, confirmed, f"{sentence}. The largest n is {largest:,}.", reason)


def _own_limit(scores: Scores) -> Claim:
    falling, sentence, reason = _courses(scores, OWN, HOLLOW, UNEVEN)
    plain, own = (
        at_largest_n(scores, score, HOLLOW, UNEVEN)
        for score in (EIGENFUNCTIONS, OWN_EIGENFUNCTIONS)
    )
    closer = [bool((own[name] < plain[name]).all()) for name in plain]
    numbers = [f"{name} {spread(plain[name])} against {spread(own[name])}" for name in plain]
    return Claim(
        "Unevenly sampled with density p, the limit is not Laplace-Beltrami but "
        "div(p^(d/(d+2)) grad f) / p, between that of entropic OT, div(p grad f) / p, and that of "
        "kNN, div(p^(1-2/d) grad f) / p.",
        falling and all(closer),
        f"Distance from this limit: {sentence}. Eigenfunctions at the largest n, Laplace-Beltrami "
        f"against this limit: {', '.join(numbers)}.",
        f"{reason} This limit is closer than Laplace-Beltrami in every seed on "
        f"{sum(closer)} of {len(closer)} manifolds.",
    )


def _divided_out(scores: Scores, text: str) -> Claim:
    falling, sentence, reason = _courses(scores, BOTH, CORRECTED, UNEVEN)
    mine, plain = (
        at_largest_n(scores, EIGENFUNCTIONS, method, UNEVEN) for method in (CORRECTED, HOLLOW)
    )
    closer = [bool((mine[name] < plain[name]).all()) for name in plain]
    return Claim(
        text,
        falling and all(closer),
        f"{sentence}.",
        f"{reason} Eigenfunctions at the largest n are closer than without it in every seed "
        f"on {sum(closer)} of {len(closer)} manifolds.",
    )
