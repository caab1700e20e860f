"""The cells of the paper, or those of the user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from otgraph import datasets
from otgraph.exceptions import ExperimentError

if TYPE_CHECKING:
    from otgraph.typing import FloatArray

PAPER = "bmmc"
PAPER_FILE = "BMMC_myeloid.csv.gz"  # name of a local copy
# Two genes to plot against each other, and one for the color.
GENES = {
    PAPER: ("Mpo", "Klf1", "Ifitm1"),  # the authors': two branches and where they part
    "pbmc68k_reduced": ("LYZ", "CD3D", "NKG7"),  # monocytes, T cells, natural killer cells
    "emt_subset.csv": ("VIM", "CDH1", "ZEB1"),  # of MAGIC's paper: mesenchymal, epithelial, driver
}
# Descriptions of the data that are known by name.
ABOUT = {
    PAPER: "the paper's cells",
    "pbmc68k_reduced": "not the paper's cells, but blood cells that come with scanpy",
    "emt_subset.csv": "not the paper's cells, but a part of those of MAGIC's paper",
}
FEWEST_CELLS = 30  # MAGIC looks at fifteen neighbors of each


@dataclass(frozen=True)
class Parameters:
    """Data and settings.

    Without the authors' eps, quadratic OT gets the mean degree of the MAGIC graph, and entropic OT
    an eps in the same ratio to that of quadratic OT.
    """

    data: str = PAPER
    genes: tuple[str, ...] = GENES[PAPER]  # to show
    n_cells: int = 0  # size and sum of the prepared data, which tell a changed file
    n_genes: int = 0
    total: float = 0.0
    eps: float | None = 30.0  # the authors'; None for other data, whose distances differ in size
    entropic_eps: float | None = 0.5
    t: tuple[int, ...] = (1, 3, 5)  # steps of diffusion
    magic_k: int = 5  # default of MAGIC, as the next
    n_pca: int = 100
    max_genes: int = 2000  # denoised genes to compare, which vary most; distances use all genes
    max_cells: int | None = None  # evenly spaced among all; None for all


def with_data(
    parameters: Parameters, data: str | None, genes: tuple[str, ...] | None
) -> Parameters:
    """Parameters for the data of the user or of the paper, after checking them."""
    data = PAPER if data is None else data
    genes = GENES.get(PAPER if is_papers(data) else Path(data).name) if genes is None else genes
    if genes is None:
        msg = f"Name three genes of {data!r} to show, such as --genes Mpo,Klf1,Ifitm1."
        raise ExperimentError(msg)
    if len(genes) != 3 or len(set(genes)) != 3:
        msg = f"`genes` must be three different names, got {', '.join(genes) or 'none'}."
        raise ExperimentError(msg)
    parameters = replace(parameters, data=data, genes=genes)
    if not is_papers(data):
        parameters = replace(parameters, eps=None, entropic_eps=None)
    try:
        cells = prepared(data, parameters.max_cells)
        cells.columns(genes)
    except (ValueError, OSError, ImportError) as error:
        raise ExperimentError(str(error)) from error
    if len(cells) < FEWEST_CELLS:
        msg = (
            f"{cells.source} has {len(cells)} cells; the experiment needs at least {FEWEST_CELLS}."
        )
        raise ExperimentError(msg)
    n_cells, n_genes = cells.X.shape
    return replace(
        parameters, n_cells=n_cells, n_genes=n_genes, total=float(f"{cells.X.sum():.9g}")
    )


def is_papers(data: str) -> bool:
    """Whether these are the cells of the paper, for which the authors' settings apply."""
    return data == PAPER or Path(data).name == PAPER_FILE


def prepared(data: str, max_cells: int | None) -> datasets.Cells:
    """Counts, prepared as the authors do; values that are not counts are not changed."""
    file = Path(data)
    changed = file.stat().st_mtime_ns if file.is_file() else 0
    return _prepared(data, max_cells, changed)


@lru_cache(maxsize=1)  # several tasks of one process need it
def _prepared(data: str, max_cells: int | None, changed: int) -> datasets.Cells:
    cells = datasets.load_cells(data)
    if cells.are_counts:
        cells = datasets.prepare_cells(cells)
    if max_cells is not None and len(cells) > max_cells:
        kept = np.linspace(0, len(cells) - 1, max_cells).astype(int)
        cells = replace(cells, X=cells.X[kept], cells=cells.cells[kept])
    return cells


def expression(parameters: Parameters) -> FloatArray:
    """All genes, for the distances."""
    return np.asarray(prepared(parameters.data, parameters.max_cells).X.toarray())


def compared_columns(X: FloatArray, parameters: Parameters) -> FloatArray:
    """The genes that vary most; constant genes have no correlation."""
    variance = X.var(axis=0)
    order = np.argsort(-variance, kind="stable")[: parameters.max_genes]
    return np.asarray(X[:, np.sort(order[variance[order] > 0])])
