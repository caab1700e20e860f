"""Command line: ``otgraph graph points.csv -o graph.otg --eps 1``.

Commands only read files, call the public functions of the package and write files. Their
modules import nothing heavy; what a command needs is imported when it runs.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of ``otgraph`` and of ``python -m otgraph``."""
    try:
        from otgraph.cli.app import run
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        print(
            'otgraph: the command line needs typer; get it with `pip install "otgraph[cli]"`',
            file=sys.stderr,
        )
        sys.exit(1)
    sys.exit(run())
