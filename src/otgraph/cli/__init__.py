"""Command line: ``otgraph graph points.csv -o graph.otg``.

Commands read files, call the public functions of the package and write files. Large packages are
imported only when a command that needs them runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

__all__ = ["main"]

TERMINATED = 128 + signal.SIGTERM  # as shells count


def main() -> None:
    """Entry point of ``otgraph`` and of ``python -m otgraph``."""
    _end_on_termination()
    _open_closed_streams()
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


def _end_on_termination() -> None:
    """Turn the signal into an exception, so that half-written files are removed.

    A second signal kills at once, even while compiled code runs, which keeps Python from
    handling the first.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes

        # The system forgets a handler that is set this way when it is called (glibc, musl).
        once = ctypes.CDLL(None).sysv_signal
        once.argtypes, once.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
        once(signal.SIGTERM, once(signal.SIGTERM, None))


def _open_closed_streams() -> None:
    """Open standard streams that the caller has closed: ``otgraph ... >&-``.

    Their descriptors would go to the next files that are opened, which libraries then print to.
    What is written is dropped, and there is nothing to read.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor, this one
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
