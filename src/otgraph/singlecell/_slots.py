"""Where a graph is stored in AnnData; `write_slots` lists the places.

umap, leiden, diffmap, dpt and draw_graph read the connectivities, paga and scvelo the distances.
This package reads its own slots: with them, and with the representation that ``params`` names, the
whole graph is read back, and new cells can be added to it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_csr
from otgraph.costs.metrics import is_metric_name
from otgraph.exceptions import StaleGraphWarning, argument_error, invalid
from otgraph.graphs import Graph, MultiscaleGraph, TransportGraph
from otgraph.graphs._canonical import plain_params, row_sums
from otgraph.graphs._records import certificate_text, certificates_of_text
from otgraph.graphs.base import wanted_sums
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.graphs.mean import mean_certificate
from otgraph.singlecell._adata import check_adata, check_key, check_writable, keys_of
from otgraph.singlecell._matrices import connectivities, distances
from otgraph.singlecell._representation import representation

if TYPE_CHECKING:
    from collections.abc import Callable

    from anndata import AnnData

    from otgraph.graphs._canonical import Param
    from otgraph.typing import FloatArray, Keywords, Points, SparseMatrix

    Floors = SparseMatrix | tuple[SparseMatrix | None, ...] | None

DEFAULT_KEY = "neighbors"
# Fields of the certificate that are also in `params`, where users of scanpy look.
OF_CERTIFICATE = (
    "status", "marginal_error", "duality_gap", "missing_pairs", "missing_pairs_bound",
    "missing_share", "n_floors", "floor_share",
)  # fmt: skip


class Keys(NamedTuple):
    """Names under which one graph is stored."""

    uns: str
    connectivities: str
    distances: str
    weights: str
    potentials: str
    floors: str

    @classmethod
    def of(cls, key_added: str | None) -> Keys:
        """As scanpy names them; its readers expect no prefix for ``"neighbors"``."""
        if key_added == "" or not isinstance(key_added, str | None):
            raise invalid("key_added", f"must be a name or None, got {key_added!r}.", TypeError)
        if key_added is None or key_added == DEFAULT_KEY:
            return cls(DEFAULT_KEY, *cls._fields[1:])
        return cls(key_added, *(f"{key_added}_{kind}" for kind in cls._fields[1:]))

    def described(self) -> list[str]:
        """What is written where, in the words of scanpy's log."""
        return [
            f"`.uns[{self.uns!r}]`, parameters and what was proved",
            f"`.obsp[{self.connectivities!r}]`, weighted adjacency matrix",
            f"`.obsp[{self.distances!r}]`, distances along the edges",
            f"`.obsp[{self.weights!r}]`, the exact weights",
        ]


