"""What the paper says about denoised cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph.experiments._framework import Claim, Summary
from otgraph.experiments._framework.style import ENTROPIC, HOLLOW, MAGIC
from otgraph.experiments.cells.compute import (
    DIMENSION,
    DISTANCES,
    GENE_CORRELATION,
    LOW_CORRELATION,
    LOWEST_CORRELATION,
    MATCHED,
    OWN_SHARE,
    PERPLEXITY,
    RAW,
    VARIANCE,
)
from otgraph.experiments.cells.preparation import is_papers

if TYPE_CHECKING:
    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.cells.preparation import Parameters

# Mean correlation over the genes that deserves the word; without denoising it is far below.
NEARLY_IDENTICAL = 0.95
# What the authors' preparation leaves of their data.
PAPER_SHAPE = (2416, 10782)


def summarize(scores: Scores, parameters: Parameters) -> Summary:
    """All scores as a table, and both claims."""
    table = [
        {"method": method, "score": score, **_columns(group, parameters)}
        for (method, score), group in scores.groupby(["method", "score"], sort=False)
    ]
    claims = [_nearly_identical(scores, parameters), _loses_geometry(scores, parameters)]
    if is_papers(parameters.data):
        claims.insert(0, _preparation(parameters))
    return Summary(table, claims)


def _columns(group: Scores, parameters: Parameters) -> dict[str, Any]:
    """Value of the graph itself, and one for each number of steps."""
    values = dict(zip(group["t"].tolist(), group["value"].tolist(), strict=True))
    return {(f"t = {t}" if t else "graph"): values.get(t) for t in (0, *parameters.t)}


def _at(scores: Scores, method: str, score: str) -> Any:
    chosen = scores[(scores["method"] == method) & (scores["score"] == score)]
    return chosen.set_index("t")["value"]


def _course(scores: Scores, method: str, score: str) -> str:
    return ", ".join(f"{value:.3f}" for value in _at(scores, method, score))


def _where(parameters: Parameters) -> str:
    n, m = parameters.n_cells, parameters.n_genes
    steps = ", ".join(map(str, parameters.t))
    name = parameters.data.replace("\\", "/").rpartition("/")[2]
    other = "" if is_papers(parameters.data) else "; not the paper's cells"
    return f"On {name} ({n} cells, {m} genes{other}; t = {steps})"


def _preparation(parameters: Parameters) -> Claim:
    shape = (parameters.n_cells, parameters.n_genes)
    return Claim(
        f"The authors' preparation leaves {PAPER_SHAPE[0]} cells and {PAPER_SHAPE[1]} genes.",
        shape == PAPER_SHAPE,
        f"It leaves {shape[0]} cells and {shape[1]} genes.",
    )


def _nearly_identical(scores: Scores, parameters: Parameters) -> Claim:
    mean = _at(scores, HOLLOW, GENE_CORRELATION)
    return Claim(
        "Quadratic OT performs nearly identical to MAGIC.",
        bool((mean >= NEARLY_IDENTICAL).all()),
        f"{_where(parameters)}, correlation per gene between the two denoised matrices: mean "
        f"{_course(scores, HOLLOW, GENE_CORRELATION)}, 5 % of the genes below "
        f"{_course(scores, HOLLOW, LOW_CORRELATION)}, lowest "
        f"{_course(scores, HOLLOW, LOWEST_CORRELATION)} (confirmed if every mean is at least "
        f"{NEARLY_IDENTICAL:g}; without denoising {_course(scores, RAW, GENE_CORRELATION)}). "
        f"In one step MAGIC leaves a share of {_course(scores, MAGIC, OWN_SHARE)} of each cell's "
        "own noisy values in place, a plan without self-loops nothing.",
    )


def _loses_geometry(scores: Scores, parameters: Parameters) -> Claim:
    behind = all(
        (_at(scores, ENTROPIC, score) < _at(scores, HOLLOW, score)).all()
        for score in (GENE_CORRELATION, DISTANCES)
    )
    perplexity = {m: _course(scores, m, PERPLEXITY) for m in (HOLLOW, ENTROPIC, MAGIC)}
    kept = {m: _course(scores, m, VARIANCE) for m in (HOLLOW, ENTROPIC, MAGIC)}
    return Claim(
        "Entropic OT fails to smooth points near the center and loses geometric information.",
        behind,
        f"{_where(parameters)}, distances between cells have the rank correlation "
        f"{_course(scores, ENTROPIC, DISTANCES)} with those of MAGIC for entropic OT and "
        f"{_course(scores, HOLLOW, DISTANCES)} for quadratic OT; genes correlate by "
        f"{_course(scores, ENTROPIC, GENE_CORRELATION)} in the mean. Variance kept: MAGIC "
        f"{kept[MAGIC]}, quadratic {kept[HOLLOW]}, entropic {kept[ENTROPIC]}; effective dimension "
        f"{_course(scores, MAGIC, DIMENSION)}, {_course(scores, HOLLOW, DIMENSION)}, "
        f"{_course(scores, ENTROPIC, DIMENSION)}; perplexity of a row {perplexity[MAGIC]}, "
        f"{perplexity[HOLLOW]}, {perplexity[ENTROPIC]}. With the perplexity of quadratic OT, "
        f"entropic OT has {_course(scores, MATCHED, DISTANCES)} and "
        f"{_course(scores, MATCHED, GENE_CORRELATION)}.",
    )
