"""Semi-supervised learning as in both experiments of section 3.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import otgraph
from otgraph import datasets

if TYPE_CHECKING:
    from otgraph.typing import BoolArray, IntArray

MU = 1.0  # weight of the given labels in the paper's objective; the text names none
AUTHORS_ALPHA = 0.5  # their mu = 1, in the form of Zhou et al. (2004)
SERIES_RTOL = 1e-6  # the series ends when all terms are smaller than this


class LabeledArms(NamedTuple):
    """Spiral arms with a few labeled points."""

    sample: datasets.Sample
    truth: IntArray
    known: BoolArray


def with_known(sample: datasets.Sample, fraction: float, seed: int) -> LabeledArms:
    """Reveal the same share of every arm."""
    assert sample.labels is not None  # arms have labels
    known = datasets.label_mask(sample.labels, fraction, random_state=seed)
    return LabeledArms(sample, sample.labels, known)


def inferred_labels(graph: otgraph.Graph, arms: LabeledArms, variant: str = "text") -> IntArray:
    """Labels of all points, by the text or the authors' script; -1 if no label reaches a point."""
    if variant == "code":
        return authors_labels(graph, arms)
    partial = np.where(arms.known, arms.truth, -1)
    return np.asarray(otgraph.spread_labels(graph, partial, mu=MU).labels, dtype=np.int32)


def authors_labels(graph: otgraph.Graph, arms: LabeledArms) -> IntArray:
    """Labels by the authors' script: F = (I − αW)⁻¹ Y, where W is not made symmetric.

    Summed as Y + αWY + (αW)²Y + …, which keeps the proportions of the classes far from all labels.
    """
    F = term = np.eye(arms.truth.max() + 1)[arms.truth] * arms.known[:, None]
    W = AUTHORS_ALPHA * graph.transition()
    while (term.sum(axis=1) > SERIES_RTOL * F.sum(axis=1)).any():
        term = W @ term
        F = F + term
    return np.where(F.any(axis=1), F.argmax(axis=1), -1).astype(np.int32)


def accuracy(graph: otgraph.Graph, arms: LabeledArms, variant: str = "text") -> float:
    """Share of right labels among the unlabeled points; the authors count the labeled ones, too.

    All arms have equally many points. The mean over the classes, which the authors use, is
    therefore the same number. A point that no label reaches counts as wrong.
    """
    right = inferred_labels(graph, arms, variant) == arms.truth
    return float(right.mean() if variant == "code" else right[~arms.known].mean())
