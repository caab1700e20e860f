"""What memory there is, to be asked before it is taken."""

from __future__ import annotations

import os
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
