"""What a report says about a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otgraph.cli.report import Report
    from otgraph.graphs import Graph


def describe_graph(report: Report, graph: Graph) -> None:
    """Certificate, parameters, degrees and components, for people and for machines."""
    degrees, certificate = graph.degrees, getattr(graph, "certificate", None)
    n_edges = int(degrees.sum(dtype=np.int64)) // 2
    n_loops = int(np.count_nonzero(graph.weights.diagonal()))
    if certificate is not None:
        report.row("certificate", str(certificate).replace("\n", f"\n{' ' * 12}"))
        report.brief.append(certificate.status.value)
        report.not_converged |= certificate.status == "not_converged"
    else:
        report.row("graph", _listed_params(graph))
    loops = f", and {n_loops:,} self-loops" if n_loops else ""
    report.row("edges", f"{n_edges:,}{loops}")
    report.row(
        "degrees",
        f"{degrees.min()} / {np.median(degrees):.0f} / {degrees.mean():.1f} / {degrees.max()} "
        "(min / median / mean / max)",
    )
    isolated = int(np.count_nonzero(degrees == 0))
    alone = f", {isolated:,} of them single points" if isolated else ""
    report.row("components", f"{graph.n_connected:,}{alone}")
    report.brief += [
        f"{graph.n:,} points",
        f"{n_edges:,} edges",
        f"mean degree {degrees.mean():.1f}",
        f"{graph.n_connected:,} component(s)",
    ]
    report.facts |= {
        "n_points": graph.n,
        "n_edges": n_edges,
        "n_self_loops": n_loops,
        "degree": {
            "min": int(degrees.min()),
            "median": float(np.median(degrees)),
            "mean": float(degrees.mean()),
            "max": int(degrees.max()),
        },
        "n_connected": graph.n_connected,
        "n_isolated": isolated,
        "params": dict(graph.params),
        "certificate": None if certificate is None else certificate.record(),
    }


def _listed_params(graph: Graph) -> str:
    return ", ".join(
        f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in graph.params.items()
        if value is not None
    )
