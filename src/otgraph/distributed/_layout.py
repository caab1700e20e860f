"""How rows are cut into blocks, and how what was found for a block gets there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from otgraph._parallel import row_blocks
from otgraph.distributed._entries import entries_of, note_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from otgraph.distributed._cluster import Cluster


@dataclass(frozen=True)
class Layout:
    """Rows of each block; they depend on their number and the size of a block alone."""

    n: int
    block_rows: int
    ranges: list[tuple[int, int]]


def layout_of(n: int, block_rows: int) -> Layout:
    """Blocks of ``block_rows`` rows."""
    return Layout(n, block_rows, row_blocks(n, block_rows))


def shuffle(
    cluster: Cluster,
    layout: Layout,
    name: str,
    parcels: Sequence[Any],
    join: Callable[..., Any],
    label: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """The notes of all parcels, and the blocks that ``join`` makes of their entries."""
    notes = cluster.gather([cluster.submit("note", note_of, p) for p in parcels], label)
    blocks = []
    for b, (first, last) in enumerate(layout.ranges):
        mine = [
            cluster.submit("entries", entries_of, found, b)
            for found, (_, counts) in zip(parcels, notes, strict=True)
            if b in counts
        ]
        blocks.append(cluster.submit(name, join, layout.n, first, last, mine))
    return [note for note, _ in notes], blocks
