"""Command line: ``otgraph graph points.csv -o graph.otg``.

Commands only read files, call the public functions of the package and write files. Their
modules import nothing heavy; what a command needs is imported when it runs.
"""

from __future__ import annotations

import signal
import sys

__all__ = ["main"]

TERMINATED = 128 + signal.SIGTERM  # as shells count


def main() -> None:
    """Entry point of ``otgraph`` and of ``python -m otgraph``."""
    # As an exception, which removes half-written files on its way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
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
