"""Tables of docs/singlecell.md, from the measured results."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import numpy as np

QUIET = 0.5  # load before a measurement whose times mean something
RARE = 6  # of the simulated types, the rarest ones are shown
PAGE_WIDTH = 100  # of its lines


def with_tables(page: str, results: dict[str, Any]) -> str:
    """The page with every ``<!-- name -->`` ... ``<!-- end -->`` filled from the results."""

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        part = name.split()[0]
        if part not in results:
            return match[0]
        return f"<!-- {name} -->\n\n{TABLES[name](results[part])}\n\n<!-- end -->"

    return re.sub(
        r"<!-- (?P<name>(?:pbmc|copies|cells|connected) [a-z ]+) -->.*?<!-- end -->",
        fill,
        page,
        flags=re.S,
    )


def table(header: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def pbmc_leiden(result: dict[str, Any]) -> str:
    """ARI and NMI by resolution: defaults, and each package at its best size."""
    size = result["default_size"]
    columns = {
        f"otgraph, degree {size}": f"otgraph_{size}",
        f"scanpy, k = {size}": f"scanpy_{size}",
    }
    for package, word in (("otgraph", "degree"), ("scanpy", "k =")):
        best = best_size(result, package)
        columns[f"{package}, best: {word} {best}"] = f"{package}_{best}"
    header = ["resolution", *columns]
    rows = []
    for i, resolution in enumerate(result["resolutions"]):
        scores = [result["leiden"][key][i] for key in columns.values()]
        rows.append([f"{resolution:g}", *(f"{s['ari']:.3f} / {s['nmi']:.3f}" for s in scores)])
    best = [
        (
            max(s["ari"] for s in result["leiden"][key]),
            max(s["nmi"] for s in result["leiden"][key]),
        )
        for key in columns.values()
    ]
    rows.append(["**best**", *(f"**{ari:.3f} / {nmi:.3f}**" for ari, nmi in best)])
    return table(header, rows)


def best_size(result: dict[str, Any], package: str) -> int:
    """Size whose best adjusted Rand index over the resolutions is largest."""
    return max(
        result["sizes"], key=lambda k: max(s["ari"] for s in result["leiden"][f"{package}_{k}"])
    )


def pbmc_sizes(result: dict[str, Any]) -> str:
    """Best ARI and NMI over the resolutions, by size of the neighborhoods."""
    names = {
        "otgraph": "otgraph",
        "exact": "otgraph, exact weights in place of connectivities",
        "scanpy": "scanpy",
    }
    header = ["mean degree, or k", *names.values(), "mean degree of scanpy's graph"]
    rows = []
    for size in result["sizes"]:
        row = [str(size)]
        for package in names:
            scores = result["leiden"][f"{package}_{size}"]
            ari, nmi = (max(s[key] for s in scores) for key in ("ari", "nmi"))
            row.append(f"{ari:.3f} / {nmi:.3f}")
        rows.append([*row, f"{result['mean_degree'][f'scanpy_{size}']:.1f}"])
    return table(header, rows)


def pbmc_labels(result: dict[str, Any]) -> str:
    """Accuracy of label spreading."""
    spreading = result["spreading"]
    rows = []
    for key, values in spreading.items():
        if not isinstance(values, dict):
            continue
        package, choice = key.split("_")
        found = 100 * np.array(values["accuracies"])
        rows.append(
            [
                package,
                "default size" if choice == "default" else "size chosen on other seeds",
                str(values["size"]),
                f"{values['mu']:g}",
                f"{found.mean():.1f} ± {found.std(ddof=1):.1f}",
            ]
        )
    return table(["graph", "", "mean degree, or k", "μ chosen on other seeds", "accuracy, %"], rows)


def copies_umap(result: dict[str, Any]) -> str:
    """Edges that umap keeps and draws."""
    header = [
        "cells that are there twice", "matrix given to umap", "edges per cell", "kept by umap",
        "times an edge is drawn", "trustworthiness",
    ]  # fmt: skip
    rows = [
        [
            f"{100 * row['share']:g} %", f"`{row['matrix']}`", f"{row['stored']:.1f}",
            f"{row['kept']:.1f}", f"{row['draws']:.0f}", f"{row['trustworthiness']:.3f}",
        ]
        for row in result["rows"]
    ]  # fmt: skip
    return table(header, rows)


def cells_time(result: dict[str, Any]) -> str:
    """Fastest run and its memory."""
    rows = []
    for name, found in result["contenders"].items():
        seconds = [run["seconds"] for run in found["runs"]]
        peak = min(run["peak_gb"] for run in found["runs"])
        before = min(run["before_gb"] for run in found["runs"])
        rows.append(
            [
                name,
                f"{min(seconds):.1f}",
                f"{max(seconds):.1f}",
                f"{before:.2f}",
                f"{peak:.2f}",
                f"{found['graph']['mean_degree']:.1f}",
                found["graph"]["status"] or "approximate neighbors",
            ]
        )
    header = [
        "`pp.neighbors` of", "fastest run, s", "slowest run, s", "memory before, GB", "peak, GB",
        "mean degree", "status",
    ]  # fmt: skip
    return table(header, rows)


def cells_rare(result: dict[str, Any]) -> str:
    """Per-type recall of label spreading and best F1 of leiden, for the rarest types."""
    names = list(result["contenders"])
    header = ["type", "cells", *(f"labels, {n}" for n in names), *(f"leiden, {n}" for n in names)]
    best = {name: best_leiden(found) for name, found in result["contenders"].items()}
    rows = []
    for kind in range(result["types"] - RARE, result["types"]):
        recalls = [result["contenders"][n]["spreading"]["recall"][kind] for n in names]
        f1 = [best[n]["f1"][kind] for n in names]
        rows.append(
            [
                str(kind),
                str(result["sizes"][kind]),
                *(f"{r:.2f}" for r in recalls),
                *(f"{f:.2f}" for f in f1),
            ]
        )
    accuracy = [result["contenders"][n]["spreading"]["accuracy"] for n in names]
    rows.append(
        [
            "all",
            str(result["n"]),
            *(f"{a:.4f}" for a in accuracy),
            *(f"ARI {best[n]['ari']:.3f} at {best[n]['resolution']:g}" for n in names),
        ]
    )
    return table(header, rows)


def best_leiden(found: dict[str, Any]) -> dict[str, Any]:
    """The resolution with the largest mean F1 over the types."""
    best: dict[str, Any] = max(found["leiden"], key=lambda row: np.mean(row["f1"]))
    return best


def connected_components(result: dict[str, Any]) -> str:
    """Components and degrees of scanpy's graph and ours, and what lies between our components."""
    header = [
        "cells", "", "components: scanpy", "default", "`connect=True`", "degrees: scanpy",
        "default", "infinite pseudotime: scanpy", "default", "`connect=True`",
        "types torn apart", "scanpy's edges between our components",
    ]  # fmt: skip
    rows = []
    for one in result["sets"]:
        graphs = [one[key] for key in ("scanpy", "default", "connected")]
        rows.append([
            one["name"],
            str(one["n"]),
            *(str(graph["components"]) for graph in graphs),
            *(f"{graph['smallest_degree']} to {graph['largest_degree']}" for graph in graphs[:2]),
            *(str(graph["infinite"]) for graph in graphs),
            str(one["types_in_several_components"]),
            f"{one['scanpys_edges_between']} ({100 * one['scanpys_weight_between']:.2f} % of the "
            "weight)",
        ])  # fmt: skip
    return table(header, rows)


