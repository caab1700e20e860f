"""What was measured, with commit and date, so that a run can be stopped and continued.

``out/bench/measurements.json`` has one entry per measurement (a job with its data and options),
and ``out/bench/results.json`` one per line of the table. An entry counts as done if it was measured
at the present commit; ``--again`` measures it anyway.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any

OUT = Path("out/bench")


class Records:
    """Entries by name, written to a file whenever one is added."""

    def __init__(self, name: str, *, again: bool = False) -> None:
        self._path, self._again = OUT / f"{name}.json", again
        self._entries: dict[str, dict[str, Any]] = {}
        self._new: set[str] = set()
        if self._path.exists():
            self._entries = dict(json.loads(self._path.read_text()).get("entries", {}))

    def done(self, key: str) -> dict[str, Any] | None:
        """The entry of the present commit, if there is one that counts."""
        entry = self._entries.get(key)
        old = self._again and key not in self._new
        return None if entry is None or old or entry["commit"] != commit() else entry

    def add(self, key: str, entry: dict[str, Any]) -> dict[str, Any]:
        """Keep an entry, with what tells where it comes from."""
        self._entries[key] = {**entry, **origin()}
        self._new.add(key)
        OUT.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_suffix(".part")  # an interrupt does not lose the others
        unfinished.write_text(json.dumps({"entries": self._entries}, indent=1))
        unfinished.replace(self._path)
        return self._entries[key]

    def all(self) -> list[dict[str, Any]]:
        """Every entry, of whatever commit, in the order in which they were added first."""
        return list(self._entries.values())


def origin() -> dict[str, Any]:
    """Commit, date and machine of an entry."""
    return {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


@cache
def commit() -> str:
    """The commit of the working tree; with a plus sign if it has changes."""
    found = _git("rev-parse", "--short", "HEAD")
    return found + ("+" if found and _git("status", "--porcelain", "--", "src") else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()
