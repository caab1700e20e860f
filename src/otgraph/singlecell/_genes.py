"""Genes by name, and the matrix that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._text import listed
from otgraph.exceptions import argument_error, invalid
from otgraph.singlecell._adata import entry, keys_of

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import ArrayLike

    from otgraph.typing import LongArray, Points

SHOWN = 5  # unknown names listed in an error: enough to see the pattern


def matrix_of(adata: AnnData, layer: str | None) -> Points:
    """``adata.X`` or a layer, in memory or on disk."""
    if layer is None:
        if adata.X is None:
            msg = f"`adata.X` is None; pass `layer`, one of {keys_of(adata.layers)}."
            raise argument_error(ValueError, "layer", msg)
        return adata.X
    return entry(adata.layers, layer, "layer", "a key of `adata.layers`")


def check_layer_name(adata: AnnData, layer_added: object, layer: str | None) -> None:
    """Check that the result replaces neither its input nor a column of ``var``."""
    if not isinstance(layer_added, str) or layer_added in ("", "X"):
        raise invalid("layer_added", f"must be the name of a layer, got {layer_added!r}.")
    if layer_added == layer:
        raise invalid("layer_added", f"must differ from `layer`, got {layer_added!r} for both.")
    if layer_added in adata.var and layer_added not in adata.uns:
        msg = "must not be the name of another column of `adata.var`, got "
        msg += f"{layer_added!r}: the genes of the layer are marked there."
        raise invalid("layer_added", msg)


def gene_columns(adata: AnnData, genes: ArrayLike | None) -> LongArray | None:
    """Numbers of the columns, in the order of ``adata.var``; None for all genes."""
    if genes is None:
        return None
    wanted = np.atleast_1d(np.asarray(genes))
    if isinstance(genes, str) and genes in adata.var and genes not in adata.var_names:
        wanted = adata.var[genes].to_numpy()
        if wanted.dtype.kind != "b":
            msg = f"names a column of `adata.var` that is not boolean but {wanted.dtype}."
            raise invalid("genes", msg, TypeError)
    if wanted.dtype.kind == "b":
        if wanted.shape != (adata.n_vars,):
            msg = f"as a mask must have one entry for each of {adata.n_vars} genes, got "
            msg += f"shape {wanted.shape}."
            raise invalid("genes", msg)
        columns = np.flatnonzero(wanted)
    elif wanted.dtype.kind in "iu":
        if wanted.size and not (wanted.min() >= 0 and wanted.max() < adata.n_vars):
            msg = f"as numbers must lie in 0..{adata.n_vars - 1}, got "
            msg += f"{wanted.min()} to {wanted.max()}."
            raise invalid("genes", msg)
        columns = np.unique(wanted).astype(np.int64)
    else:
        columns = np.unique(_by_name(adata, [str(name) for name in wanted]))
    if not len(columns):
        raise invalid("genes", "must choose at least one gene, got none.")
    return columns


def _by_name(adata: AnnData, names: list[str]) -> LongArray:
    if not adata.var_names.is_unique:
        msg = "`adata.var_names` are not unique; run `adata.var_names_make_unique()` first."
        raise argument_error(ValueError, "adata", msg)
    columns = adata.var_names.get_indexer(names)
    missing = [name for name, column in zip(names, columns, strict=True) if column < 0]
    if missing:
        msg = "must be in `adata.var_names`; not there: "
        msg += f"{listed(map(repr, missing), SHOWN)}."
        raise invalid("genes", msg, KeyError)
    return np.asarray(columns, dtype=np.int64)
