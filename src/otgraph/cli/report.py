"""What a command says when it is done: rows for people, an object for machines."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from otgraph._memory import megabytes, peak_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph.cli.options import RunOptions

LABEL_WIDTH = 12  # of the longest label, and a space


@dataclass
class Report:
    """Filled while a command runs, shown at its end.

    Attributes
    ----------
    rows
        Label and text; a row without a label is printed as it is.
    brief
        The essence, for the one line that a pipe gets.
    facts
        The same for machines.
    body
        Text that is the very result of the command; it is printed unless JSON is wanted.
    streamed
        The result went to standard output, so that the report may not.
    not_converged
        Whether a solver gave up.
    written
        Files.
    seconds
        Time of each part of the work.
    """

    command: str
    rows: list[tuple[str, str]] = field(default_factory=list)
    brief: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    body: str | None = None
    streamed: bool = False
    not_converged: bool = False
    written: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of a part of the work."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def row(self, label: str, text: str) -> None:
        """Add a row for people."""
        self.rows.append((label, text))

    def wrote(self, *paths: str) -> None:
        """Say which files were written."""
        self.written += paths

    def text(self) -> str:
        """All rows, aligned."""
        return "\n".join(
            f"{label:{LABEL_WIDTH}}{text}" if label else text for label, text in self.rows
        )

    def finish(self, seconds: float, warnings: list[str], not_converged: bool) -> None:
        """Add what holds for every command."""
        peak = peak_bytes()
        self.not_converged = not_converged
        self.brief.append(f"{seconds:.1f} s")
        stages = ", ".join(f"{name} {part:.2f}" for name, part in self.seconds.items())
        self.row("time", f"{seconds:.2f} s" + (f" ({stages})" if stages else ""))
        if peak is not None:
            self.row("memory", f"{megabytes(peak)} at most")
        if self.written:
            self.row("written", ", ".join(self.written))
        if not_converged:
            self.row("", "NOT CONVERGED: see the warning; exit code 3")
        self.facts = {
            "command": self.command,
            **self.facts,
            "written": self.written,
            "converged": not not_converged,
            "warnings": warnings,
            "seconds": {**self.seconds, "total": seconds},
            "peak_memory_bytes": peak,
        }

    def show(self, run: RunOptions) -> None:
        """Print what was asked for, where it belongs."""
        if run.json:
            print(json.dumps(plain(self.facts)))
            return
        if self.body is not None:
            print(self.body)
        stream = sys.stderr if self.streamed else sys.stdout
        terminal = stream.isatty()
        if run.verbose or (run.verbose is None and terminal):
            print(self.text(), file=stream)
        elif run.verbose is None and self.body is None and not self.streamed:
            state = ["NOT CONVERGED"] if self.not_converged else []
            where = ", ".join(self.written) or self.command
            print(f"{where}: {', '.join([*state, *self.brief])}", file=stream)


def plain(value: Any) -> Any:
    """The value in the types that JSON knows; what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
