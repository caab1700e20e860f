"""Denoising: every point is averaged over the end points of a short random walk."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import svdvals

from otgraph._blas import single_threaded_blas
from otgraph._validation import check_count, check_positive, check_seed
from otgraph.exceptions import ConvergenceWarning, argument_error, invalid
from otgraph.methods._columns import ColumnReader
from otgraph.methods._graphs import as_product_graph, transition_matrix

if TYPE_CHECKING:
    from otgraph.graphs import Graph
    from otgraph.methods._columns import Columns
    from otgraph.methods._graphs import Operator
    from otgraph.typing import (
        FloatArray,
        Points,
        PointsLike,
        ProductGraph,
        RandomState,
        SparseMatrix,
    )

logger = logging.getLogger("otgraph")

# Percentile that MAGIC restores when it rescales; the maximum is a single noisy value.
RESCALE_PERCENTILE = 99.0
# Defaults of `diffusion_time`: change in one step below which to stop, as MAGIC measures it; most
# steps; most columns.
THRESHOLD = 1e-3
MAX_T = 20
MAX_COLUMNS = 500


def denoise(
    graph: Graph | SparseMatrix | ProductGraph,
    X: Points,
    t: int | str = 3,
    *,
    columns: Columns = None,
    rescale: bool = False,
    out: Any = None,
) -> Any:
    r"""Features smoothed by t steps of the random walk on the graph.

    .. math:: X' = P^t X, \qquad P = D^{-1} W,

    as MAGIC imputes gene expression (van Dijk et al. 2018; Matsumoto et al. 2022, section 3.3).
    Products are computed as P(P(PX)); no power of P is formed. The graph need not come from X:
    you can build it on principal components and denoise counts. A point without any edge, such as
    an outlier that a graph with `outlier_cost` has dropped, keeps its own values.

    Parameters
    ----------
    graph
        A Graph, a :class:`~otgraph.distributed.DistributedGraph`, or any symmetric scipy sparse
        matrix of weights.
    X
        Features, one row per point: array, data frame, scipy sparse matrix, Dask array, or an
        array on disk such as an HDF5 or zarr data set or a mapped .npy file, which is read some
        columns at a time.
    t
        Number of steps; more of them smooth more. ``"auto"`` stops one step after the features
        cease to change, as :func:`otgraph.methods.diffusion_time` describes.
    columns
        Columns to denoise and return: numbers, a mask, a slice, or names if X is a data
        frame. All by default.
    rescale
        Scale each column so that its 99th percentile is the same as before (its maximum, if the
        percentile is zero), because smoothing shrinks the range. For values >= 0 only.
    out
        Where to put the result, an array of the right shape that takes ``out[:, a:b] = ...``.
        With X and `out` on disk, a few hundred megabytes of memory are enough.

    Returns
    -------
    `out`, or a new float64 array with one row per point.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> spiral = otgraph.datasets.noisy_spiral(n=300)
    >>> graph = otgraph.quadratic_ot_graph(spiral.X, eps=1.0)
    >>> error = [np.linalg.norm(X - spiral.clean @ spiral.basis.T)
    ...          for X in (spiral.X, otgraph.denoise(graph, spiral.X, t=2))]
    >>> bool(error[1] < 0.5 * error[0])
    True
    """
    graph = as_product_graph(graph)
    P = transition_matrix(graph)
    reader = ColumnReader(X, graph.n, columns)
    shape = (graph.n, len(reader.indices))
    if out is None:
        out = np.empty(shape)
    elif not hasattr(out, "shape") or not hasattr(out, "__setitem__"):
        raise invalid("out", f"must be an array of shape {shape}, got {out!r}.", TypeError)
    elif tuple(out.shape) != shape:
        raise invalid("out", f"must have shape {shape}, got {tuple(out.shape)}.")
    if isinstance(t, str):
        if t != "auto":
            raise invalid("t", f"must be a number of steps or 'auto', got {t!r}.")
        t = _time_to_rest(P, reader)
    t = check_count(t, "t", minimum=0)
    for place, block in reader.blocks():
        smooth = block
        for _ in range(t):
            smooth = P @ smooth
        out[:, place] = smooth * rescale_factors(block, smooth) if rescale else smooth
    return out


def diffusion_time(
    graph: Graph | SparseMatrix | ProductGraph,
    X: PointsLike,
    *,
    columns: Columns = None,
    threshold: float = THRESHOLD,
    max_t: int = MAX_T,
    max_columns: int = MAX_COLUMNS,
    random_state: RandomState = 0,
) -> int:
    """Number of steps after which further denoising hardly changes the features.

    The change from one step to the next is measured as MAGIC does, by the Procrustes disparity:
    the squared distance of the two clouds, each centered and scaled to norm one, after the best
    rotation. The answer is one step more than the first whose disparity is below the threshold.

    Parameters
    ----------
    graph, X
        As in :func:`otgraph.denoise`.
    columns
        Features to look at: numbers, a mask or a slice. All by default.
    threshold
        Smaller values smooth more.
    max_t
        Most steps to try. If the threshold is not reached, this is the result, with a warning.
    max_columns
        Of more columns than this, a random choice is used.
    random_state
        Seed of that choice.

    Examples
    --------
    >>> import otgraph
    >>> X = otgraph.datasets.noisy_spiral(n=200).X
    >>> graph = otgraph.quadratic_ot_graph(X, eps=1.0)
    >>> t = otgraph.methods.diffusion_time(graph, X)
    >>> smooth = otgraph.denoise(graph, X, t)  # what t="auto" does
    """
    graph = as_product_graph(graph)
    threshold = check_positive(threshold, "threshold")
    max_t, max_columns = check_count(max_t, "max_t"), check_count(max_columns, "max_columns")
    return _time_to_rest(
        transition_matrix(graph),
        ColumnReader(X, graph.n, columns),
        threshold=threshold,
        max_t=max_t,
        max_columns=max_columns,
        seed=check_seed(random_state),
    )


def _time_to_rest(
    P: Operator,
    reader: ColumnReader,
    *,
    threshold: float = THRESHOLD,
    max_t: int = MAX_T,
    max_columns: int = MAX_COLUMNS,
    seed: int = 0,
) -> int:
    chosen = reader.indices
    if len(chosen) > max_columns:
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(chosen, max_columns, replace=False))
    before = reader.read(chosen)
    with single_threaded_blas():  # the same result for any number of threads
        for t in range(1, max_t + 1):
            after = P @ before
            if _disparity(before, after) < threshold:
                logger.info("diffusion time %d", t + 1)
                return t + 1
            before = after
    msg = (
        f"The features still change by more than `threshold`={threshold:g} after `max_t`={max_t} "
        "steps; `max_t` steps are used. Pass a larger threshold, or choose `t` yourself."
    )
    warnings.warn(msg, ConvergenceWarning, stacklevel=3)
    return max_t


def rescale_factors(before: FloatArray, after: FloatArray) -> FloatArray:
    """Factor per column that restores its upper percentile."""
    if before.size and before.min() < 0.0:
        msg = (
            f"`rescale=True` needs values >= 0, got {before.min():.6g}: with negative values the "
            "upper percentile does not determine the scale. Pass `rescale=False`."
        )
        raise argument_error(ValueError, "rescale", msg)
    wanted, got = _upper_end(before), _upper_end(after)
    return np.divide(wanted, got, out=np.ones_like(got), where=got > 0.0)


def _upper_end(X: FloatArray) -> FloatArray:
    percentile = np.percentile(X, RESCALE_PERCENTILE, axis=0)
    return np.where(percentile == 0.0, X.max(axis=0), percentile)


def _disparity(A: FloatArray, B: FloatArray) -> float:
    """Procrustes disparity of two clouds with matching points; zero if one is a single point."""
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    size = float(np.linalg.norm(A) * np.linalg.norm(B))
    if size == 0.0:
        return 0.0
    return 1.0 - (float(svdvals(A.T @ B).sum()) / size) ** 2