def environment(result: dict[str, Any]) -> str:
    """Versions of everything that matters."""
    return textwrap.fill(_environment(result), PAGE_WIDTH, break_on_hyphens=False)


def _environment(result: dict[str, Any]) -> str:
    found = {k: v for k, v in result["environment"].items() if k not in ("python", "cores", "load")}
    packages = ", ".join(f"{name} {version}" for name, version in found.items())
    python, cores = (result["environment"][key] for key in ("python", "cores"))
    return f"Python {python}, {cores} cores; {packages}."


def timed_environment(result: dict[str, Any]) -> str:
    """The same, and whether the machine had other work."""
    quiet = result["environment"].get("load", QUIET) < QUIET
    warning = "**Other programs were running: these times mean little.** "
    text = ("" if quiet else warning) + _environment(result)
    return textwrap.fill(text, PAGE_WIDTH, break_on_hyphens=False)


TABLES = {
    "pbmc leiden": pbmc_leiden,
    "pbmc sizes": pbmc_sizes,
    "pbmc labels": pbmc_labels,
    "pbmc environment": environment,
    "copies umap": copies_umap,
    "connected components": connected_components,
    "connected environment": environment,
    "cells time": cells_time,
    "cells rare": cells_rare,
    "cells environment": timed_environment,
}
