"""Write files. Targets are checked before the work and replaced in one step after it."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np

from otgraph._atomic import check_replaceable, replacing
from otgraph._optional import require
from otgraph.cli.reading import TABLES, suffix_of
from otgraph.cli.terminal import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from anndata import AnnData
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from otgraph.cli.reading import Points
    from otgraph.cli.report import Report
    from otgraph.graphs import Graph, LabelTransfer
    from otgraph.methods import LabelSpread
    from otgraph.typing import Array, Keywords

STDOUT = "-"
PREPARED = "X_prepared"  # key in obsm of points that were scaled or projected
GRAPHS = (".otg", ".npz", ".mtx", *TABLES, ".graphml", ".h5ad")
ARRAYS = (".npy", ".npz")
# Formats of pictures and their metadata; without the date, equal results give equal files.
METADATA = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
PICTURES = tuple(METADATA)
NOT_IN_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
DPI = 200  # sharp at the width of a page
SVG_STYLE = {"svg.hashsalt": "otgraph"}  # identifiers inside an SVG are random without a salt


@dataclass(frozen=True)
class Target:
    """A file to write; its suffix sets the format."""

    path: str
    suffix: str  # without .gz
    force: bool = False  # whether an existing file may be replaced

    @property
    def streamed(self) -> bool:
        """Whether it is standard output."""
        return self.path == STDOUT

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The file to write to; it gets its name only when it is complete."""
        if self.streamed:
            try:
                yield sys.stdout.buffer
            except OSError as error:
                error.filename = "standard output"
                raise
            return
        with replacing(self.path, overwrite=self.force) as file:
            if not self.path.lower().endswith(".gz"):
                yield file
                return
            # No name and no time in the file, so equal results give equal files.
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                yield packed  # type: ignore[misc]


def target(path: str, known: Collection[str], *, what: str, report: Report) -> Target:
    """Check a file name before the work, so that nothing fails after hours.

    ``-`` is CSV on standard output, if that is among the known suffixes. ``what`` names the
    contents in messages.
    """
    if path != STDOUT:
        suffix = suffix_of(path, known, what=what)
        _check_place(path, force=report.run.force)
        return Target(path, suffix, report.run.force)
    if report.run.json:
        refuse("--json and -o - cannot both have standard output; write to a file.")
    if ".csv" not in known:
        refuse(f"standard output takes CSV only; {what} needs a file: {', '.join(known)}.")
    report.streamed = True
    return Target(path, ".csv")


def picture_target(path: str | None, report: Report) -> list[Target]:
    """The target of ``--picture``, if it was given."""
    return [] if path is None else [target(path, PICTURES, what="a picture", report=report)]


def write_graph(place: Target, graph: Graph, points: Points) -> None:
    """Write a graph with the names of `points`; .h5ad files also keep the whole input."""
    if place.suffix == ".otg":
        graph.save(place.path, overwrite=place.force)
    elif place.suffix == ".h5ad":
        _write_h5ad(place, graph, points)
    elif place.suffix in TABLES:
        write_table(place, _edge_list(graph, points))
    else:
        writer = {".npz": _save_npz, ".mtx": _save_mtx, ".graphml": _save_graphml}[place.suffix]
        with place.open() as file:
            writer(file, graph, points)


def write_table(place: Target, columns: dict[str, Array], row_names: Array | None = None) -> None:
    """Write columns of equal length, after a column of row names if there are any."""
    import pandas as pd

    contents = [
        _valid(values) if np.asarray(values).dtype.kind == "O" else values
        for values in columns.values()
    ]
    named = row_names is not None
    index = _valid(row_names) if row_names is not None else None
    frame = pd.DataFrame(dict(zip(_valid(columns), contents, strict=True)), index=index)
    with place.open() as file:
        if place.suffix == ".parquet":
            frame.to_parquet(file, index=named)
        else:
            separator = "\t" if place.suffix == ".tsv" else ","
            frame.to_csv(file, sep=separator, index=named, lineterminator="\n")


def write_labels(
    place: Target,
    found: LabelSpread | LabelTransfer,
    last: dict[str, Array],
    row_names: Array | None,
) -> None:
    """Write labels with the probabilities of all classes, and what comes last."""
    shares = {f"p_{name}": found.probabilities[:, i] for i, name in enumerate(found.classes)}
    write_table(place, {"label": found.labels, **shares, **last}, row_names)


