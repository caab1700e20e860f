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
    keywords = chosen_keywords(graph)
    arguments = ", ".join(f"{name}={value!r}" for name, value in keywords.items())
    options = " ".join(_option(name, value) for name, value in keywords.items())
    return {
        "python": f"graph = otgraph.quadratic_ot_graph(X, {arguments})\ngraph.save({FILE!r})",
        "command": f"otgraph graph {source} -o {FILE} {options}",
    }


class Placeholder:
    """A keyword whose value is not recorded in the graph."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name.upper()


def chosen_keywords(graph: TransportGraph) -> dict[str, object]:
    """``eps``, and every keyword that differs from its default."""
    params = graph.params
    chosen: dict[str, object] = {"eps": params["eps"]}
    for name, parameter in inspect.signature(quadratic_ot_graph).parameters.items():
        recorded = name in params and name not in ("eps", "mean_degree")
        if recorded and params[name] != WITH_EPS.get(name, parameter.default):
            chosen[name] = params[name]
    if graph.n_connected > 1 and not params.get("connect"):
        chosen["connect"] = False  # who sees several components on the page needs no warning
    if chosen.get("search") == "exact" and graph.n <= ALWAYS_EXACT:
        del chosen["search"]
    if str(params.get("metric")).startswith("callable "):
        chosen["metric"] = Placeholder(str(params["metric"]).removeprefix("callable ") or "metric")
    if np.any(graph.mass != 1.0):
        chosen["mass"] = Placeholder("mass")
    return chosen


def _option(name: str, value: object) -> str:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {shlex.quote(str(value))}"
