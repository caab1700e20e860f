"""Lower bounds: what the machine would need for the work that no way around is known for.

Two rates are measured once per run, on all cores: float32 products, and memory that is read. A line
says how many flops and bytes it cannot avoid, and the time of both is its bound. That is no proof;
the reasons stand beside the numbers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

INDEX, SINGLE, DOUBLE = 4, 4, 8  # bytes
ENTRY = INDEX + DOUBLE  # a candidate pair in one of its rows, or an entry of a graph
# Passes over the candidates: starts, evaluations of about eight Newton steps, the plan.
PASSES = 12
CANDIDATES = 30  # per point
# Share of the pairs of a point that cells of the usual number cannot exclude (benchmarks/README.md:
# 11 % of line 10a with the final bounds).
NOT_EXCLUDED = 0.11
SECONDS = 0.5  # of each measurement of a rate


@dataclass(frozen=True)
class Least:
    """Work that cannot be avoided, as far as we know, and why."""

    reason: str
    flops: float = 0.0  # of float32 products
    bytes: float = 0.0

    def seconds(self, rates: dict[str, float]) -> float:
        """The time of this work on a machine."""
        return self.flops / rates["flops"] + self.bytes / rates["bytes"]


def graph_of(n: int, d: int, share: float, *, degree: float = 15.0) -> Least:
    """A transport graph: products for a share of all pairs, each once, then passes over few."""
    return Least(
        f"products of {share:.0%} of the pairs, {PASSES} passes over {CANDIDATES} candidates",
        flops=share * n * n * d,
        bytes=n * (SINGLE * d + ENTRY * (PASSES * CANDIDATES + degree)),
    )


def neighbors_of(n: int, d: int, k: int, share: float) -> Least:
    """Exact neighbors: products in both directions, since every point has a list of its own."""
    return Least(
        f"products of {share:.0%} of the pairs in both directions",
        flops=2.0 * share * n * n * d,
        bytes=n * (SINGLE * d + ENTRY * k),
    )


def products_of(n: int, degree: float, count: float, columns: float = 1.0) -> Least:
    """Products of a graph with columns: its entries and one number for each are read."""
    return Least(
        f"{count:,.0f} products with {columns:,.0f} column(s)",
        bytes=count * n * degree * (ENTRY + DOUBLE * columns),
    )


def rates(_: Any = None) -> dict[str, Any]:
    """Flops of float32 products and bytes read per second, on all cores."""
    from concurrent.futures import ThreadPoolExecutor

    from joblib import cpu_count

    cores = cpu_count()
    A = np.ones((2048, 512), np.float32)
    product = np.empty((2048, 2048), np.float32)
    flops = 2.0 * 2048 * 2048 * 512 / _fastest(lambda: np.matmul(A, A.T, out=product))
    parts = np.ones((cores, 1 << 24))
    with ThreadPoolExecutor(cores) as threads:
        read = _fastest(lambda: list(threads.map(np.sum, parts)))
    return {"seconds": 2.0 * SECONDS, "flops": flops, "bytes": parts.nbytes / read}


def _fastest(call: Any) -> float:
    best, end = np.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return float(best)