def write_array(
    place: Target,
    values: Array,
    column_names: Array | list[str],
    row_names: Array | None = None,
) -> None:
    """Write a matrix: plain, or as a table with names."""
    if place.suffix in TABLES:
        write_table(place, dict(zip(column_names, values.T, strict=True)), row_names)
        return
    with place.open() as file:
        if place.suffix == ".npy":
            np.save(file, values, allow_pickle=False)
        else:
            arrays: Keywords = {} if row_names is None else {"row_names": row_names}
            with _through_memory(file) as buffer:
                np.savez_compressed(
                    buffer, X=values, column_names=np.asarray(column_names, str), **arrays
                )


def write_picture(place: Target, draw: Callable[[Axes], object]) -> None:
    """Call a function that draws into new axes, and write the picture."""
    figure = require("matplotlib.figure", "plots").Figure(layout="constrained")
    draw(figure.add_subplot())
    write_figure(place, figure)


def write_figure(place: Target, figure: Figure) -> None:
    """Write a figure, without opening a window."""
    with require("matplotlib", "plots").rc_context(SVG_STYLE), place.open() as file:
        figure.savefig(
            file,
            format=place.suffix.removeprefix("."),
            dpi=DPI,
            bbox_inches="tight",
            metadata=METADATA[place.suffix],
        )


def _check_place(path: str, *, force: bool) -> None:
    """Raise unless a file of this name may and can be written."""
    if os.path.lexists(path) and not force:
        refuse(f"{path}: exists already; --force replaces it.")
    check_replaceable(path)
    directory = os.path.dirname(os.path.realpath(path))
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass  # permissions are not enough: the disk may be full or read-only
    except OSError as error:
        refuse(f"{path}: cannot write into {directory}: {error.strerror}.")


def _edge_list(graph: Graph, points: Points) -> dict[str, Array]:
    """Each pair once, self-loops included."""
    import scipy.sparse as sp

    upper = sp.triu(graph.weights, format="coo")
    names = points.row_names
    ends = (upper.row, upper.col) if names is None else (names[upper.row], names[upper.col])
    return {"source": ends[0], "target": ends[1], "weight": upper.data}


def _save_npz(file: IO[bytes], graph: Graph, points: Points) -> None:
    from scipy.sparse import save_npz

    with _through_memory(file) as buffer:
        save_npz(buffer, graph.weights)


def _save_mtx(file: IO[bytes], graph: Graph, points: Points) -> None:
    from scipy.io import mmwrite

    # scipy needs a file that can seek, which a compressed file cannot.
    with _through_memory(file) as buffer:
        mmwrite(buffer, graph.weights, comment=repr(graph), symmetry="symmetric")


def _save_graphml(file: IO[bytes], graph: Graph, points: Points) -> None:
    networkx = require("networkx", "cli")
    network = networkx.from_scipy_sparse_array(graph.weights)
    if points.row_names is not None:
        names = {i: _xml_text(str(name)) for i, name in enumerate(points.row_names)}
        networkx.set_node_attributes(network, names, "name")
    networkx.write_graphml(network, file)


@contextlib.contextmanager
def _through_memory(file: IO[bytes]) -> Iterator[io.BytesIO]:
    """A buffer that is written to the file in one piece.

    For writers that do not survive a disk that becomes full: HDF5 aborts, and numpy before 2.2
    leaves an archive open, which complains when it is collected.
    """
    buffer = io.BytesIO()
    yield buffer
    file.write(buffer.getbuffer())


def _xml_text(text: str) -> str:
    r"""The text with escapes, such as ``\x0b``, for characters that XML does not have."""
    return NOT_IN_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _valid(names: Iterable[object]) -> list[object]:
    """Names with escapes for halves of characters, which no file of text can hold."""
    return [
        name.encode("utf-8", "backslashreplace").decode() if isinstance(name, str) else name
        for name in names
    ]


def _write_h5ad(place: Target, graph: Graph, points: Points) -> None:
    """A copy of the input with the graph where scanpy expects it."""
    from otgraph.singlecell import write_slots

    adata = _annotated(points) if points.adata is None else points.adata
    use_rep = points.use_rep or "X"
    if points.preparation is not None and points.preparation.scale is not None:
        use_rep = PREPARED
        adata.obsm[use_rep] = points.values
    write_slots(adata, graph, use_rep=use_rep)
    anndata, h5py = (require(name, "singlecell") for name in ("anndata", "h5py"))
    adata.strings_to_categoricals()
    with (
        place.open() as file,
        _through_memory(file) as buffer,
        h5py.File(buffer, "w") as content,
    ):
        anndata.io.write_elem(content, "/", adata)


def _annotated(points: Points) -> AnnData:
    """Points that came without annotations."""
    adata = require("anndata", "singlecell").AnnData(points.original)
    if points.row_names is not None:
        adata.obs_names = points.row_names
    if points.column_names is not None:
        adata.var_names = points.column_names
    return adata
