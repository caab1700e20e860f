"""The lines of Python, and the command, that build a graph again and save it."""

from __future__ import annotations

import inspect
import shlex
from typing import TYPE_CHECKING

import numpy as np

from otgraph.graphs.quadratic import quadratic_ot_graph

if TYPE_CHECKING:
    from otgraph.graphs.graph import TransportGraph

METHOD = "quadratic"
FILE = "graph.otg"  # keeps the certificate
# Up to this many points `search="auto"` is always exact, so `search` is not shown.
ALWAYS_EXACT = 100_000
# What the keywords whose default is None mean for a given eps.
WITH_EPS = {"min_degree": 0, "connect": False}


def rebuilding(graph: TransportGraph, source: str) -> dict[str, str]:
    """Texts ``python`` and ``command``; ``source`` is the file name in the command."""
    keywords, unknown = chosen_keywords(graph)
    python = {name: repr(value) for name, value in keywords.items()} | unknown
    arguments = ", ".join(f"{name}={text}" for name, text in python.items())
    typed = keywords | {name: text.upper() for name, text in unknown.items()}
    options = " ".join(_option(name, value) for name, value in typed.items())
    return {
        "python": f"graph = otgraph.quadratic_ot_graph(X, {arguments})\ngraph.save({FILE!r})",
        "command": f"otgraph graph {source} -o {FILE} {options}",
    }


def chosen_keywords(graph: TransportGraph) -> tuple[dict[str, object], dict[str, str]]:
    """``eps`` and every keyword that differs from its default; variables for unknown values."""
    params = graph.params
    chosen: dict[str, object] = {"eps": params["eps"]}
    for name, parameter in inspect.signature(quadratic_ot_graph).parameters.items():
        recorded = name in params and name not in ("eps", "mean_degree")
        if recorded and params[name] != WITH_EPS.get(name, parameter.default):
            chosen[name] = params[name]
    if graph.n_connected > 1 and not params.get("connect"):
        chosen["connect"] = False  # the page shows several components, so no warning is needed
    if chosen.get("search") == "exact" and graph.n <= ALWAYS_EXACT:
        del chosen["search"]
    unknown = {}
    if str(params.get("metric")).startswith("callable "):
        unknown["metric"] = str(params["metric"]).removeprefix("callable ") or "metric"
    if np.any(graph.mass != 1.0):
        unknown["mass"] = "mass"
    return chosen, unknown


def _option(name: str, value: object) -> str:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {shlex.quote(str(value))}"
