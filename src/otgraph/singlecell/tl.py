"""Methods on the graph of cells: coordinates, clusters, labels, denoised genes.

Every function takes the graph of :func:`otgraph.singlecell.pp.neighbors`, with its exact weights,
or the graph of ``scanpy.pp.neighbors``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph import methods
from otgraph._optional import require
from otgraph.exceptions import invalid
from otgraph.graphs.constructions import ALL_OPTIONS
from otgraph.graphs.geometry import KEPT
from otgraph.graphs.keywords import shows
from otgraph.singlecell._adata import check_key, target
from otgraph.singlecell._genes import check_layer_name, gene_columns, matrix_of
from otgraph.singlecell._labels import CellLabels
from otgraph.singlecell._messages import REMEDY, advised, logged
from otgraph.singlecell._representation import representation
from otgraph.singlecell._slots import DEFAULT_KEY, read_graph
from otgraph.singlecell._transfer import transfer
from otgraph.singlecell.pp import build_graph

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal, Unpack

    from anndata import AnnData
    from numpy.typing import ArrayLike, NDArray

    from otgraph.graphs import Graph
    from otgraph.graphs.options import AnyKeywords, Eps
    from otgraph.singlecell._labels import Label
    from otgraph.typing import LongArray, RandomState, SparseMatrix

__all__ = ["cluster", "denoise", "eigenmaps", "metacells", "spread_labels", "transfer"]


def __dir__() -> list[str]:
    return __all__


def eigenmaps(
    adata: AnnData,
    n_components: int = 10,
    *,
    density: str = KEPT,
    dim: float | None = None,
    tol: float = 1e-10,
    max_restarts: int = 500,
    neighbors_key: str | None = None,
    key_added: str = "X_eigenmaps",
    copy: bool = False,
) -> AnnData | None:
    """Coordinates of the cells from the slowest modes of the random walk on their graph.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph.
    n_components
        Number of coordinates; the constant eigenvector does not count.
    density, dim
        ``density="corrected"`` divides the density of the cells out: a rare state then takes as
        much room as a frequent one. See :func:`otgraph.eigenmaps`.
    tol, max_restarts
        As in :func:`otgraph.eigenmaps`.
    neighbors_key
        The ``key_added`` of ``pp.neighbors``.
    key_added
        Name of the coordinates. ``sc.pl.embedding(adata, key_added)`` draws them.
    copy
        Return a copy instead of writing to `adata`.

    Returns
    -------
    None, or the copy. Written are

    ``adata.obsm[key_added]``
        coordinates, one row per cell;
    ``adata.uns[key_added]``
        ``eigenvalues`` of the random walk, and ``params``; with ``density="corrected"`` also
        ``laplacian_eigenvalues`` and the dimension ``dim`` that was used.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> arms = otgraph.datasets.spiral_arms(50, n_arms=3, noise=0.2)
    >>> adata = anndata.AnnData(arms.X)
    >>> ogs.pp.neighbors(adata, use_rep="X", connect=True)
    >>> ogs.tl.eigenmaps(adata, 5)
    >>> adata.obsm["X_eigenmaps"].shape
    (150, 5)
    """
    adata, graph = _opened(adata, key_added, neighbors_key, copy=copy)
    with logged("computing eigenmaps", f"`.obsm[{key_added!r}]`, coordinates"), advised(REMEDY):
        found = methods.eigenmaps(
            graph, n_components, density=density, dim=dim, tol=tol, max_restarts=max_restarts
        )
    adata.obsm[key_added] = found.coordinates
    params = _params(neighbors_key, density=density, tol=tol, max_restarts=max_restarts)
    adata.uns[key_added] = {"eigenvalues": found.eigenvalues, "params": params}
    if found.correction is not None:
        adata.uns[key_added] |= {
            "laplacian_eigenvalues": found.laplacian_eigenvalues,
            "dim": found.correction.dim,
        }
    return adata if copy else None


def cluster(
    adata: AnnData,
    n_clusters: int | None = None,
    *,
    max_clusters: int = 20,
    tol: float = 1e-8,
    max_restarts: int = 500,
    random_state: RandomState = 0,
    neighbors_key: str | None = None,
    key_added: str = "cluster",
    copy: bool = False,
) -> AnnData | None:
    """Spectral clustering of the cells.

    Parameters
    ----------
    n_clusters
        Number of clusters; None chooses it by the gap of the eigenvalues.
    max_clusters, tol, max_restarts, random_state
        As in :func:`otgraph.cluster`.
    adata, neighbors_key, key_added, copy
        As in :func:`eigenmaps`.

    Returns
    -------
    None, or the copy. Written are

    ``adata.obs[key_added]``
        clusters ``"0"``, ``"1"``, ... by falling size, a category; missing for cells that no edge
        connects to a cluster;
    ``adata.uns[key_added]``
        ``eigenvalues`` of the random walk, ``n_clusters``, and ``params``.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> arms = otgraph.datasets.spiral_arms(50, n_arms=3, noise=0.2)
    >>> adata = anndata.AnnData(arms.X)
    >>> ogs.pp.neighbors(adata, use_rep="X", connect=False)
    >>> ogs.tl.cluster(adata, 3)
    >>> list(adata.obs["cluster"].cat.categories)
    ['0', '1', '2']
    """
    adata, graph = _opened(adata, key_added, neighbors_key, copy=copy)
    with logged("running spectral clustering", f"`.obs[{key_added!r}]`, clusters"), advised(REMEDY):
        found = methods.cluster(
            graph, n_clusters, max_clusters=max_clusters, tol=tol, max_restarts=max_restarts,
            random_state=random_state,
        )  # fmt: skip
    names = [str(number) for number in range(found.n_clusters)]
    categorical = require("pandas", "singlecell").Categorical
    adata.obs[key_added] = categorical.from_codes(found.labels, names)
    adata.uns[key_added] = {
        "eigenvalues": found.eigenvalues,
        "n_clusters": found.n_clusters,
        "params": _params(
            neighbors_key, max_clusters=max_clusters, tol=tol, max_restarts=max_restarts,
            random_state=random_state,
        ),
    }  # fmt: skip
    return adata if copy else None


def metacells(
    adata: AnnData,
    n_metacells: int,
    *,
    neighbors_key: str | None = None,
    key_added: str = "metacell",
    copy: bool = False,
) -> AnnData | None:
    """Small groups of cells that are near in the graph, to sum or average their counts.

    ``sc.get.aggregate(adata, "metacell", "sum")`` gives the object with one row per group.

    Parameters
    ----------
    n_metacells
        Number of groups, as in :func:`otgraph.metacells`; a tenth of the cells, for example.
    adata, neighbors_key, key_added, copy
        As in :func:`eigenmaps`.

    Returns
    -------
    None, or the copy. Written are

    ``adata.obs[key_added]``
        group of every cell, ``"0"``, ``"1"``, ..., a category;
    ``adata.uns[key_added]``
        ``sizes`` and ``weights`` of the groups, a sparse matrix, and ``params``.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> arms = otgraph.datasets.spiral_arms(50, n_arms=3, noise=0.2)
    >>> adata = anndata.AnnData(arms.X)
    >>> ogs.pp.neighbors(adata, use_rep="X")
    >>> ogs.tl.metacells(adata, 30)
    >>> len(adata.obs["metacell"].cat.categories)
    30
    """
    adata, graph = _opened(adata, key_added, neighbors_key, copy=copy)
    with logged("joining cells to metacells", f"`.obs[{key_added!r}]`, groups"):
        found = methods.metacells(graph, n_metacells)
    names = [str(number) for number in range(found.graph.n)]
    categorical = require("pandas", "singlecell").Categorical
    adata.obs[key_added] = categorical.from_codes(found.labels, names)
    adata.uns[key_added] = {
        "sizes": found.sizes,
        "weights": found.graph.weights,
        "params": _params(neighbors_key, n_metacells=n_metacells),
    }
    return adata if copy else None


def spread_labels(
    adata: AnnData,
    obs_key: str,
    *,
    mu: float = 1.0,
    unknown: Label | Iterable[Label] = (),
    tol: float = 1e-4,
    max_iter: int = 10_000,
    neighbors_key: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Labels of all cells from those that have one.

    Parameters
    ----------
    obs_key
        Column of ``adata.obs`` with the labels: categories, strings, whole numbers or booleans.
        Missing values (NaN, None) are unknown labels.
    unknown
        Further labels that mean "not known", such as ``"Unknown"``; one or several.
    mu, tol, max_iter
        As in :func:`otgraph.spread_labels`.
    key_added
        Name of the result, ``f"{obs_key}_spread"`` by default.
    adata, neighbors_key, copy
        As in :func:`eigenmaps`.

    Returns
    -------
    None, or the copy. Written are

    ``adata.obs[key_added]``
        most probable label, a category; missing where no label reaches a cell;
    ``adata.obs[f"{key_added}_probability"]``
        its probability;
    ``adata.obs[f"{key_added}_unreachable"]``
        True where no label reaches a cell;
    ``adata.obsm[key_added]``
        probabilities of all labels, one column each;
    ``adata.uns[key_added]``
        ``classes``, the names of these columns, and ``params``.

    Colors that scanpy has chosen for `obs_key` are kept.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> arms = otgraph.datasets.spiral_arms(50, n_arms=3, noise=0.2)
    >>> adata = anndata.AnnData(arms.X)
    >>> ogs.pp.neighbors(adata, use_rep="X", connect=True)
    >>> known = otgraph.datasets.label_mask(arms.labels, 0.1)
    >>> adata.obs["arm"] = [str(label) if k else None for label, k in zip(arms.labels, known)]
    >>> ogs.tl.spread_labels(adata, "arm")
    >>> int(adata.obs["arm_spread"].isna().sum())
    0
    """
    key = f"{obs_key}_spread" if key_added is None else key_added
    if key == obs_key:
        raise invalid("key_added", f"must differ from `obs_key`, got {key!r} for both.")
    adata, graph = _opened(adata, key, neighbors_key, copy=copy)
    labels = CellLabels.of(adata, obs_key, unknown)
    with logged(f"spreading labels of {obs_key!r}", f"`.obs[{key!r}]`, labels"), advised(REMEDY):
        spread = methods.spread_labels(graph, labels.codes, mu, tol=tol, max_iter=max_iter)
    adata.obs[key] = labels.decoded(np.where(spread.unreachable, -1, spread.labels))
    adata.obs[f"{key}_probability"] = spread.probabilities.max(axis=1)
    adata.obs[f"{key}_unreachable"] = spread.unreachable
    adata.obsm[key] = spread.probabilities
    params = _params(neighbors_key, obs_key=obs_key, mu=float(mu), tol=tol, max_iter=max_iter)
    adata.uns[key] = {"classes": labels.names, "params": params}
    if labels.colors is not None:
        adata.uns[f"{key}_colors"] = labels.colors
    return adata if copy else None


