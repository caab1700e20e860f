"""Store scores during a run; an interrupted run continues from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from otgraph._atomic import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from otgraph.experiments._framework.experiment import Params, Row, Task

FILE_NAME = "scores.partial.jsonl"


class Checkpoint:
    """A file with one line per finished task, after a line with the settings.

    Scores of other settings (another grid, other data, another version) are discarded. An
    incomplete last line is dropped.
    """

    def __init__(self, folder: Path, settings: Params) -> None:
        self.path = folder / FILE_NAME
        self._header = json.dumps(settings, sort_keys=True)
        self.finished = self._read()

    def _read(self) -> dict[str, list[Row]]:
        if not self.path.exists():
            return {}
        header, *lines = self.path.read_text(encoding="utf-8").split("\n")
        if header != self._header:
            return {}
        finished: dict[str, list[Row]] = {}
        for line in lines[:-1]:  # the part after the last line break is empty or incomplete
            key, rows = json.loads(line)
            finished[key] = rows
        return finished

    def start(self) -> None:
        """Write the known scores again, without an incomplete last line."""
        lines = [self._header, *(json.dumps(item) for item in self.finished.items())]
        with replacing(str(self.path)) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())

    def add(self, task: Task, rows: list[Row]) -> None:
        """Store the scores of a task as one line."""
        self.finished[task.key] = rows
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([task.key, rows]) + "\n")

    def remove(self) -> None:
        """Remove the file after a complete run."""
        self.path.unlink(missing_ok=True)
