"""Methods on the graph of cells: coordinates, clusters, labels, denoised genes.

Every function takes the graph of :func:`otgraph.singlecell.pp.neighbors`, with its exact weights,
or the graph of ``scanpy.pp.neighbors``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph import methods
from otgraph._optional import require
from otgraph.exceptions import argument_error
from otgraph.singlecell._adata import check_key, target
from otgraph.singlecell._advice import REMEDY, advised
from otgraph.singlecell._genes import check_layer_name, gene_columns, matrix_of
from otgraph.singlecell._labels import CellLabels
from otgraph.singlecell._logging import logged
from otgraph.singlecell._representation import representation
from otgraph.singlecell._slots import read_graph
from otgraph.singlecell._transfer import transfer
from otgraph.singlecell.pp import build_graph

if TYPE_CHECKING:
    from anndata import AnnData

    from otgraph.graphs import Graph

__all__ = ["cluster", "denoise", "eigenmaps", "spread_labels", "transfer"]


def eigenmaps(
    adata: AnnData,
    n_components: int = 10,
    *,
    neighbors_key: str | None = None,
    key_added: str = "X_eigenmaps",
    copy: bool = False,
    **keywords: Any,
) -> AnnData | None:
    """Coordinates of the cells from the slowest modes of the random walk on their graph.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph.
    n_components
        Number of coordinates; the constant eigenvector does not count.
    neighbors_key
        The ``key_added`` of ``pp.neighbors``.
    key_added
        Name of the coordinates. ``sc.pl.embedding(adata, key_added)`` draws them.
    copy
        Return a copy instead of writing to `adata`.
    **keywords
        ``tol``, ``max_restarts``: see :func:`otgraph.eigenmaps`.

    Returns
    -------
    None, or the copy. Written are

    ``adata.obsm[key_added]``
        coordinates, one row per cell;
    ``adata.uns[key_added]``
        ``eigenvalues`` of the random walk, and ``params``.
    """
    check_key(key_added)
    adata = target(adata, copy=copy)
    graph = read_graph(adata, neighbors_key, points=False)
    with logged("computing eigenmaps", f"`.obsm[{key_added!r}]`, coordinates"), advised(REMEDY):
        embedding = methods.eigenmaps(graph, n_components, **keywords)
    adata.obsm[key_added] = embedding.coordinates
    adata.uns[key_added] = {
        "eigenvalues": embedding.eigenvalues,
        "params": {"neighbors_key": neighbors_key or "neighbors", **keywords},
    }
    return adata if copy else None


def cluster(
    adata: AnnData,
    n_clusters: int | None = None,
    *,
    neighbors_key: str | None = None,
    key_added: str = "cluster",
    copy: bool = False,
    **keywords: Any,
) -> AnnData | None:
    """Spectral clustering of the cells.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph.
    n_clusters
        Number of clusters; None chooses it by the gap of the eigenvalues.
    neighbors_key
        The ``key_added`` of ``pp.neighbors``.
    key_added
        Name of the result.
    copy
        Return a copy instead of writing to `adata`.
    **keywords
        ``max_clusters``, ``tol``, ``max_restarts``, ``random_state``: see :func:`otgraph.cluster`.

    Returns
    -------
    None, or the copy. Written are

    ``adata.obs[key_added]``
        clusters ``"0"``, ``"1"``, ... by falling size, a category; missing for cells that no edge
        connects to a cluster;
    ``adata.uns[key_added]``
        ``eigenvalues`` of the random walk, ``n_clusters``, and ``params``.
    """
    check_key(key_added)
    adata = target(adata, copy=copy)
    graph = read_graph(adata, neighbors_key, points=False)
    with logged("running spectral clustering", f"`.obs[{key_added!r}]`, clusters"), advised(REMEDY):
        found = methods.cluster(graph, n_clusters, **keywords)
    names = [str(number) for number in range(found.n_clusters)]
    adata.obs[key_added] = require("pandas", "singlecell").Categorical.from_codes(
        found.labels, names
    )
    adata.uns[key_added] = {
        "eigenvalues": found.eigenvalues,
        "n_clusters": found.n_clusters,
        "params": {"neighbors_key": neighbors_key or "neighbors", **keywords},
    }
    return adata if copy else None


def spread_labels(
    adata: AnnData,
    obs_key: str,
    *,
    mu: float = 1.0,
    unknown: Any = (),
    neighbors_key: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
    **keywords: Any,
) -> AnnData | None:
    """Labels of all cells from those that have one.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph.
    obs_key
        Column of ``adata.obs`` with the labels: categories, strings, whole numbers or booleans.
        Missing values (NaN, None) are unknown labels.
    mu
        Weight of the known labels; see :func:`otgraph.spread_labels`.
    unknown
        Further labels that mean "not known", such as ``"Unknown"``; one or several.
    neighbors_key
        The ``key_added`` of ``pp.neighbors``.
    key_added
        Name of the result, ``f"{obs_key}_spread"`` by default.
    copy
        Return a copy instead of writing to `adata`.
    **keywords
        ``tol``, ``max_iter``: see :func:`otgraph.spread_labels`.

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
    """
    key = f"{obs_key}_spread" if key_added is None else key_added
    check_key(key)
    if key == obs_key:
        msg = f"`key_added` must differ from `obs_key`, got {key!r} for both."
        raise argument_error(ValueError, "key_added", msg)
    adata = target(adata, copy=copy)
    labels = CellLabels.of(adata, obs_key, unknown)
    graph = read_graph(adata, neighbors_key, points=False)
    with logged(f"spreading labels of {obs_key!r}", f"`.obs[{key!r}]`, labels"), advised(REMEDY):
        spread = methods.spread_labels(graph, labels.codes, mu, **keywords)
    codes = np.where(spread.unreachable, -1, spread.labels)
    adata.obs[key] = labels.decoded(codes)
    adata.obs[f"{key}_probability"] = spread.probabilities.max(axis=1)
    adata.obs[f"{key}_unreachable"] = spread.unreachable
    adata.obsm[key] = spread.probabilities
    adata.uns[key] = {
        "classes": labels.names,
        "params": {
            "obs_key": obs_key,
            "mu": float(mu),
            "neighbors_key": neighbors_key or "neighbors",
            **keywords,
        },
    }
    if labels.colors is not None:
        adata.uns[f"{key}_colors"] = labels.colors
    return adata if copy else None


def denoise(
    adata: AnnData,
    *,
    t: int | str = 3,
    genes: Any = None,
    layer: str | None = None,
    layer_added: str = "denoised",
    method: str | None = None,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    rescale: bool = False,
    copy: bool = False,
    **keywords: Any,
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
    method
        Build another graph for this call, which is not stored: ``"magic"`` is the kernel of
        MAGIC, the others are those of ``pp.neighbors``.
    neighbors_key
        The ``key_added`` of ``pp.neighbors``. Not together with `method`.
    use_rep, n_pcs
        Representation for the graph of `method`; see ``pp.neighbors``.
    rescale
        Restore the 99th percentile of each gene; see :func:`otgraph.denoise`.
    copy
        Return a copy instead of writing to `adata`.
    **keywords
        Keywords of the graph of `method`, such as ``n_neighbors`` for MAGIC.

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
    """
    adata = target(adata, copy=copy)
    X = matrix_of(adata, layer)
    check_layer_name(adata, layer_added, layer)
    columns = gene_columns(adata, genes)
    graph = _graph_for(adata, method, neighbors_key, use_rep, n_pcs, keywords)
    if t == "auto":
        t = methods.diffusion_time(graph, X, columns=columns)
    # float64 only if the expression is float64: the result is the largest array in `adata`.
    dtype = np.float64 if X.dtype == np.float64 else np.float32
    count = adata.n_vars if columns is None else len(columns)
    out = np.empty((adata.n_obs, count), dtype=dtype, order="C" if columns is None else "F")
    with logged(f"denoising {count} genes", f"`.layers[{layer_added!r}]`, denoised expression"):
        methods.denoise(graph, X, t, columns=columns, rescale=rescale, out=out)
    mask = np.ones(adata.n_vars, dtype=bool)
    if columns is not None:
        out = _columns_of_sparse(out, columns, adata.n_vars)
        mask = np.isin(np.arange(adata.n_vars), columns)
    adata.layers[layer_added] = out
    adata.var[layer_added] = mask
    adata.uns[layer_added] = {
        "params": {
            "t": int(t),
            "layer": layer or "X",
            "rescale": bool(rescale),
            "neighbors_key": (neighbors_key or "neighbors") if method is None else "none",
            "method": str(graph.params["method"]),
        }
    }
    return adata if copy else None


