"""Adaptive, sparse neighborhood graphs by quadratically regularized optimal transport.

Names are loaded when they are first used, so ``import otgraph`` itself costs almost nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otgraph import (
        datasets,
        distributed,
        estimators,
        exceptions,
        experiments,
        graphs,
        methods,
        plots,
        singlecell,
    )
    from otgraph.graphs import (
        Doubt,
        EpsChoice,
        EpsPath,
        Graph,
        TransportGraph,
        entropic_ot_graph,
        eps_path,
        gaussian_graph,
        knn_gaussian_graph,
        load_graph,
        magic_graph,
        quadratic_ot_graph,
    )
    from otgraph.methods import (
        Clustering,
        Embedding,
        LabelSpread,
        choose_eps,
        cluster,
        denoise,
        eigenmaps,
        spread_labels,
        subspace_angle,
    )
    from otgraph.solvers import Certificate, Reason, Status, Verification

    __version__: str

__all__ = [
    "Certificate",
    "Clustering",
    "Doubt",
    "Embedding",
    "EpsChoice",
    "EpsPath",
    "Graph",
    "LabelSpread",
    "Reason",
    "Status",
    "TransportGraph",
    "Verification",
    "__version__",
    "choose_eps",
    "cluster",
    "datasets",
    "denoise",
    "distributed",
    "eigenmaps",
    "entropic_ot_graph",
    "eps_path",
    "estimators",
    "exceptions",
    "experiments",
    "gaussian_graph",
    "graphs",
    "knn_gaussian_graph",
    "load_graph",
    "magic_graph",
    "methods",
    "plots",
    "quadratic_ot_graph",
    "singlecell",
    "spread_labels",
    "subspace_angle",
]

_SUBMODULES = {
    "datasets",
    "distributed",
    "estimators",
    "exceptions",
    "experiments",
    "graphs",
    "methods",
    "plots",
    "singlecell",
}
_HOME_OF = {
    "Certificate": "solvers",
    "Doubt": "graphs",
    "Clustering": "methods",
    "Embedding": "methods",
    "EpsChoice": "graphs",
    "EpsPath": "graphs",
    "Graph": "graphs",
    "LabelSpread": "methods",
    "Reason": "solvers",
    "Status": "solvers",
    "TransportGraph": "graphs",
    "Verification": "solvers",
    "choose_eps": "methods",
    "cluster": "methods",
    "denoise": "methods",
    "eigenmaps": "methods",
    "entropic_ot_graph": "graphs",
    "eps_path": "graphs",
    "gaussian_graph": "graphs",
    "knn_gaussian_graph": "graphs",
    "load_graph": "graphs",
    "magic_graph": "graphs",
    "quadratic_ot_graph": "graphs",
    "spread_labels": "methods",
    "subspace_angle": "methods",
}


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
