"""From counts to expression, in the steps of section 3.3 of Matsumoto et al. (2022)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_count, check_positive

if TYPE_CHECKING:
    from otgraph.datasets.cells import Cells

# Settings of the authors' scripts, which are scprep's defaults.
MIN_TOTAL = 1000
MIN_CELLS = 10
TOTAL = 10_000


def prepare_cells(
    cells: Cells, *, min_total: float = MIN_TOTAL, min_cells: int = MIN_CELLS, total: float = TOTAL
) -> Cells:
    """Square roots of normalized counts of the cells and genes worth keeping.

    :func:`keep_large_cells`, :func:`keep_common_genes`, :func:`normalize_totals` and
    :func:`square_root`, one after the other.

    Parameters
    ----------
    cells
        Counts, from :func:`otgraph.datasets.load_cells`.
    min_total
        Smallest library size; smaller cells are dropped.
    min_cells
        Cells in which a gene must be found, of those that are kept.
    total
        Library size that every cell is scaled to.

    Examples
    --------
    >>> import numpy as np
    >>> from otgraph import datasets
    >>> from otgraph.datasets.cells import make_cells
    >>> counts = np.array([[900, 100, 0], [0, 1600, 0], [5, 5, 5]])
    >>> cells = make_cells(counts, ["a", "b", "c"], ["1", "2", "3"], "example")
    >>> datasets.prepare_cells(cells, min_cells=1).X.toarray().round(1)
    array([[ 94.9,  31.6],
           [  0. , 100. ]])
    """
    cells = keep_common_genes(keep_large_cells(cells, min_total), min_cells)
    return square_root(normalize_totals(cells, total))


def keep_large_cells(cells: Cells, min_total: float = MIN_TOTAL) -> Cells:
    """Cells whose library size is at least `min_total`.

    Parameters
    ----------
    cells, min_total
        As in :func:`prepare_cells`.

    Examples
    --------
    >>> from otgraph import datasets
    >>> from otgraph.datasets.cells import make_cells
    >>> cells = make_cells([[4, 0], [1, 8], [9, 9]], ["a", "b"], ["1", "2", "3"], "example")
    >>> len(datasets.keep_large_cells(cells, 5))
    2
    """
    min_total = check_positive(min_total, "min_total")
    totals = cells.totals
    kept = totals >= min_total
    if kept.sum() < 2:
        msg = (
            f"Only {int(kept.sum())} of {len(cells)} cells of {cells.source} have a library size "
            f"of at least {min_total:g}; the median is {np.median(totals) if len(cells) else 0:g}. "
            "Lower `min_total`, or pass the counts of all genes."
        )
        raise ValueError(msg)
    return replace(cells, X=cells.X[kept], cells=cells.cells[kept])


def keep_common_genes(cells: Cells, min_cells: int = MIN_CELLS) -> Cells:
    """Genes found in at least `min_cells` cells.

    Parameters
    ----------
    cells
        Counts or expression.
    min_cells
        Cells in which a gene must be found.

    Examples
    --------
    >>> from otgraph import datasets
    >>> from otgraph.datasets.cells import make_cells
    >>> cells = make_cells([[4, 0], [1, 8]], ["a", "b"], ["1", "2"], "example")
    >>> list(datasets.keep_common_genes(cells, 2).genes)
    ['a']
    """
    min_cells = check_count(min_cells, "min_cells", minimum=0)
    kept = np.asarray((cells.X > 0).sum(axis=0)).ravel() >= min_cells
    if not kept.any():
        msg = (
            f"None of the {len(cells.genes)} genes of {cells.source} is found in {min_cells} of "
            f"{len(cells)} cells. Lower `min_cells`."
        )
        raise ValueError(msg)
    return replace(cells, X=cells.X[:, np.flatnonzero(kept)], genes=cells.genes[kept])


def normalize_totals(cells: Cells, total: float = TOTAL) -> Cells:
    """Cells scaled to the same library size; empty ones stay empty.

    Parameters
    ----------
    cells, total
        As in :func:`prepare_cells`.

    Examples
    --------
    >>> from otgraph import datasets
    >>> from otgraph.datasets.cells import make_cells
    >>> cells = make_cells([[4, 0], [1, 8]], ["a", "b"], ["1", "2"], "example")
    >>> datasets.normalize_totals(cells, 100).totals
    array([100., 100.])
    """
    total = check_positive(total, "total")
    totals = cells.totals
    factors = np.divide(total, totals, out=np.zeros_like(totals), where=totals > 0)
    return replace(cells, X=(sp.diags(factors) @ cells.X).tocsr())


def square_root(cells: Cells) -> Cells:
    """Square root of every value, which makes the variance of Poisson counts nearly constant.

    Parameters
    ----------
    cells
        Counts or expression.

    Examples
    --------
    >>> from otgraph import datasets
    >>> from otgraph.datasets.cells import make_cells
    >>> cells = make_cells([[4, 0], [1, 8]], ["a", "b"], ["1", "2"], "example")
    >>> datasets.square_root(cells).X.toarray().round(2)
    array([[2.  , 0.  ],
           [1.  , 2.83]])
    """
    return replace(cells, X=cells.X.sqrt())
