"""What memory there is, to be asked before it is taken."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Assumed where the system does not tell: a small laptop.
UNKNOWN_BYTES = 4 << 30


def available_bytes() -> int:
    """Memory that can be taken without swapping, as far as the system tells."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_BYTES


def megabytes(n_bytes: float) -> str:
    """A size for people."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"


def peak_bytes() -> int | None:
    """Most memory that this process has held so far; None where the system does not tell."""
    # Not `resource` on Linux: its figure includes what the parent held before this began.
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)  # only macOS counts in bytes
