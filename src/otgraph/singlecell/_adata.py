"""Checks of AnnData objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph._optional import require
from otgraph._text import listed
from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from anndata import AnnData

MIN_CELLS = 2


def check_adata(adata: AnnData) -> None:
    """Raise unless this is annotated data with cells."""
    anndata = require("anndata", "singlecell")
    if not isinstance(adata, anndata.AnnData):
        msg = (
            f"must be an AnnData object, got {type(adata).__name__}. For arrays there is "
            "otgraph.quadratic_ot_graph."
        )
        raise invalid("adata", msg, TypeError)
    if adata.n_obs < MIN_CELLS:
        raise invalid("adata", f"must hold at least {MIN_CELLS} cells, got {adata.n_obs}.")


def check_writable(adata: AnnData) -> None:
    """Raise unless this is annotated data with cells that can be written to."""
    check_adata(adata)
    if adata.isbacked and adata.is_view:
        msg = (
            "is a view of an object on disk, which cannot be written to; pass `adata.to_memory()`."
        )
        raise invalid("adata", msg)


def target(adata: AnnData, *, copy: bool) -> AnnData:
    """The object to write to: `adata` itself, or a copy in memory.

    The first result that is written to a view turns it into a copy, with anndata's
    ``ImplicitModificationWarning``, as every assignment does.
    """
    if copy:
        check_adata(adata)
        return adata.to_memory() if adata.isbacked else adata.copy()
    check_writable(adata)
    return adata


def check_key(key: str) -> None:
    """Raise unless an .h5ad file can hold this new name, which HDF5 takes for a path."""
    try:
        key.encode()
    except (AttributeError, UnicodeEncodeError):
        possible = False
    else:
        possible = key not in ("", ".") and not {"/", "\0"} & set(key)
    if not possible:
        msg = f"must be a name without '/', as .h5ad files need it, got {key!r}."
        raise invalid("key_added", msg)


def keys_of(names: Iterable[object]) -> str:
    """Keys of a part of annotated data, for an error message."""
    # anndata 0.13 lists X among the layers, under the name None.
    return listed(repr(name) for name in names if name is not None)


def entry(slots: Mapping[str, Any], key: object, argument: str, what: str) -> Any:
    """A part of annotated data by its key; the error for a missing one lists those that exist."""
    if key not in slots:
        msg = f"must be {what}, got {key!r}; there are: {keys_of(slots)}."
        raise invalid(argument, msg, KeyError)
    return slots[str(key)]
