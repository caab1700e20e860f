"""Where a graph is stored in AnnData: all keys and their contents.

Other packages read three places, for the default key and for any other one:

    uns["neighbors"]        uns[key]                   names of the matrices, and parameters
    obsp["connectivities"]  obsp[key_connectivities]   umap, leiden, diffmap, dpt, draw_graph
    obsp["distances"]       obsp[key_distances]        paga, scvelo

This package adds one, which its own functions read:

    obsp["weights"]         obsp[key_weights]          the graph itself, unchanged
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from otgraph._validation import check_csr
from otgraph.costs.metrics import is_metric_name
from otgraph.exceptions import argument_error
from otgraph.graphs import Graph, TransportGraph
from otgraph.graphs._canonical import plain_params
from otgraph.singlecell._adata import check_adata, check_key, check_writable, keys_of
from otgraph.singlecell._matrices import connectivities, distances

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_KEY = "neighbors"


class Keys(NamedTuple):
    """Names under which one graph is stored."""

    uns: str
    connectivities: str
    distances: str
    weights: str

    @classmethod
    def of(cls, key_added: str | None) -> Keys:
        """As scanpy names them; its readers expect no prefix for ``"neighbors"``."""
        if key_added == "" or not isinstance(key_added, str | None):
            msg = f"`key_added` must be a name or None, got {key_added!r}."
            raise argument_error(TypeError, "key_added", msg)
        if key_added is None or key_added == DEFAULT_KEY:
            return cls(DEFAULT_KEY, "connectivities", "distances", "weights")
        names = (f"{key_added}_{kind}" for kind in ("connectivities", "distances", "weights"))
        return cls(key_added, *names)


def write_slots(
    adata: Any,
    graph: Graph,
    key_added: str | None = None,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    metric: Callable[..., float] | None = None,
) -> None:
    """Store a graph where scanpy and related packages expect it.

    ``obsp["weights"]``
        ``graph.weights``, unchanged: for quadratic OT the exact plan, whose rows sum to one.
    ``obsp["connectivities"]``
        The same edges for scanpy's tools: without self-loops, divided by the heaviest edge of
        a typical cell (the median over the cells) and cut off at one. ``sc.tl.umap`` compares
        every edge with the heaviest of all. Without the cut, two duplicates that share all their
        mass would make all other edges negligible.
    ``obsp["distances"]``
        Distances along the edges, in the metric of the graph. Duplicates have the smallest
        positive distance, because a sparse matrix may lose its zeros. Ones, if the graph has no
        points.
    ``uns["neighbors"]``
        Names of these matrices, and ``params``, which every file format can hold.
        ``n_neighbors`` is the mean number of neighbors, rounded.

    A graph under the same key is replaced.

    Parameters
    ----------
    adata
        Annotated data whose cells are the points of the graph.
    graph
        Any graph, built by this package or by ``Graph.from_weights``.
    key_added
        Prefix of the names above, and the name in ``uns``; scanpy's functions then need
        ``neighbors_key``. None means scanpy's default names.
    use_rep, n_pcs
        Representation that the graph was built on; recorded in ``params``.
    metric
        The metric function, if the graph was built with one.

    Examples
    --------
    >>> import anndata, otgraph
    >>> from otgraph.singlecell import write_slots
    >>> spiral = otgraph.datasets.noisy_spiral(n=200)
    >>> adata = anndata.AnnData(spiral.X)
    >>> write_slots(adata, otgraph.quadratic_ot_graph(spiral.X, eps=1.0), key_added="ot")
    >>> sorted(adata.obsp)
    ['ot_connectivities', 'ot_distances', 'ot_weights']
    """
    check_adata(adata)
    check_writable(adata)
    keys = Keys.of(key_added)
    check_key(keys.uns)
    if graph.n != adata.n_obs:
        msg = f"`graph` has {graph.n} points, but `adata` has {adata.n_obs} cells."
        raise argument_error(ValueError, "graph", msg)
    params = _params(graph, use_rep, n_pcs)
    # Everything that can fail comes first, so `adata` is changed completely or not at all.
    slots = {
        keys.weights: graph.weights.copy(),
        keys.connectivities: connectivities(graph.weights),
        keys.distances: distances(graph, metric),
    }
    for name, matrix in slots.items():
        adata.obsp[name] = matrix
    adata.uns[keys.uns] = {
        "connectivities_key": keys.connectivities,
        "distances_key": keys.distances,
        "weights_key": keys.weights,
        "params": params,
    }


def read_graph(adata: Any, neighbors_key: str | None = None) -> Graph:
    """The graph under a key, written by this package or by scanpy.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph, by this package or by scanpy.
    neighbors_key
        The name that was passed as ``key_added``; None means the default.

    Returns
    -------
    Graph
        With the exact weights, if this package wrote them, else scanpy's connectivities. It has
        no points, potentials or certificate.
    """
    check_adata(adata)
    key = Keys.of(neighbors_key).uns
    if key not in adata.uns:
        graphs = [k for k, v in adata.uns.items() if hasattr(v, "keys") and _is_record(v)]
        msg = (
            f"`adata` has no neighborhood graph {key!r}; it has {keys_of(graphs)}. "
            "Run `otgraph.singlecell.pp.neighbors` first."
        )
        raise argument_error(KeyError, "adata", msg)
    record = adata.uns[key]
    name = record.get("weights_key") or record.get("connectivities_key", "connectivities")
    if name not in adata.obsp:
        msg = f"`adata.uns[{key!r}]` names {name!r}, but `adata.obsp` has {keys_of(adata.obsp)}."
        raise argument_error(KeyError, "adata", msg)
    weights = check_csr(adata.obsp[name], name=f"adata.obsp[{name!r}]")
    params = {k: v for k, v in record.get("params", {}).items() if np.isscalar(v)}
    return Graph.from_weights(weights, params=plain_params(params) or None)


def _is_record(value: Any) -> bool:
    return "connectivities_key" in value


def _params(graph: Graph, use_rep: str | None, n_pcs: int | None) -> dict[str, Any]:
    """A flat dictionary without None, which every version of anndata can write."""
    params: dict[str, Any] = {"method": "weights", "metric": "euclidean", **graph.params}
    if not is_metric_name(str(params["metric"])) or params["metric"] == "precomputed":
        # scanpy passes this name to scikit-learn, which does not know it.
        params |= {"metric": "euclidean", "metric_function": str(params["metric"])}
    params |= {
        "n_neighbors": max(1, round(graph.mean_degree)),
        "n_connected": graph.n_connected,
        "use_rep": use_rep,
        "n_pcs": n_pcs,
        "distances": "pattern" if graph.points is None else "metric",
    }
    if isinstance(graph, TransportGraph):
        proof = graph.certificate
        params |= {
            "status": proof.status.value,
            "marginal_error": proof.marginal_error,
            "duality_gap": proof.duality_gap,
            "missing_pairs": proof.missing_pairs,
            "missing_pairs_bound": proof.missing_pairs_bound,
            "missing_share": proof.missing_share,
        }
    params.setdefault("random_state", 0)
    return {key: value for key, value in plain_params(params).items() if value is not None}
