"""The neighborhood graph of cells, in place of ``scanpy.pp.neighbors``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from otgraph._text import listed
from otgraph._validation import check_choice
from otgraph.exceptions import argument_error
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.singlecell._adata import target
from otgraph.singlecell._representation import representation
from otgraph.singlecell._slots import Keys, write_slots

if TYPE_CHECKING:
    from otgraph.graphs import Graph

__all__ = ["neighbors"]

METHODS = tuple(CONSTRUCTIONS)


def neighbors(
    adata: Any,
    *,
    eps: float | None = None,
    mean_degree: float | None = None,
    n_pcs: int | None = None,
    use_rep: str | None = None,
    method: str = "quadratic",
    key_added: str | None = None,
    copy: bool = False,
    **keywords: Any,
) -> Any:
    """Graph of the cells, in the place where scanpy's tools look for one.

    Replace ``sc.pp.neighbors(adata)`` by this line; ``sc.tl.umap``, ``leiden``, ``diffmap``,
    ``dpt``, ``paga`` and ``draw_graph`` follow unchanged.

    Parameters
    ----------
    adata
        Annotated data, normalized as for scanpy.
    eps
        Regularization; larger values spread the mass over more neighbors.
    mean_degree
        Wanted mean number of neighbors; cells get more or fewer according to the density around
        them. 15 by default, if `eps` is not given either.
    n_pcs, use_rep
        What describes a cell, chosen as scanpy does: ``adata.obsm[use_rep]``, or ``adata.X`` for
        ``use_rep="X"``; without `use_rep`, ``adata.X`` for up to 50 genes and otherwise
        ``adata.obsm["X_pca"]``, computed by ``sc.pp.pca`` if it is not there. `n_pcs` limits the
        columns.
    method
        ``"quadratic"``: the quadratic optimal transport graph. For comparison ``"entropic"``,
        ``"knn"``, ``"gaussian"``, ``"magic"``.
    key_added
        Name in ``adata.uns`` and prefix in ``adata.obsp``. None is scanpy's default place; with
        a name, scanpy's functions want ``neighbors_key``. What was there is replaced.
    copy
        Return a copy instead of writing to `adata`; of an object on disk, a copy in memory.
    **keywords
        Of the function that builds the graph, such as ``metric``, ``search``, ``n_jobs``,
        ``random_state``, ``progress``: see :func:`otgraph.quadratic_ot_graph`,
        :func:`otgraph.entropic_ot_graph`, :func:`otgraph.knn_gaussian_graph` (``n_neighbors``),
        :func:`otgraph.gaussian_graph`, :func:`otgraph.magic_graph` (``n_neighbors``).

    Returns
    -------
    None, or the copy. For what is written see :func:`otgraph.singlecell.write_slots`.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> adata = anndata.AnnData(otgraph.datasets.noisy_spiral(n=200).X)
    >>> ogs.pp.neighbors(adata, mean_degree=10, use_rep="X")
    >>> adata.uns["neighbors"]["params"]["status"]
    'exact'
    """
    check_choice(method, "method", METHODS)
    Keys.of(key_added)  # a bad name is refused before the graph is built
    adata = target(adata, copy=copy)
    chosen = representation(adata, use_rep, n_pcs)
    graph = build_graph(chosen.points, method, eps=eps, mean_degree=mean_degree, **keywords)
    metric = keywords.get("metric")
    write_slots(
        adata,
        graph,
        key_added,
        use_rep=chosen.use_rep,
        n_pcs=chosen.n_pcs,
        metric=metric if callable(metric) else None,
    )
    return adata if copy else None


def build_graph(points: Any, method: str, **keywords: Any) -> Graph:
    """Graph by the name of its construction; keywords that are None count as not given."""
    build = CONSTRUCTIONS[check_choice(method, "method", METHODS)].build
    keywords = {name: value for name, value in keywords.items() if value is not None}
    known = [name for name in inspect.signature(build).parameters if name != "X"]
    unknown = [name for name in keywords if name not in known]
    if unknown:
        hint = ""
        if unknown[0] == "n_neighbors":
            hint = " Degrees differ from cell to cell here: pass `mean_degree`, or `n_neighbors` "
            hint += "for a kernel on nearest neighbors (method='knn' or 'magic')."
        takes = listed(map(repr, known), len(known))
        msg = f"`{unknown[0]}` is no keyword of method={method!r}; it takes {takes}.{hint}"
        raise argument_error(TypeError, unknown[0], msg)
    if keywords.get("metric") == "precomputed":
        msg = "`metric` must measure cells, got 'precomputed'; use otgraph.quadratic_ot_graph and "
        msg += "otgraph.singlecell.write_slots for costs of your own."
        raise argument_error(ValueError, "metric", msg)
    return build(points, **keywords)
