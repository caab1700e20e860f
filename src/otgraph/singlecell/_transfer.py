"""Labels, coordinates and graph rows of new cells, from a reference with a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from otgraph._labels import EncodedLabels
from otgraph._validation import check_choice
from otgraph.costs.metrics import is_metric_name
from otgraph.exceptions import argument_error, invalid
from otgraph.graphs.cross import transport_graph
from otgraph.graphs.extension import metric_cost
from otgraph.methods._graphs import transition_rows
from otgraph.singlecell._adata import check_adata, entry, keys_of, target
from otgraph.singlecell._labels import CellLabels
from otgraph.singlecell._messages import logged
from otgraph.singlecell._representation import representation
from otgraph.singlecell._slots import Keys, read_graph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from anndata import AnnData

    from otgraph.graphs import CrossGraph, Graph
    from otgraph.graphs.options import OutlierCost
    from otgraph.singlecell._labels import Label
    from otgraph.typing import FloatArray, LongArray, Points, SparseMatrix

# Largest distance between stored and recomputed components, relative to the largest of them.
# Components are stored in float32, and differences beyond rounding mean another matrix.
COMPONENTS_RTOL = 1e-3
# Distances are stored in float32, too. A few cells show whether the representation is another one.
DISTANCES_RTOL = 1e-4
CHECKED_CELLS = 20
METHODS = ("rows", "plan")


def transfer(
    adata_ref: AnnData,
    adata_new: AnnData,
    obs: str | Sequence[str] = (),
    *,
    obsm: str | Sequence[str] = (),
    method: Literal["rows", "plan"] = "rows",
    outlier_cost: OutlierCost = None,
    use_rep: str | None = None,
    unknown: Label | Iterable[Label] = (),
    neighbors_key: str | None = None,
    key_added: str = "transfer",
    copy: bool = False,
) -> AnnData | None:
    """Labels and coordinates for new cells, from a reference with a graph.

    By default every new cell gets the row that it would have in the graph of the reference, whose
    potentials stay fixed (:meth:`otgraph.Graph.extend`). Each cell is treated by itself, and like
    ``sc.tl.ingest`` this does not correct batch effects. With ``method="plan"`` a transport plan
    between all new cells and the reference takes the place of the rows
    (:func:`otgraph.transport_graph`). It ignores a shift between the two, and needs the same
    composition in both, or an `outlier_cost`. Labels and coordinates are means over a row. The
    reference does not change.

    Parameters
    ----------
    adata_ref
        Annotated data with a graph of :func:`otgraph.singlecell.pp.neighbors`.
    adata_new
        New cells, with the genes of the reference, normalized in the same way.
    obs
        One or several columns of ``adata_ref.obs`` with labels; missing values do not count.
    obsm
        One or several keys of ``adata_ref.obsm``, such as ``"X_umap"``.
    method
        ``"rows"`` or ``"plan"``. Choose the plan for another batch of the same tissue, and rows
        for cells of which some types are missing or much rarer than in the reference. The plan has
        the mean degree, the metric and the power of the reference's graph.
    outlier_cost
        For the plan: lets cells of either data set hold mass back, as in
        :func:`otgraph.transport_graph`; a number, or ``"auto"``. Cells without a counterpart then
        get no label.
    use_rep
        Representation of the new cells: ``"X"`` or a key of ``adata_new.obsm``, in the same
        coordinates as the reference. By default that of the graph. Principal components are then
        computed from the genes, with ``adata_ref.varm["PCs"]``, because components that were
        computed on the new cells alone have other axes.
    unknown, neighbors_key
        As in :func:`otgraph.singlecell.tl.spread_labels`.
    key_added
        Suffix of the labels, and name of the rows.
    copy
        Return a copy of `adata_new` instead of writing to it.

    Returns
    -------
    None, or the copy. Written to `adata_new` are

    ``obs[f"{label}_{key_added}"]``
        most probable label, a category; missing if no neighbor has one;
    ``obs[f"{label}_{key_added}_probability"]``
        its probability;
    ``obsm[name]``
        coordinates, for every name in `obsm`; not a number for cells that were dropped;
    ``obsm[f"{key_added}_weights"]``
        rows of the graph or of the plan: a sparse matrix, new cells × cells of the reference;
    ``obs[f"{key_added}_mass_kept"]``
        with `outlier_cost`, the share of its mass that a cell has in the plan;
    ``uns[key_added]``
        ``params``.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> arms = otgraph.datasets.spiral_arms(100, n_arms=3, noise=0.2)
    >>> adata = anndata.AnnData(arms.X, obs={"arm": arms.labels.astype(str)})
    >>> reference, new = adata[::2].copy(), adata[1::2].copy()
    >>> ogs.pp.neighbors(reference, use_rep="X")
    >>> ogs.tl.transfer(reference, new, "arm")
    >>> bool((new.obs["arm_transfer"].astype(str) == new.obs["arm"].astype(str)).mean() > 0.9)
    True
    """
    check_adata(adata_ref)
    check_choice(method, "method", METHODS)
    if outlier_cost is not None and method != "plan":
        msg = f"must be None unless method='plan': rows have no such cost; got {outlier_cost!r}."
        raise invalid("outlier_cost", msg)
    adata_new = target(adata_new, copy=copy)
    obs, obsm = ([each] if isinstance(each, str) else list(each) for each in (obs, obsm))
    labels = {name: CellLabels.of(adata_ref, name, unknown) for name in obs}
    coordinates = {name: _coordinates(adata_ref, name) for name in obsm}
    graph = read_graph(adata_ref, neighbors_key)
    points = _new_points(adata_ref, adata_new, graph, use_rep)
    _check_distances(adata_ref, graph, neighbors_key)
    rows_key = f"{key_added}_weights"
    with logged(f"transferring to {adata_new.n_obs} cells", f"`.obsm[{rows_key!r}]`"):
        if method == "rows":
            rows = graph.extend(points)
        else:
            plan = _plan(points, graph, outlier_cost)
            rows = plan.weights
            if outlier_cost is not None:
                adata_new.obs[f"{key_added}_mass_kept"] = plan.mass_kept.x
        P, empty = transition_rows(rows, graph.n)
        for name, known in labels.items():
            codes, probability = _most_probable(P, known)
            adata_new.obs[f"{name}_{key_added}"] = known.decoded(codes)
            adata_new.obs[f"{name}_{key_added}_probability"] = probability
            if known.colors is not None:
                adata_new.uns[f"{name}_{key_added}_colors"] = known.colors
        for name, values in coordinates.items():
            adata_new.obsm[name] = np.where(empty[:, None], np.nan, P @ values)
        adata_new.obsm[rows_key] = rows
        adata_new.uns[key_added] = {
            "params": {
                "n_reference": graph.n,
                "use_rep": use_rep or str(graph.params["use_rep"]),
                "neighbors_key": neighbors_key or "neighbors",
                "method": method,
                **({} if outlier_cost is None else {"outlier_cost": outlier_cost}),
            }
        }
    return adata_new if copy else None


def _plan(points: Points, graph: Graph, outlier_cost: OutlierCost) -> CrossGraph:
    """The transport plan from new cells to those of a graph, with its metric and mean degree."""
    assert graph.points is not None  # `_new_points` has checked it
    n, m = points.shape[0], graph.n
    keywords = {name: graph.params[name] for name in ("metric", "power") if name in graph.params}
    degree = min(graph.mean_degree, 2.0 * n * m / (n + m))
    return transport_graph(
        points, graph.points, mean_degree=degree, outlier_cost=outlier_cost,
        **keywords,  # type: ignore[arg-type]
    )  # fmt: skip


def _most_probable(P: SparseMatrix, labels: CellLabels) -> tuple[LongArray, FloatArray]:
    """Code and probability of the heaviest label in every row; -1 and nan if there is none."""
    shares = P @ EncodedLabels(labels.names, labels.codes).one_hot()
    total, codes = shares.sum(axis=1), shares.argmax(axis=1)
    codes[total == 0.0] = -1
    with np.errstate(invalid="ignore"):
        return codes, shares.max(axis=1) / total


def _coordinates(adata_ref: AnnData, name: str) -> FloatArray:
    values = entry(adata_ref.obsm, name, "obsm", "a key, or keys, of `adata_ref.obsm`")
    return np.asarray(values, dtype=np.float64)


def _new_points(
    adata_ref: AnnData, adata_new: AnnData, graph: Graph, use_rep: str | None
) -> Points:
    """The new cells in the coordinates of the points of the graph."""
    recorded, n_pcs = graph.params.get("use_rep"), graph.params.get("n_pcs")
    if graph.points is None:
        msg = (
            "must hold a graph of `otgraph.singlecell.pp.neighbors` and the representation that "
            f"it was built on ({recorded!r}); run it again."
        )
        raise invalid("adata_ref", msg)
    if use_rep is None and recorded == "X":
        return representation(_same_genes(adata_ref, adata_new), "X").points
    if use_rep is None and recorded == "X_pca":
        return _projected(adata_ref, adata_new, graph.points)
    return representation(adata_new, use_rep or str(recorded), n_pcs).points  # type: ignore[arg-type]


def _check_distances(adata_ref: AnnData, graph: Graph, neighbors_key: str | None) -> None:
    """Raise if the representation is another one than the graph was built on."""
    if graph.params.get("distances") != "metric" or not is_metric_name(str(graph.params["metric"])):
        return
    stored = adata_ref.obsp[Keys.of(neighbors_key).distances][:CHECKED_CELLS].tocoo()
    cost, _ = metric_cost(graph)
    found = cost.listed(stored.row, stored.col)
    if not np.allclose(found, stored.data, rtol=DISTANCES_RTOL):
        msg = (
            f"has other values of {graph.params['use_rep']!r} than those that its graph was built "
            "on; run `otgraph.singlecell.pp.neighbors` again."
        )
        raise invalid("adata_ref", msg)


def _projected(adata_ref: AnnData, adata_new: AnnData, components: Points) -> FloatArray:
    """Principal components of the new cells, by the loadings of the reference.

    The reference gives the offset: its components differ from its genes times the loadings by a
    constant. If they do not, its genes or its components were changed since.
    """
    hint = "Compute them for all cells together and pass `use_rep`, or run `sc.pp.pca` again."
    if "PCs" not in adata_ref.varm:
        msg = "`adata_ref` has no loadings `varm['PCs']` to compute components of new cells with. "
        raise argument_error(ValueError, "adata_ref", msg + hint)
    loadings = np.asarray(adata_ref.varm["PCs"], dtype=np.float64)[:, : components.shape[1]]
    products = np.asarray(representation(adata_ref, "X").points @ loadings)
    offset = np.mean(components - products, axis=0)
    error = np.abs(components - products - offset).max()
    if error > COMPONENTS_RTOL * np.abs(components).max():
        msg = "`adata_ref.obsm['X_pca']` is not `adata_ref.X` times the loadings `varm['PCs']`. "
        raise argument_error(ValueError, "adata_ref", msg + hint)
    genes = representation(_same_genes(adata_ref, adata_new), "X").points
    return np.asarray(genes @ loadings) + offset


def _same_genes(adata_ref: AnnData, adata_new: AnnData) -> AnnData:
    """The new cells with the genes of the reference in its order."""
    missing = adata_ref.var_names.difference(adata_new.var_names)
    if len(missing):
        msg = f"must have all genes of `adata_ref`; {len(missing)} are missing: "
        msg += f"{keys_of(missing)}. Build the reference on the genes of both, or pass `use_rep`."
        raise invalid("adata_new", msg)
    return adata_new[:, adata_ref.var_names]
