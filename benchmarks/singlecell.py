"""Graphs of cells against scanpy's: ``python -m benchmarks.singlecell [PART]``.

    pbmc       leiden and label spreading on the 700 cells that come with scanpy; two minutes
    copies     what umap makes of the exact weights and of the connectivities; one minute
    connected  components, degrees and pseudotime of scanpy's graphs and ours; two minutes
    cells      100 000 simulated cells: time, memory, rare types; ten minutes and 2 GB
    page       write the tables into docs/singlecell.md

Without a name, all of them. Results go to docs/results/singlecell.json, from which the page is
written; `cells --n 20000` tries the long one on fewer. Run it in `.venv`, which has scanpy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import (
    singlecell_cells,
    singlecell_connected,
    singlecell_copies,
    singlecell_pbmc,
    singlecell_tables,
)

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = Path("docs/results/singlecell.json")
PAGE = Path("docs/singlecell.md")
PARTS = ("pbmc", "copies", "connected", "cells", "page")


def main() -> None:
    """Measure what was asked for, keep the rest, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all by default")
    parser.add_argument("--n", type=int, default=100_000, help="number of simulated cells")
    parser.add_argument("--repeats", type=int, default=3, help="runs whose fastest counts")
    arguments = parser.parse_args()
    parts = arguments.parts or PARTS
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        "pbmc": singlecell_pbmc.measure,
        "copies": singlecell_copies.measure,
        "connected": singlecell_connected.measure,
        "cells": lambda: singlecell_cells.measure(arguments.n, arguments.repeats),
    }
    for part, measure in measures.items():
        if part in parts:
            found = environment()  # before it adds to the load itself
            results[part] = {**measure(), "environment": found}
            RESULTS.parent.mkdir(parents=True, exist_ok=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(singlecell_tables.with_tables(PAGE.read_text(), results))


def environment() -> dict[str, Any]:
    """Versions, number of cores, and how busy they were."""
    packages = ("otgraph", "scanpy", "anndata", "numpy", "scipy", "umap-learn", "igraph")
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        **{name: version(name) for name in packages},
    }


if __name__ == "__main__":
    main()
