"""The representation of cells, chosen by scanpy's rules."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require
from otgraph._validation import check_count, check_finite
from otgraph.exceptions import invalid
from otgraph.singlecell._adata import entry

if TYPE_CHECKING:
    from anndata import AnnData

    from otgraph.typing import Points

# Up to this many genes X is used; otherwise this many components are computed. This is the default
# of scanpy's `settings.N_PCS`, fixed here so that results do not depend on a global setting.
N_PCS = 50


class Representation(NamedTuple):
    """Points, one row per cell, and the names that scanpy records for them."""

    points: Points
    use_rep: str
    n_pcs: int | None


def representation(
    adata: AnnData, use_rep: str | None = None, n_pcs: int | None = None
) -> Representation:
    """Points of the cells, chosen by scanpy's rules.

    ======================  =====================================================
    `use_rep` a name        ``adata.obsm[use_rep]``, its first `n_pcs` columns
    ``"X"``, or n_pcs = 0   ``adata.X``
    None, up to 50 genes    ``adata.X``
    None, more genes        ``adata.obsm["X_pca"]``, its first `n_pcs` columns;
                            computed by ``sc.pp.pca`` if missing, with a warning
    ======================  =====================================================

    Parameters
    ----------
    adata
        Annotated data, one row per cell.
    use_rep
        ``"X"`` or a key of ``adata.obsm``.
    n_pcs
        Number of columns to use; 0 means ``adata.X``.

    Returns
    -------
    Representation
        The points, the `use_rep` that was chosen, and `n_pcs`.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import otgraph.singlecell as ogs
    >>> ogs.representation(anndata.AnnData(np.eye(3))).use_rep
    'X'
    """
    n_pcs = None if n_pcs is None else check_count(n_pcs, "n_pcs", minimum=0)
    if use_rep is None:
        use_rep, n_pcs = _default(adata, n_pcs)
    if use_rep == "X":
        return Representation(_finite(_in_memory(adata.X), "adata.X"), "X", None)
    name = f"adata.obsm[{use_rep!r}]"
    points = _in_memory(entry(adata.obsm, use_rep, "use_rep", "'X' or a key of `adata.obsm`"))
    if n_pcs is not None and not 0 < n_pcs <= points.shape[1]:
        msg = f"must lie in 1..{points.shape[1]}, the columns of `{name}`, got {n_pcs}."
        raise invalid("n_pcs", msg)
    return Representation(_finite(points[:, :n_pcs], name), use_rep, n_pcs)


def _default(adata: AnnData, n_pcs: int | None) -> tuple[str, int | None]:
    if n_pcs == 0 or adata.n_vars <= N_PCS:
        return "X", None
    if "X_pca" not in adata.obsm:
        _compute_pca(adata, n_pcs)
    return "X_pca", n_pcs


def _compute_pca(adata: AnnData, n_pcs: int | None) -> None:
    scanpy = require("scanpy", "singlecell")
    if adata.isbacked:
        msg = (
            "is on disk and has no principal components. Run `sc.pp.pca` before it goes there, "
            "pass `use_rep`, or pass `adata.to_memory()`."
        )
        raise invalid("adata", msg)
    wanted = min(n_pcs or N_PCS, adata.n_obs - 1, adata.n_vars - 1)
    warnings.warn(
        f"`adata` has {adata.n_vars} genes and no 'X_pca'; computing {wanted} components with "
        "`sc.pp.pca`. Pass `use_rep='X'` to use the genes themselves.",
        UserWarning,
        stacklevel=5,
    )
    scanpy.pp.pca(adata, n_comps=wanted)


def _in_memory(values: Points) -> Points:
    if hasattr(values, "to_memory"):  # a sparse matrix on disk
        values = values.to_memory()
    if hasattr(values, "to_numpy"):  # a data frame
        values = values.to_numpy()
    return values if sp.issparse(values) else np.asarray(values)


def _finite(points: Points, name: str) -> Points:
    if points.dtype.kind == "f":
        check_finite(points, name)
    return points
