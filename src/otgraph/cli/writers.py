"""Graphs and tables in files; the name decides the format."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from otgraph.cli.frames import Points
    from otgraph.cli.targets import Target
    from otgraph.graphs import Graph

GRAPHS = (".otg", ".npz", ".mtx", ".csv", ".tsv", ".parquet", ".graphml", ".h5ad")
TABLES = (".csv", ".tsv", ".parquet")
ARRAYS = (".npy", ".npz")


def write_graph(target: Target, graph: Graph, points: Points) -> None:
    """Write a graph in the format that the name asks for.

    Parameters
    ----------
    target
        The file.
    graph
        The graph.
    points
        What it was built from: names of the rows, and for .h5ad everything else.
    """
    if target.suffix == ".otg":
        graph.save(target.path)
    elif target.suffix == ".h5ad":
        _write_h5ad(target, graph, points)
    elif target.suffix in TABLES:
        write_table(target, _edge_list(graph, points))
    else:
        writer = {".npz": _save_npz, ".mtx": _save_mtx, ".graphml": _save_graphml}[target.suffix]
        with target.open() as file:
            writer(file, graph, points)


def write_table(
    target: Target, columns: dict[str, Any], row_names: NDArray[Any] | None = None
) -> None:
    """Write columns of equal length, with the names of the rows in front where there are any."""
    import pandas as pd

    frame = pd.DataFrame(columns, index=row_names)
    named = row_names is not None
    with target.open() as file:
        if target.suffix == ".parquet":
            frame.to_parquet(file, index=named)
        else:
            separator = "\t" if target.suffix == ".tsv" else ","
            frame.to_csv(file, sep=separator, index=named, lineterminator="\n")


def write_array(
    target: Target,
    values: Any,
    column_names: NDArray[Any] | list[str],
    row_names: NDArray[Any] | None = None,
) -> None:
    """Write a matrix: plain, or as a table with names."""
    if target.suffix in TABLES:
        write_table(target, dict(zip(column_names, values.T, strict=True)), row_names)
        return
    with target.open() as file:
        if target.suffix == ".npy":
            np.save(file, values, allow_pickle=False)
        else:
            arrays = {"X": values, "column_names": np.asarray(column_names, str)}
            if row_names is not None:
                arrays["row_names"] = row_names
            np.savez_compressed(file, **arrays)


def _edge_list(graph: Graph, points: Points) -> dict[str, Any]:
    """Each pair once, self-loops included."""
    import scipy.sparse as sp

    upper = sp.triu(graph.weights, format="coo")
    names = points.row_names
    ends = (upper.row, upper.col) if names is None else (names[upper.row], names[upper.col])
    return {"source": ends[0], "target": ends[1], "weight": upper.data}


def _save_npz(file: Any, graph: Graph, points: Points) -> None:
    from scipy.sparse import save_npz

    save_npz(file, graph.weights)


def _save_mtx(file: Any, graph: Graph, points: Points) -> None:
    from scipy.io import mmwrite

    # Through memory: the writer of scipy goes back in its file, which a compressed one cannot.
    buffer = io.BytesIO()
    mmwrite(buffer, graph.weights, comment=repr(graph), symmetry="symmetric")
    file.write(buffer.getbuffer())


def _save_graphml(file: Any, graph: Graph, points: Points) -> None:
    from otgraph._optional import require

    networkx = require("networkx", "cli")
    network = networkx.from_scipy_sparse_array(graph.weights)
    if points.row_names is not None:
        names = dict(enumerate(map(str, points.row_names)))
        networkx.set_node_attributes(network, names, "name")
    networkx.write_graphml(network, file)


def _write_h5ad(target: Target, graph: Graph, points: Points) -> None:
    """A copy of the input with the graph where scanpy looks for one."""
    from otgraph.singlecell import write_slots

    adata = points.adata
    if adata is None:
        adata = _annotated(points)
    write_slots(adata, graph, use_rep=points.use_rep or "X")
    with target.name() as path:
        adata.write_h5ad(path)


def _annotated(points: Points) -> Any:
    """Points that came without annotations."""
    from otgraph._optional import require

    values = points.values
    # anndata knows arrays, but not those that are mapped from a file.
    values = values if hasattr(values, "tocsr") else np.asarray(values)
    adata = require("anndata", "singlecell").AnnData(values)
    if points.row_names is not None:
        adata.obs_names = points.row_names
    if points.column_names is not None:
        adata.var_names = points.column_names
    return adata
