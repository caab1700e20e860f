"""Adaptive, sparse neighborhood graphs by quadratically regularized optimal transport.

Names are loaded when they are first used, so ``import otgraph`` itself costs almost nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otgraph import datasets as datasets
    from otgraph import exceptions as exceptions
    from otgraph import graphs as graphs
    from otgraph import plots as plots
    from otgraph.graphs import Graph as Graph
    from otgraph.graphs import entropic_ot_graph as entropic_ot_graph
    from otgraph.graphs import eps_path as eps_path
    from otgraph.graphs import gaussian_graph as gaussian_graph
    from otgraph.graphs import knn_gaussian_graph as knn_gaussian_graph
    from otgraph.graphs import load_graph as load_graph
    from otgraph.graphs import magic_graph as magic_graph
    from otgraph.graphs import quadratic_ot_graph as quadratic_ot_graph
    from otgraph.solvers import Certificate as Certificate

    __version__: str

_SUBMODULES = ("datasets", "exceptions", "graphs", "plots")
_HOME_OF = {
    "Certificate": "solvers",
    "Graph": "graphs",
    "entropic_ot_graph": "graphs",
    "eps_path": "graphs",
    "gaussian_graph": "graphs",
    "knn_gaussian_graph": "graphs",
    "load_graph": "graphs",
    "magic_graph": "graphs",
    "quadratic_ot_graph": "graphs",
}

__all__ = [
    *_SUBMODULES,
    *_HOME_OF,
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        value: Any = importlib.import_module(f"otgraph.{name}")
    elif name in _HOME_OF:
        value = getattr(importlib.import_module(f"otgraph.{_HOME_OF[name]}"), name)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("otgraph")
    else:
        msg = f"module 'otgraph' has no attribute {name!r}"
        raise AttributeError(msg)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