@shows(ALL_OPTIONS)
def denoise(
    adata: AnnData,
    *,
    t: int | Literal["auto"] = 3,
    genes: ArrayLike | None = None,
    layer: str | None = None,
    layer_added: str = "denoised",
    rescale: bool = False,
    neighbors_key: str | None = None,
    copy: bool = False,
    method: str | None = None,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    n_neighbors: float | None = None,
    eps: Eps | None = None,
    mean_degree: float | None = None,
    mass: ArrayLike | None = None,
    u0: ArrayLike | None = None,
    progress: bool = False,
    n_jobs: int | None = -1,
    **options: Unpack[AnyKeywords],
) -> AnnData | None:
    """Gene expression smoothed by a short random walk on the graph, as a new layer.

    ``adata.X`` is not changed. Sparse counts are read some genes at a time and are never made dense
    as a whole. The result is dense, because a mean over neighbors is rarely zero.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph, on expression that makes cells comparable:
        normalized by depth, and usually the logarithm or the square root.
    t
        Steps of the walk; more steps smooth more. ``"auto"`` chooses them as MAGIC does.
    genes
        Names of genes, a mask, numbers, or the name of a boolean column of ``adata.var`` such
        as ``"highly_variable"``. All by default.
    layer
        Layer to denoise instead of ``adata.X``.
    layer_added
        Name of the result; must differ from `layer`.
    rescale
        Restore the 99th percentile of each gene; see :func:`otgraph.denoise`.
    neighbors_key, copy
        As in :func:`eigenmaps`.
    method
        Build another graph for this call, which is not stored: ``"magic"`` is the kernel of
        MAGIC, the others are those of ``pp.neighbors``. Not together with `neighbors_key`.
    use_rep, n_pcs, n_neighbors, eps, mean_degree, mass, u0, progress, n_jobs
        For the graph of `method`, as in ``pp.neighbors``, like the keywords below.
    **options

    Returns
    -------
    None, or the copy. Written are

    ``adata.layers[layer_added]``
        denoised expression. With `genes`, a sparse matrix with values in the columns of these
        genes only;
    ``adata.var[layer_added]``
        which genes these are;
    ``adata.uns[layer_added]``
        ``params``.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> arms = otgraph.datasets.spiral_arms(50, n_arms=3, noise=0.2)
    >>> adata = anndata.AnnData(arms.X)
    >>> ogs.pp.neighbors(adata, use_rep="X", connect=False)
    >>> ogs.tl.denoise(adata, t=2)
    >>> adata.layers["denoised"].shape == adata.shape
    True
    """
    adata = target(adata, copy=copy)
    X = matrix_of(adata, layer)
    check_layer_name(adata, layer_added, layer)
    columns = gene_columns(adata, genes)
    for_graph = {
        "n_neighbors": n_neighbors, "eps": eps, "mean_degree": mean_degree, "mass": mass, "u0": u0,
        "progress": progress or None, **options,
    }  # fmt: skip
    if method is None:
        for name, value in {**for_graph, "use_rep": use_rep, "n_pcs": n_pcs}.items():
            if value is not None:
                msg = "is for building a graph; pass `method` too, such as 'magic'."
                raise invalid(name, msg, TypeError)
        graph = read_graph(adata, neighbors_key, points=False)
    elif neighbors_key is not None:
        msg = f"Pass one of `method` and `neighbors_key`, got {method!r} and {neighbors_key!r}."
        raise TypeError(msg)
    else:
        points = representation(adata, use_rep, n_pcs).points
        graph = build_graph(points, method, n_jobs=n_jobs, **for_graph)
    if t == "auto":
        t = methods.diffusion_time(graph, X, columns=columns)
    # float64 only if the expression is float64: the result is the largest array in `adata`.
    dtype = np.float64 if X.dtype == np.float64 else np.float32
    count = adata.n_vars if columns is None else len(columns)
    out = np.empty((adata.n_obs, count), dtype=dtype, order="C" if columns is None else "F")
    with logged(f"denoising {count} genes", f"`.layers[{layer_added!r}]`, denoised expression"):
        methods.denoise(graph, X, t, columns=columns, rescale=rescale, out=out)
    every = np.arange(adata.n_vars)
    mask = np.isin(every, every if columns is None else columns)
    adata.layers[layer_added] = out if columns is None else _in_columns(out, mask)
    adata.var[layer_added] = mask
    params = _params("none" if method else neighbors_key, t=int(t), layer=layer or "X")
    params |= {"rescale": bool(rescale), "method": str(graph.params["method"])}
    adata.uns[layer_added] = {"params": params}
    return adata if copy else None


def _opened(
    adata: AnnData, key_added: str, neighbors_key: str | None, *, copy: bool
) -> tuple[AnnData, Graph]:
    """The object to write to, and its graph."""
    check_key(key_added)
    adata = target(adata, copy=copy)
    return adata, read_graph(adata, neighbors_key, points=False)


def _params(neighbors_key: str | None, **used: object) -> dict[str, object]:
    """What is recorded of a call: the graph, and all keywords that a file can hold."""
    plain = {name: value for name, value in used.items() if np.isscalar(value)}
    return {"neighbors_key": neighbors_key or DEFAULT_KEY, **plain}


def _in_columns(values: NDArray[np.floating], mask: NDArray[np.bool_]) -> SparseMatrix:
    """A sparse matrix that is empty except for dense columns, in their order."""
    n = len(values)
    indices: LongArray = np.tile(np.arange(n, dtype=np.int32), values.shape[1])
    indptr = np.concatenate([[0], np.cumsum(n * mask)])
    return sp.csc_matrix((values.ravel(order="F"), indices, indptr), shape=(n, len(mask)))
