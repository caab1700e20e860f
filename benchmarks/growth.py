"""How time and memory grow with the number of points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {
    "approximate": [10_000, 30_000, 100_000],
    "exact": [5_000, 10_000, 30_000, 100_000],
}
LARGE_SIZES = {"approximate": [300_000, 1_000_000], "exact": []}


def measure(
    run: Callable[[dict[str, Any]], dict[str, Any]], *, large: bool
) -> list[dict[str, Any]]:
    """Time and memory of both searches at a mean degree of 15, and of the solve alone."""
    rows = []
    for search, sizes in SIZES.items():
        for n in sizes + (LARGE_SIZES[search] if large else []):
            options = {"mean_degree": 15, "search": search}
            spec = {"job": "otgraph", "data": "manifold", "n": n, "options": options}
            result = run(spec)
            # The same problem on the edges found, given as candidates: no search, no screen.
            solve = run({**spec, "job": "solve_only"})
            rows.append(
                {
                    "search": search,
                    "n": n,
                    "seconds": result["seconds"],
                    "peak_gb": result["peak_gb"],
                    "solve_seconds": solve["seconds"],
                }
            )
            print(f"  growth, {search}, n = {n}: {result['seconds']:.2f} s", flush=True)
    return rows


def exponent(rows: list[dict[str, Any]], key: str) -> float:
    """Slope of log ``key`` against log n."""
    n, value = np.array([[row["n"], row[key]] for row in rows]).T
    return float(np.polyfit(np.log(n), np.log(value), 1)[0])


def table(rows: list[dict[str, Any]]) -> str:
    """Measurements and fitted exponents as Markdown."""
    out = ["| search | n | seconds | solve alone | peak GB |", "|---|---|---|---|---|"]
    for row in rows:
        out.append(
            f"| {row['search']} | {row['n']:,} | {row['seconds']:.2f} | "
            f"{row['solve_seconds']:.2f} | {row['peak_gb']:.2f} |"
        )
    for search in SIZES:
        mine = [row for row in rows if row["search"] == search]
        out.append(
            f"| {search} | exponent | {exponent(mine, 'seconds'):.2f} | "
            f"{exponent(mine, 'solve_seconds'):.2f} | {exponent(mine, 'peak_gb'):.2f} |"
        )
    return "\n".join(out)
