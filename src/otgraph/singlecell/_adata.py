"""Checks of AnnData objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph._optional import require
from otgraph._text import listed
from otgraph.exceptions import argument_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from anndata import AnnData

MIN_CELLS = 2


def check_adata(adata: AnnData) -> None:
    """Raise unless this is annotated data with cells."""
    anndata = require("anndata", "singlecell")
    if not isinstance(adata, anndata.AnnData):
        msg = (
            f"`adata` must be an AnnData object, got {type(adata).__name__}. For arrays there is "
            "otgraph.quadratic_ot_graph."
        )
        raise argument_error(TypeError, "adata", msg)
    if adata.n_obs < MIN_CELLS:
        msg = f"`adata` must hold at least {MIN_CELLS} cells, got {adata.n_obs}."
        raise argument_error(ValueError, "adata", msg)


def check_writable(adata: AnnData) -> None:
    """Raise unless this is annotated data with cells that can be written to."""
    check_adata(adata)
    if adata.isbacked and adata.is_view:
        msg = (
            "`adata` is a view of an object on disk, which cannot be written to; pass "
            "`adata.to_memory()`."
        )
        raise argument_error(ValueError, "adata", msg)


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
        msg = f"`key_added` must be a name without '/', as .h5ad files need it, got {key!r}."
        raise argument_error(ValueError, "key_added", msg)


def keys_of(names: Iterable[object]) -> str:
    """Keys of a part of annotated data, for an error message."""
    # anndata 0.13 lists X among the layers, under the name None.
    return listed(repr(name) for name in names if name is not None)


def entry(slots: Mapping[str, Any], key: object, argument: str, what: str) -> Any:
    """A part of annotated data by its key; the error for a missing one lists those that exist."""
    if key not in slots:
        msg = f"`{argument}` must be {what}, got {key!r}; there are: {keys_of(slots)}."
        raise argument_error(KeyError, argument, msg)
    return slots[str(key)]
