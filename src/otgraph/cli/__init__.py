"""Command line: ``otgraph graph points.csv -o graph.otg``.

Commands read files, call the public functions of the package and write files. Large packages are
imported only when a command that needs them runs.
"""

from __future__ import annotations

import signal
import sys

__all__ = ["main"]

TERMINATED = 128 + signal.SIGTERM  # as shells count


def main() -> None:
    """Entry point of ``otgraph`` and of ``python -m otgraph``."""
    # Turn the signal into an exception, so that half-written files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        from otgraph.cli.app import run
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        print(
            'otgraph: the command line needs typer; install it with `pip install "otgraph[cli]"`',
            file=sys.stderr,
        )
        sys.exit(1)
    sys.exit(run())