def write_slots(
    adata: AnnData,
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
        ``n_neighbors`` is the mean number of neighbors, rounded; ``smallest_degree``,
        ``n_connected``, ``n_floors`` and ``floor_share`` tell whether the graph holds together,
        and how many minimum flows that took.
    ``obsm["potentials"]``, ``obsp["floors"]``
        Potentials and masses of an optimal transport graph, and its minimum flows if it has any;
        those of a mean of plans are in ``obsm["floors"]``, side by side. With them
        :func:`read_graph` returns the graph with its certificate.

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
    use_rep
        Representation that the graph was built on; recorded in ``params``.
    n_pcs
        Number of its columns that were used; recorded in ``params``.
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
    check_writable(adata)
    keys = Keys.of(key_added)
    check_key(keys.uns)
    if graph.n != adata.n_obs:
        raise invalid("graph", f"has {graph.n} points, but `adata` has {adata.n_obs} cells.")
    params = _params(graph, use_rep, n_pcs)
    # Everything that can fail comes first, so `adata` is changed completely or not at all.
    slots = {
        keys.weights: graph.weights.copy(),
        keys.connectivities: connectivities(graph.weights),
        keys.distances: distances(graph, metric),
    }
    _delete(adata, keys)
    record: dict[str, object] = {
        "connectivities_key": keys.connectivities,
        "distances_key": keys.distances,
        "weights_key": keys.weights,
        "params": params,
    }
    if isinstance(graph, TransportGraph | MultiscaleGraph):
        columns = [graph.potentials, graph.mass]
        if graph.copies is not None:
            columns.append(graph.copies.astype(np.float64))
            record["has_copies"] = True
        adata.obsm[keys.potentials] = np.column_stack(columns)
        record |= {
            "potentials_key": keys.potentials,
            "certificate": certificate_text(graph.certificate),
        }
        floors = _stacked(graph.floors)
        if floors is not None:
            # Those of several plans side by side, which are not one number per pair.
            (slots if floors.shape[0] == floors.shape[1] else adata.obsm)[keys.floors] = floors
            record["floors_key"] = keys.floors
    for name, matrix in slots.items():
        adata.obsp[name] = matrix
    adata.uns[keys.uns] = record


def read_graph(adata: AnnData, neighbors_key: str | None = None, *, points: bool = True) -> Graph:
    """The graph under a key, written by this package or by scanpy.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph, by this package or by scanpy.
    neighbors_key
        The name that was passed as ``key_added``; None means the default.
    points
        Whether the graph gets its points, which only ``extend``, ``distances`` and ``to_knn``
        need. They may be large, or on disk.

    Returns
    -------
    Graph
        The graph that this package wrote, with its points if ``adata`` still holds them, its
        potentials and its certificate. Otherwise scanpy's connectivities.

    Warns
    -----
    StaleGraphWarning
        If cells were dropped since the graph was built. What is left of it has no certificate,
        and ``params["status"]`` is ``"stale"``.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> adata = anndata.AnnData(otgraph.datasets.noisy_spiral(n=200).X)
    >>> ogs.pp.neighbors(adata, mean_degree=10, use_rep="X")
    >>> ogs.read_graph(adata).certificate.status == "exact"
    True
    """
    check_adata(adata)
    key = Keys.of(neighbors_key).uns
    if key not in adata.uns:
        graphs = [
            k for k, v in adata.uns.items() if hasattr(v, "keys") and "connectivities_key" in v
        ]
        msg = (
            f"has no neighborhood graph {key!r}; it has {keys_of(graphs)}. Run "
            "`otgraph.singlecell.pp.neighbors` first."
        )
        raise invalid("adata", msg, KeyError)
    record = adata.uns[key]
    name = record.get("weights_key") or record.get("connectivities_key", "connectivities")
    if name not in adata.obsp:
        msg = f"`adata.uns[{key!r}]` names {name!r}, but `adata.obsp` has {keys_of(adata.obsp)}."
        raise argument_error(KeyError, "adata", msg)
    weights = check_csr(adata.obsp[name], name=f"adata.obsp[{name!r}]")
    params = plain_params({k: v for k, v in record.get("params", {}).items() if np.isscalar(v)})
    if "weights_key" not in record:  # scanpy's graph
        return Graph.from_weights(weights, params=params or None)
    params = _as_built(params)
    potentials = adata.obsm.get(record.get("potentials_key"))
    if _is_stale(adata, weights, params, potentials, bool(record.get("has_copies"))):
        warnings.warn(_stale_message(adata, key, weights, params), StaleGraphWarning, stacklevel=3)
        return Graph.from_weights(weights, params=params | {"status": "stale"})
    found = _points(adata, params) if points else None
    graph = Graph.from_weights(weights, params=params, points=found)
    if potentials is None or "certificate" not in record:
        return graph
    return _with_plans(adata, record, graph, np.array(potentials, dtype=np.float64))


def _with_plans(adata: AnnData, record: Keywords, graph: Graph, columns: FloatArray) -> Graph:
    """The graph with its potentials and what was proved."""
    copies = None
    if record.get("has_copies"):
        columns, copies = columns[:, :-1], columns[:, -1].astype(np.int64)
    certificates, shares = certificates_of_text(str(record["certificate"]))
    parts: Keywords = {
        "weights": graph.weights,
        "params": graph.params,
        "points": graph.points,
        "mass": columns[:, -1].copy(),
        "copies": copies,
    }
    key = record.get("floors_key")
    if shares is None:
        (certificate,) = certificates
        return TransportGraph(
            certificate=certificate, potentials=columns[:, 0].copy(), floors=adata.obsp.get(key),
            **parts,
        )  # fmt: skip
    return MultiscaleGraph(
        certificate=mean_certificate(certificates, shares, graph.weights, parts["mass"]),
        potentials=columns[:, :-1].copy(),
        floors=_unstacked(adata.obsm.get(key), len(shares)),
        **parts,
    )


def _stacked(floors: Floors) -> SparseMatrix | None:
    """Minimum flows as one matrix; those of several plans side by side."""
    if not isinstance(floors, tuple):
        return None if floors is None else floors.copy()
    some = next((each for each in floors if each is not None), None)
    if some is None:
        return None
    empty = sp.csr_matrix(some.shape)
    return sp.hstack([empty if each is None else each for each in floors], format="csr")


def _unstacked(stacked: SparseMatrix | None, count: int) -> tuple[SparseMatrix | None, ...]:
    if stacked is None:
        return (None,) * count
    n, csc = stacked.shape[0], sp.csc_matrix(stacked)
    parts = [sp.csr_matrix(csc[:, k * n : (k + 1) * n]) for k in range(count)]
    return tuple(part if part.nnz else None for part in parts)


# Row sums may be off by this factor times the recorded error of the plan, and by rounding.
STALE_FACTOR = 2.0
STALE_ROUNDING = 1e-9


def _is_stale(
    adata: AnnData,
    weights: SparseMatrix,
    params: dict[str, Param],
    potentials: FloatArray | None,
    has_copies: bool,
) -> bool:
    """Whether cells are missing: the number differs, or rows have lost some of their mass."""
    if params.get("n_cells", adata.n_obs) != adata.n_obs:
        return True
    if potentials is None:
        return False
    mass = np.asarray(potentials[:, -2 if has_copies else -1])
    wanted = wanted_sums(mass, np.asarray(potentials[:, 0]), params)
    allowed = STALE_FACTOR * float(params.get("marginal_error") or 0.0) + STALE_ROUNDING
    return bool(np.any(np.abs(row_sums(weights) - wanted) > allowed * mass))


def _stale_message(
    adata: AnnData, key: str, weights: SparseMatrix, params: dict[str, Param]
) -> str:
    lonely = int(np.count_nonzero(np.diff(weights.indptr) == 0))
    return (
        f"The graph in `adata.uns[{key!r}]` was built on {params.get('n_cells', 'other')} cells, "
        f"and `adata` has {adata.n_obs}: edges to the others are gone, {lonely} cell(s) have none "
        "left, and nothing is proved about the rest. Run `otgraph.singlecell.pp.neighbors` again."
    )


def _as_built(params: dict[str, Param]) -> dict[str, Param]:
    """Parameters as the graph had them before they were written for scanpy; see `_params`."""
    construction = CONSTRUCTIONS.get(str(params.get("method")))
    names = construction.options.names() if construction else ()
    params = {name: None for name in ("eps", *names)} | params
    for name in ("metric", "n_neighbors"):
        params[name] = params.pop(f"{name}_given", params.get(name))
    return params


def _points(adata: AnnData, params: dict[str, Param]) -> Points | None:
    """The representation that the graph was built on, if it is still there."""
    use_rep, n_pcs = params.get("use_rep"), params.get("n_pcs")
    if use_rep is None or (use_rep != "X" and use_rep not in adata.obsm):
        return None
    try:
        return representation(adata, str(use_rep), n_pcs).points  # type: ignore[arg-type]
    except ValueError:  # other columns, or values that are not finite
        return None


def _delete(adata: AnnData, keys: Keys) -> None:
    """Remove the parts of an older graph that the new one may not have."""
    old = adata.uns.get(keys.uns)
    if not hasattr(old, "get"):
        return
    places = ((adata.obsm, "potentials"), (adata.obsm, "floors"), (adata.obsp, "floors"))
    for slots, kind in places:
        name = f"{kind}_key"
        if old.get(name) in list(slots):
            del slots[old[name]]


def _params(graph: Graph, use_rep: str | None, n_pcs: int | None) -> dict[str, Param]:
    """A flat dictionary without None, which every version of anndata can write."""
    params: dict[str, Param] = {"method": "weights", "metric": "euclidean", **graph.params}
    if not is_metric_name(str(params["metric"])) or params["metric"] == "precomputed":
        # scanpy passes this name to scikit-learn, which does not know it.
        params |= {"metric": "euclidean", "metric_given": str(params["metric"])}
    if "n_neighbors" in params:  # of a kernel on nearest neighbors
        params["n_neighbors_given"] = params["n_neighbors"]
    params |= {
        "n_neighbors": max(1, round(graph.mean_degree)),
        "n_connected": graph.n_connected,
        "smallest_degree": int(graph.degrees.min()),
        "n_cells": graph.n,
        "use_rep": use_rep,
        "n_pcs": n_pcs,
        "distances": "pattern" if graph.points is None else "metric",
    }
    if isinstance(graph, TransportGraph | MultiscaleGraph):
        proof = graph.certificate
        params |= {name: getattr(proof, name) for name in OF_CERTIFICATE}
    params.setdefault("random_state", 0)
    return {key: value for key, value in plain_params(params).items() if value is not None}
