"""Messages in scanpy's log, as its own functions write them."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def logged(title: str, *added: str) -> Iterator[None]:
    """Tell scanpy's log what is computed, how long it took, and what was added.

    scanpy shows the first two from verbosity 2 on (``"info"``) and the last from 3 on
    (``"hint"``). Without scanpy, or before it is imported, nothing is said.
    """
    scanpy = sys.modules.get("scanpy")
    log = getattr(scanpy, "logging", None)
    if log is None:
        yield
        return
    start = log.info(title)
    yield
    deep = "added\n" + "\n".join(f"    {line}" for line in added)
    log.info("    finished", time=start, deep=deep)
