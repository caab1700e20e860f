"""The neighborhood graph of cells, in place of ``scanpy.pp.neighbors``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from otgraph._text import listed
from otgraph._validation import check_choice
from otgraph.exceptions import argument_error
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.singlecell._adata import check_key, target
from otgraph.singlecell._representation import representation
from otgraph.singlecell._slots import Keys, write_slots

if TYPE_CHECKING:
    from otgraph.graphs import Graph
    from otgraph.graphs.options import Eps

__all__ = ["neighbors"]

METHODS = tuple(CONSTRUCTIONS)


def neighbors(
    adata: Any,
    *,
    eps: Eps | None = None,
    mean_degree: float | None = None,
    n_pcs: int | None = None,
    use_rep: str | None = None,
    method: str = "quadratic",
    key_added: str | None = None,
    copy: bool = False,
    **keywords: Any,
) -> Any:
    """Graph of the cells, stored where scanpy's tools expect it.

    Use it instead of ``sc.pp.neighbors(adata)``. ``sc.tl.umap``, ``leiden``, ``diffmap``, ``dpt``,
    ``paga`` and ``draw_graph`` work as before.

    Parameters
    ----------
    adata
        Annotated data, normalized as for scanpy.
    eps
        Regularization; larger values spread the mass over more neighbors. ``"auto"`` chooses the
        value whose graph predicts unseen features best (``method="quadratic"`` only).
    mean_degree
        Wanted mean number of neighbors; cells get more or fewer according to the density around
        them. 15 by default, if `eps` is not given either.
    n_pcs, use_rep
        Representation of the cells, by scanpy's rules: ``adata.obsm[use_rep]``, or ``adata.X``
        for ``use_rep="X"``. Without `use_rep`, ``adata.X`` for up to 50 genes, otherwise
        ``adata.obsm["X_pca"]``, computed by ``sc.pp.pca`` if missing. `n_pcs` limits the columns.
    method
        ``"quadratic"``: the quadratic optimal transport graph. For comparison ``"entropic"``,
        ``"knn"``, ``"gaussian"``, ``"magic"``.
    key_added
        Name in ``adata.uns`` and prefix in ``adata.obsp``. None means scanpy's default names;
        otherwise scanpy's functions need ``neighbors_key``. An existing graph is replaced.
    copy
        Return a copy instead of writing to `adata`; of an object on disk, a copy in memory.
    **keywords
        Keywords of the function that builds the graph, such as ``metric``, ``search``, ``n_jobs``,
        ``random_state``, ``progress``: see :func:`otgraph.quadratic_ot_graph`,
        :func:`otgraph.entropic_ot_graph`, :func:`otgraph.knn_gaussian_graph` (``n_neighbors``),
        :func:`otgraph.gaussian_graph`, :func:`otgraph.magic_graph` (``n_neighbors``).

    Returns
    -------
    None, or the copy. :func:`otgraph.singlecell.write_slots` lists what is written.

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
    check_key(Keys.of(key_added).uns)  # before the graph is built
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
        msg = f"`{unknown[0]}` is not a keyword of method={method!r}; it takes {takes}.{hint}"
        raise argument_error(TypeError, unknown[0], msg)
    if keywords.get("metric") == "precomputed":
        msg = "`metric='precomputed'` is not supported here; use otgraph.quadratic_ot_graph and "
        msg += "otgraph.singlecell.write_slots for costs of your own."
        raise argument_error(ValueError, "metric", msg)
    return build(points, **keywords)
