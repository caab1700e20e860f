"""Graphs of cells, and what they make of the expression of genes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.metrics.pairwise import euclidean_distances

import otgraph
from otgraph.exceptions import ConvergenceWarning
from otgraph.experiments._framework.style import ENTROPIC, HOLLOW, MAGIC
from otgraph.experiments.cells.preparation import Parameters, compared_columns, expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from otgraph import Graph
    from otgraph.experiments._framework import Task
    from otgraph.experiments._framework.experiment import Row
    from otgraph.typing import FloatArray

__all__ = ["QUICK", "Parameters", "methods", "run"]

MATCHED = "entropic OT, same perplexity"
RAW = "no denoising"  # what the numbers are before anything is done

GENE_CORRELATION = "correlation with MAGIC"
LOWEST_CORRELATION = "correlation with MAGIC, lowest gene"
LOW_CORRELATION = "correlation with MAGIC, 5 % of genes below"
DISTANCES = "distances, rank correlation with MAGIC"
VARIANCE = "variance kept"
DIMENSION = "effective dimension"
PERPLEXITY = "perplexity"
EPS = "eps"
OWN_SHARE = "share of a cell's own values after one step"

# All pairs of so many cells: the rank correlation of 1e5 distances is certain to 1e-2.
CELLS_IN_DISTANCES = 500
ENTROPIC_SHARE = 0.5 / 30  # of the authors' two eps
PERPLEXITY_RTOL = 0.01
MOST_HALVINGS = 30
EPS_RANGE = (1e-3, 1.0)  # of the mean distance: from single neighbors to most of all cells

QUICK = Parameters(max_cells=200, max_genes=100)


def methods(parameters: Parameters, variant: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The three graphs of the paper, one more for comparison, and none."""
    for method in (MATCHED, ENTROPIC, HOLLOW, MAGIC, RAW):
        yield method, {}


def run(task: Task, parameters: Parameters) -> Iterator[Row]:
    """How far every denoised matrix is from that of MAGIC, and what is left in it."""
    X = expression(parameters)
    shown = compared_columns(X, parameters)
    magic = graph(MAGIC, X, parameters)
    own = None if task.method == RAW else graph(task.method, X, parameters)
    for t in parameters.t:
        denoised = shown if own is None else otgraph.denoise(own, shown, t)
        reference = otgraph.denoise(magic, shown, t)
        for score, value in compare(denoised, reference, shown).items():
            yield {"t": t, "score": score, "value": value}
    if own is not None:
        yield {"t": 0, "score": PERPLEXITY, "value": perplexity(own)}
        own_share = float(own.transition().diagonal().mean())
        yield {"t": 0, "score": OWN_SHARE, "value": own_share}
        yield {"t": 0, "score": "mean degree", "value": own.mean_degree}
    if own is not None and own.certificate is not None:
        yield {"t": 0, "score": EPS, "value": own.certificate.eps}
        yield {"t": 0, "score": "marginal error", "value": own.certificate.marginal_error}


def compare(denoised: FloatArray, reference: FloatArray, raw: FloatArray) -> dict[str, float]:
    """All scores of a denoised matrix."""
    correlation = gene_correlations(denoised, reference)
    spread = np.linalg.svd(denoised - denoised.mean(axis=0), compute_uv=False) ** 2
    return {
        GENE_CORRELATION: float(correlation.mean()),
        LOWEST_CORRELATION: float(correlation.min()),
        LOW_CORRELATION: float(np.quantile(correlation, 0.05)),
        DISTANCES: distance_correlation(denoised, reference),
        VARIANCE: float(denoised.var(axis=0).sum() / raw.var(axis=0).sum()),
        DIMENSION: float(spread.sum() ** 2 / (spread**2).sum()),
    }


def gene_correlations(A: FloatArray, B: FloatArray) -> FloatArray:
    """Pearson correlation of each gene between two matrices; 0 where one is constant."""
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    size = np.linalg.norm(A, axis=0) * np.linalg.norm(B, axis=0)
    return np.divide((A * B).sum(axis=0), size, out=np.zeros_like(size), where=size > 0)


def distance_correlation(A: FloatArray, B: FloatArray) -> float:
    """Spearman correlation of the distances between cells, evenly chosen if they are many."""
    chosen = np.unique(np.linspace(0, len(A) - 1, CELLS_IN_DISTANCES).astype(int))
    return float(spearmanr(pdist(A[chosen]), pdist(B[chosen])).statistic)


def graph(method: str, X: FloatArray, parameters: Parameters) -> Graph:
    """A graph with the authors' settings, or what :class:`Parameters` says about other data."""
    if method == MAGIC:
        n_pca = min(parameters.n_pca, min(X.shape) - 1)
        return otgraph.magic_graph(X, parameters.magic_k, n_pca=n_pca, n_jobs=1)
    if method == HOLLOW and parameters.eps is not None:
        return transport(method, X, parameters.eps)
    if method == HOLLOW:
        wanted = graph(MAGIC, X, parameters).mean_degree
        return otgraph.quadratic_ot_graph(X, mean_degree=wanted, p=1, normalize=False, n_jobs=1)
    if method == ENTROPIC and parameters.entropic_eps is not None:
        return transport(method, X, parameters.entropic_eps)
    quadratic = graph(HOLLOW, X, parameters)
    if method == MATCHED:
        return _of_perplexity(X, perplexity(quadratic))
    return transport(method, X, ENTROPIC_SHARE * float(quadratic.params["eps"] or 0.0))


def transport(method: str, X: FloatArray, eps: float) -> Graph:
    """A hollow plan for Euclidean distances that are neither squared nor normalized."""
    if method == HOLLOW:
        return otgraph.quadratic_ot_graph(X, eps, p=1, normalize=False, n_jobs=1)
    return _entropic(_distances(X), eps)


def _distances(X: FloatArray) -> FloatArray:
    found = euclidean_distances(X)
    return np.asarray((found + found.T) / 2)  # equal in both directions to the last bit


def _entropic(distances: FloatArray, eps: float) -> Graph:
    with warnings.catch_warnings():
        # At a small eps the plan is close to a matching. The error that is left is a score.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return otgraph.entropic_ot_graph(
            distances, eps, metric="precomputed", normalize=False, n_jobs=1
        )


def perplexity(of: Graph) -> float:
    """Mean over the cells of exp(entropy of a row): how many cells a mean is taken over."""
    P = of.transition().tocoo()
    terms = -P.data * np.log(P.data)
    return float(np.exp(np.bincount(P.row, terms, minlength=of.n)).mean())


def _of_perplexity(X: FloatArray, wanted: float) -> Graph:
    """Entropic OT with as many effective neighbors: halve the interval of log eps."""
    distances = _distances(X)
    low, high = np.log(distances.mean() * np.array(EPS_RANGE))
    for _ in range(MOST_HALVINGS):
        middle = (low + high) / 2
        found = _entropic(distances, float(np.exp(middle)))
        value = perplexity(found)
        if abs(value / wanted - 1) < PERPLEXITY_RTOL:
            break
        low, high = (middle, high) if value < wanted else (low, middle)
    return found
