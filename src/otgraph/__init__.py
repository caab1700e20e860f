"""Adaptive, sparse neighborhood graphs by quadratically regularized optimal transport.

Names are loaded when they are first used, so ``import otgraph`` itself costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph._lazy import lazy_names

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

_HOME_OF = {
    "Certificate": "solvers",
    "Clustering": "methods",
    "Doubt": "graphs",
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
    "datasets": "datasets",
    "denoise": "methods",
    "distributed": "distributed",
    "eigenmaps": "methods",
    "entropic_ot_graph": "graphs",
    "eps_path": "graphs",
    "estimators": "estimators",
    "exceptions": "exceptions",
    "experiments": "experiments",
    "gaussian_graph": "graphs",
    "graphs": "graphs",
    "knn_gaussian_graph": "graphs",
    "load_graph": "graphs",
    "magic_graph": "graphs",
    "methods": "methods",
    "plots": "plots",
    "quadratic_ot_graph": "graphs",
    "singlecell": "singlecell",
    "spread_labels": "methods",
    "subspace_angle": "methods",
}
_load = lazy_names(__name__, _HOME_OF)


def __getattr__(name: str) -> Any:
    if name != "__version__":
        return _load(name)
    from importlib.metadata import version

    return version("otgraph")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
