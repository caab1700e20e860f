"""Choice of eps, from the points alone or from the labels that are known."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph._labels import encode_labels
from otgraph._validation import check_choice, check_count, check_points, check_positive, check_seed
from otgraph.exceptions import invalid
from otgraph.graphs import eps_path
from otgraph.graphs.choice import (
    CLEAR,
    SPLITS,
    Doubt,
    EpsChoice,
    choose_by_prediction,
    lowest_point,
    standard_error,
    too_few,
)
from otgraph.graphs.copies import collapsed
from otgraph.graphs.keywords import shows
from otgraph.graphs.options import QuadraticOptions
from otgraph.graphs.splits import obstacle
from otgraph.methods.spreading import spread_labels

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import ArrayLike

    from otgraph.graphs import Graph
    from otgraph.graphs.options import QuadraticKeywords
    from otgraph.graphs.splits import Prepare
    from otgraph.typing import FloatArray, LongArray, PointsLike

# Values tried for labels. These may lie on thin structures, whose best eps is far below the one
# that predicts features best.
LABEL_GRID = np.logspace(-3, 1, 13)


@shows({"quadratic": QuadraticOptions})
def choose_eps(
    X: PointsLike,
    labels: ArrayLike | None = None,
    *,
    eps: ArrayLike | None = None,
    split: str = "features",
    prepare: Prepare | None = None,
    mass: ArrayLike | None = None,
    mu: float = 1.0,
    n_folds: int = 5,
    n_jobs: int | None = -1,
    **options: Unpack[QuadraticKeywords],
) -> EpsChoice:
    r"""The eps whose graph predicts best what it has not seen, with the curve behind it.

    Without labels, the features are split into two random halves (after a random rotation). The
    graph of each half predicts the other by the averages over its neighbors. ``eps="auto"`` of
    :func:`otgraph.quadratic_ot_graph` is this choice.

    With labels, some of the known ones are hidden and found again by
    :func:`otgraph.spread_labels`. Choose this to spread labels: structures that matter for
    labels may be thinner than those that features show.

    Parameters
    ----------
    X
        Points, one per row; counts with ``split="counts"``.
    labels
        One label per point; -1 means unknown.
    eps
        Values to try; the choice may lie between them. By default they are searched without
        labels, and lie between 0.001 and 10 times the mean cost with labels. Given values are
        tried on all points, however many.
    split
        ``"features"`` suits measurements whose noise is independent between features. ``"counts"``
        suits single cells: each molecule goes to one of two halves at random, so that the halves
        are independent although the features of one cell are not (molecular cross-validation).
    prepare
        Function from counts to points with ``split="counts"``, such as normalization, square root
        and principal components. It is called for each half. The chosen ``eps`` is that of
        ``prepare(X)``.
    mass
        Wanted row sums, ones by default. :func:`otgraph.quadratic_ot_graph` says more about this
        and the keywords below; `random_state` is also the seed of the split.
    mu
        Weight of the known labels in :func:`otgraph.spread_labels`.
    n_folds
        Number of parts into which known labels are divided; each is hidden once.
    n_jobs
        Number of threads.
    **options

    Returns
    -------
    EpsChoice
        With ``eps``, the curve (``grid``, ``scores``, ``standard_errors``) and ``doubt``.
        :func:`otgraph.plots.plot_choice` draws it.

    Notes
    -----
    Of more than 2000 points a sample is used without labels: a fifth, at least 2000 and at most
    5000 points. The best eps grows slowly with the number of points, like :math:`n^{2/(d+4)}` in
    d dimensions. This growth is measured on a quarter of the sample, and ``growth`` tells it.

    Correlated noise is signal to this method: what several features share, a graph can predict.
    Nothing in the curve shows it. Split counts, or use labels, where it is expected.

    Examples
    --------
    >>> import otgraph
    >>> X = otgraph.datasets.noisy_spiral(n=300).X
    >>> choice = otgraph.choose_eps(X)
    >>> graph = otgraph.quadratic_ot_graph(X, choice.eps)
    """
    chosen = QuadraticOptions.of(choose_eps, options)
    check_choice(split, "split", SPLITS)
    values = None if eps is None else _checked_values(eps)
    if prepare is not None and split != "counts":
        msg = "makes points of counts: pass split='counts', or the points themselves."
        raise invalid("prepare", msg)
    if labels is not None:
        if split == "counts":
            raise invalid("labels", "and split='counts' are two ways to choose: pass one of them.")
        return _by_labels(
            X, labels, values, chosen, mass=mass, mu=mu, n_folds=n_folds, n_jobs=n_jobs
        )
    X, mass, _ = collapsed(check_points(X), chosen, mass)
    chosen = replace(chosen, collapse=False)
    n, n_features = X.shape
    reason = too_few(n) or (obstacle(n_features, chosen) if split == "features" else None)
    if reason is not None:
        msg = f"does not allow to choose `eps`: {reason}. Pass labels, or choose it yourself."
        raise invalid("X", msg)
    return choose_by_prediction(
        n, lambda rows: X[rows], chosen,
        split=split, prepare=prepare, mass=mass, eps=values, n_jobs=n_jobs,
    )  # fmt: skip


def _checked_values(eps: object) -> list[float]:
    values = np.unique(np.asarray(eps, dtype=np.float64))
    if len(values) < 2:
        raise invalid("eps", f"must hold at least two values to try, got {eps!r}.")
    return [check_positive(float(value), "eps") for value in values]


def _by_labels(
    X: PointsLike,
    labels: ArrayLike,
    values: list[float] | None,
    options: QuadraticOptions,
    *,
    mass: ArrayLike | None,
    mu: float,
    n_folds: int,
    n_jobs: int | None,
) -> EpsChoice:
    """Cross-validation on the known labels, on one warm path."""
    n_folds = check_count(n_folds, "n_folds", minimum=2)
    keywords = options.keywords()
    if values is None:  # in units of the mean cost
        keywords["normalize"] = True
    with warnings.catch_warnings():  # the trial graphs are not returned
        warnings.simplefilter("ignore")
        path = eps_path(
            X, LABEL_GRID if values is None else values, mass=mass, n_jobs=n_jobs, **keywords
        )
        encoded = encode_labels(labels, path[0].n)
        folds = _folds(encoded.codes, n_folds, check_seed(options.random_state))
        found = [_held_out(graph, encoded.codes, folds, mu) for graph in path]
    unit = 1.0
    if values is None and not options.normalize:
        unit = float(path[0].params["scale"] or 1.0)
    wrong = np.array(found)
    scores = wrong.mean(axis=1)
    smooth = _smoothed(scores)
    best = int(smooth.argmin())
    spread = np.array([standard_error(each - wrong[best]) for each in wrong])
    known = encoded.codes[encoded.codes >= 0]
    guess = (known != np.bincount(known).argmax()).astype(np.float64)
    gain = guess - wrong[best]
    if not gain.mean() > CLEAR * standard_error(gain):
        doubt = Doubt.NO_SIGNAL
    elif not np.any(scores - scores[best] > CLEAR * spread):
        doubt = Doubt.FLAT
    else:
        doubt = Doubt.AT_THE_END if best in (0, len(path) - 1) else Doubt.NONE
    grid = path.eps * unit
    chosen = lowest_point(grid, smooth)
    return EpsChoice(chosen, grid, scores, spread, "labels", doubt, path[0].n)


def _folds(codes: LongArray, n_folds: int, seed: int) -> list[LongArray]:
    """The labeled points in parts that hold all classes as evenly as possible."""
    known = np.flatnonzero(codes >= 0)
    if len(known) < 2:
        msg = "must hold at least two known labels: one to hide, one to find it by."
        raise invalid("labels", msg)
    shuffled = np.random.default_rng(seed).permutation(known)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    n_folds = min(n_folds, len(known))
    return [by_class[k::n_folds] for k in range(n_folds)]


def _held_out(graph: Graph, codes: LongArray, folds: list[LongArray], mu: float) -> FloatArray:
    """One for each known label that is found wrongly without itself, zero for the others."""
    wrong = np.zeros(len(codes))
    for fold in folds:
        partial = codes.copy()
        partial[fold] = -1
        wrong[fold] = spread_labels(graph, partial, mu).labels[fold] != codes[fold]
    return wrong[codes >= 0]


def _smoothed(scores: FloatArray) -> FloatArray:
    """Means over three values with weights 1, 2, 1.

    A few dozen labels give a curve in steps, whose lowest one may be an accident.
    """
    padded = np.pad(scores, 1, mode="edge")
    return (padded[:-2] + 2.0 * scores + padded[2:]) / 4.0
