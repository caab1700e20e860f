"""What functions for cells say: in scanpy's log, and in warnings about cells without edges."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from otgraph.exceptions import DisconnectedWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

# Frames up to the caller of a function with such a block: `advised`, the end of its block in
# contextlib, the function, its caller.
CALLER = 4
# For the function that builds the graph: what happens if it stays as it is.
CONSEQUENCE = (
    "With several components, `sc.tl.dpt` gives infinite pseudotime to all cells outside the "
    "component of the root."
)
# For functions that read a graph: how to build another.
REMEDY = "`otgraph.singlecell.pp.neighbors(adata, connect=True)` builds a graph of one component."


@contextmanager
def advised(advice: str) -> Iterator[None]:
    """Add advice to what functions for arrays say about disconnected points.

    Warnings are issued when the block ends; those with advice for the line of the user.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for found in caught:
        if issubclass(found.category, DisconnectedWarning):
            warnings.warn(f"{found.message} {advice}", found.category, stacklevel=CALLER)
        else:
            warnings.warn_explicit(found.message, found.category, found.filename, found.lineno)


@contextmanager
def logged(title: str, *added: str) -> Iterator[None]:
    """Tell scanpy's log what is computed, how long it took, and what was added.

    scanpy shows the first two from verbosity 2 on (``"info"``) and the last from 3 on
    (``"hint"``). Without scanpy, or before it is imported, nothing is said.
    """
    log = getattr(sys.modules.get("scanpy"), "logging", None)
    start = log.info(title) if log else None
    yield
    if log:
        deep = "added\n" + "\n".join(f"    {line}" for line in added)
        log.info("    finished", time=start, deep=deep)
