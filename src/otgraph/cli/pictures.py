"""Pictures in files, drawn without a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph._optional import require

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.cli.targets import Target

PICTURES = (".png", ".pdf", ".svg")
DPI = 200  # sharp at the width of a page
# Without the date the same result gives the same bytes.
METADATA = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
# Identifiers inside an SVG are random unless they are salted.
STYLE = {"svg.hashsalt": "otgraph"}


def write_picture(target: Target, draw: Callable[[Any], object]) -> None:
    """Let a function draw into new axes, and write what it drew."""
    figure = require("matplotlib.figure", "plots").Figure(layout="constrained")
    draw(figure.add_subplot())
    write_figure(target, figure)


def write_figure(target: Target, figure: Any) -> None:
    """Write a figure in the format of the name."""
    with require("matplotlib", "plots").rc_context(STYLE), target.open() as file:
        figure.savefig(
            file,
            format=target.suffix.removeprefix("."),
            dpi=DPI,
            bbox_inches="tight",
            metadata=METADATA[target.suffix],
        )