def _graph_for(
    adata: AnnData,
    method: str | None,
    neighbors_key: str | None,
    use_rep: str | None,
    n_pcs: int | None,
    keywords: dict[str, Any],
) -> Graph:
    if method is None:
        if use_rep is not None or n_pcs is not None or keywords:
            name = next(iter(keywords), "use_rep" if use_rep is not None else "n_pcs")
            msg = f"`{name}` is for building a graph; pass `method` too, such as 'magic'."
            raise argument_error(TypeError, name, msg)
        return read_graph(adata, neighbors_key, points=False)
    if neighbors_key is not None:
        msg = f"Pass one of `method` and `neighbors_key`, got {method!r} and {neighbors_key!r}."
        raise TypeError(msg)
    return build_graph(representation(adata, use_rep, n_pcs).points, method, **keywords)


def _columns_of_sparse(values: Any, columns: Any, n_vars: int) -> Any:
    """A sparse matrix that is empty except for the given dense columns."""
    n = len(values)
    order = np.argsort(columns)
    counts = np.zeros(n_vars, dtype=np.int64)
    counts[columns] = n
    data = values[:, order].ravel(order="F")
    indices = np.tile(np.arange(n, dtype=np.int32), len(columns))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sp.csc_matrix((data, indices, indptr), shape=(n, n_vars))
