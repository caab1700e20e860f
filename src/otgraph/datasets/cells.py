"""Single cells: tables of gene counts from the web, from files, or from AnnData."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._isolated import read_h5ad
from otgraph._optional import require
from otgraph._text import listed
from otgraph._validation import check_csr
from otgraph.datasets._counts import SUFFIXES, read_counts
from otgraph.datasets._downloads import REMOTE_FILES, fetch
from otgraph.exceptions import FormatError, invalid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from anndata import AnnData
    from numpy.typing import ArrayLike

    from otgraph.typing import FloatArray, ObjectArray, SparseMatrix

BUNDLED = "pbmc68k_reduced"  # comes with scanpy
KNOWN = ", ".join(map(repr, [*REMOTE_FILES, BUNDLED]))
SHOWN_NAMES = 5  # names listed in a message
# Distance from a whole number up to which a value counts as one, to allow for rounding.
WHOLE_NUMBER_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Cells:
    """Expression of genes in cells.

    Attributes
    ----------
    X
        One row per cell, one column per gene: CSR, finite and non-negative.
    genes
        Names of the columns, each once.
    cells
        Names of the rows.
    source
        Description of the source.

    Examples
    --------
    >>> from otgraph.datasets.cells import make_cells
    >>> cells = make_cells([[4, 0], [1, 8]], ["a", "b"], ["1", "2"], "example")
    >>> cells.expression(["b"]).ravel(), cells.are_counts
    (array([0., 8.]), True)
    """

    X: SparseMatrix
    genes: ObjectArray
    cells: ObjectArray
    source: str

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def are_counts(self) -> bool:
        """Whether all values are whole numbers, as before any normalization."""
        return _whole(self.X.data)

    @property
    def totals(self) -> FloatArray:
        """Sum over the genes for every cell: its library size."""
        return np.asarray(self.X.sum(axis=1), dtype=np.float64).ravel()

    def columns(self, names: Sequence[str]) -> list[int]:
        """Column of each gene; the error for a missing gene names similar ones.

        Parameters
        ----------
        names
            Names of genes.
        """
        column_of = {str(gene): column for column, gene in enumerate(self.genes)}
        missing = [name for name in names if name not in column_of]
        if missing:
            raise ValueError(_missing_genes(missing, self))
        return [column_of[name] for name in names]

    def expression(self, names: Sequence[str]) -> FloatArray:
        """Values of the named genes, one column each.

        Parameters
        ----------
        names
            Names of genes.
        """
        return np.asarray(self.X[:, self.columns(names)].toarray())


def load_cells(
    source: str | PathLike[str] | AnnData = "bmmc",
    *,
    transpose: bool = False,
    cache: str | PathLike[str] | None = None,
    sha256: str | None = None,
    progress: bool = False,
) -> Cells:
    r"""Cells with the expression of their genes, as stored.

    :func:`otgraph.datasets.prepare_cells` filters and normalizes them.

    Parameters
    ----------
    source
        ``"bmmc"``: myeloid cells from mouse bone marrow (Paul et al. 2015), the data of
        section 3.3 of Matsumoto et al. (2022), downloaded from the repository of PHATE on first
        use. ``"pbmc68k_reduced"``: 700 blood cells that come with scanpy, as logarithms.
        Otherwise a file (``.csv``, ``.tsv``, either also as ``.gz``, or ``.h5ad``) with one row
        per cell, or an AnnData object. From ``.h5ad`` and AnnData, the first of
        ``layers["counts"]``, ``X`` and ``raw`` with only whole numbers is used, or else the first
        without negative numbers.
    transpose
        The file has one row per gene.
    cache
        Folder for downloads; by default that of the operating system, or the environment
        variable ``OTGRAPH_DATA``.
    sha256
        Checksum that a download must have. By default the one recorded when the file was
        first downloaded on this machine, next to it as ``<file>.sha256``.
    progress
        Show a progress bar while downloading.

    Returns
    -------
    Cells

    Raises
    ------
    ConnectionError
        If the file cannot be downloaded; the message says where to put a copy.
    FormatError
        If a file is not a table of numbers, or not the one that was recorded.

    Examples
    --------
    >>> from otgraph import datasets
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "counts.csv")
    >>> _ = path.write_text(",Mpo,Klf1\nfirst,3,0\nsecond,0,2\n")
    >>> cells = datasets.load_cells(path)
    >>> cells.genes, len(cells)
    (array(['Mpo', 'Klf1'], dtype=object), 2)
    """
    if isinstance(source, str) and source in REMOTE_FILES:
        path = fetch(source, cache=cache, sha256=sha256, progress=progress)
        return _from_file(path, transpose, f"{source}, {path.name}")
    if isinstance(source, str) and source == BUNDLED:
        return _from_anndata(require("scanpy.datasets", "singlecell").pbmc68k_reduced(), BUNDLED)
    if isinstance(source, str | Path) or hasattr(source, "__fspath__"):
        return _from_file(Path(source), transpose, Path(source).name)
    adata: AnnData = source
    if hasattr(adata, "var_names") and hasattr(adata, "obs_names"):
        return _from_anndata(adata.T if transpose else adata, "AnnData")
    msg = f"must be {KNOWN}, the path of a file, or an AnnData object, got {type(source).__name__}."
    raise invalid("source", msg, TypeError)


def make_cells(
    X: ArrayLike | SparseMatrix, genes: ArrayLike, cells: ArrayLike, source: str
) -> Cells:
    """Cells after checks: matching names, unique genes, finite numbers >= 0."""
    X = check_csr(sp.csr_matrix(X, dtype=np.float64), name="X")
    gene_names, cell_names = _names(genes), _names(cells)
    if X.shape != (len(cell_names), len(gene_names)):
        msg = (
            f"has shape {X.shape}, but there are {len(cell_names)} names of cells and "
            f"{len(gene_names)} of genes."
        )
        raise invalid("X", msg)
    _check_unique(gene_names, source)
    found = Cells(X, gene_names, cell_names, source)
    _check_values(found)
    return found


def _from_file(path: Path, transpose: bool, source: str) -> Cells:
    if not path.is_file():
        msg = (
            f"There is no file {str(path)!r}. `source` must be {KNOWN}, or the path of a "
            f"{', '.join(SUFFIXES)} or .h5ad file."
        )
        raise FileNotFoundError(msg)
    if path.suffix == ".h5ad":
        try:
            adata = read_h5ad(str(path))
        except (OSError, ValueError) as error:
            msg = f"{str(path)!r} cannot be read as an h5ad file: {error}"
            raise FormatError(msg) from error
        return _from_anndata(adata.T if transpose else adata, source)
    X, columns, rows = read_counts(path)
    if transpose:
        X, columns, rows = X.T.tocsr(), rows, columns
    return make_cells(X, columns, rows, source)


def _from_anndata(adata: AnnData, source: str) -> Cells:
    """The first matrix with whole numbers, else the first without negative ones."""
    choices = {"X": (adata.X, adata.var_names)}
    if "counts" in adata.layers:
        choices = {'layers["counts"]': (adata.layers["counts"], adata.var_names), **choices}
    if adata.raw is not None:
        choices["raw"] = (adata.raw.X, adata.raw.var_names)
    choices = {place: found for place, found in choices.items() if found[0] is not None}
    if not choices:
        msg = f"{source} holds no values: X, raw and layers['counts'] are all missing."
        raise ValueError(msg)
    values = {place: sp.csr_matrix(X).data for place, (X, _) in choices.items()}
    usable = [place for place in choices if np.all(values[place] >= 0)]
    whole = [place for place in usable if _whole(values[place])]
    chosen = [*whole, *usable, *choices][0]  # if none is usable, `make_cells` names the fault
    X, genes = choices[chosen]
    return make_cells(X, genes, adata.obs_names, f"{source}, {chosen}")


def _whole(values: FloatArray) -> bool:
    return bool(np.all(np.abs(values - np.round(values)) <= WHOLE_NUMBER_TOLERANCE))


def _names(names: ArrayLike) -> ObjectArray:
    return np.array([str(name) for name in np.asarray(names).ravel()], dtype=object)


def _check_unique(genes: ObjectArray, source: str) -> None:
    names, counts = np.unique(genes.astype(str), return_counts=True)
    repeated = names[counts > 1].tolist()
    if repeated:
        msg = (
            f"{source} has {len(repeated)} gene name(s) more than once: "
            f"{listed(repeated, SHOWN_NAMES)}. Rename these columns, or add them up (AnnData: "
            "adata.var_names_make_unique())."
        )
        raise ValueError(msg)


def _check_values(cells: Cells) -> None:
    values = cells.X.data
    bad = ~np.isfinite(values) | (values < 0)
    if not bad.any():
        return
    first = int(np.flatnonzero(bad)[0])
    row = int(np.searchsorted(cells.X.indptr, first, side="right")) - 1
    where = f"gene {cells.genes[cells.X.indices[first]]}, cell {cells.cells[row]}"
    what, remedy = "negative numbers", "Pass counts, or values before they were centered."
    if not np.isfinite(values).all():
        what, remedy = "missing or infinite values", "Drop or impute these cells first."
    msg = (
        f"{cells.source} has {what}, {int(bad.sum())} in all, the first at {where}: "
        f"{values[first]:g}. {remedy}"
    )
    raise ValueError(msg)


def _missing_genes(missing: Sequence[str], cells: Cells) -> str:
    genes = [str(gene) for gene in cells.genes]
    lower = {gene.lower(): gene for gene in genes}
    hints = []
    for name in missing:
        near = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.7)
        if near:
            hints.append(f"For {name} there is {', '.join(lower[match] for match in near)}. ")
    rows = {str(name) for name in cells.cells}
    if all(name in rows for name in missing):
        hints = ["They are among the rows: load the file with `transpose=True`. "]
    return (
        f"{cells.source} has no gene {', '.join(missing)}. {''.join(hints)}"
        f"Its {len(genes)} genes are {listed(genes, SHOWN_NAMES)}."
    )
