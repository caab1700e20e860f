"""Adaptive, sparse neighborhood graphs by quadratically regularized optimal transport.

Names are loaded when they are first used, so ``import otgraph`` itself costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph._optional import lazily

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
        CrossGraph,
        Doubt,
        EpsChoice,
        EpsPath,
        Graph,
        IntrinsicDimension,
        LabelTransfer,
        MeanCertificate,
        MultiscaleGraph,
        TransportGraph,
        balanced_mass,
        entropic_ot_graph,
        eps_path,
        gaussian_graph,
        intrinsic_dimension,
        knn_gaussian_graph,
        load_graph,
        magic_graph,
        multiscale_graph,
        quadratic_ot_graph,
        transport_graph,
    )
    from otgraph.methods import (
        Clustering,
        Embedding,
        LabelSpread,
        Metacells,
        choose_eps,
        cluster,
        denoise,
        eigenmaps,
        metacells,
        spread_labels,
        subspace_angle,
    )
    from otgraph.solvers import Certificate, Reason, Status, Verification

    __version__: str

__all__ = [
    "Certificate",
    "Clustering",
    "CrossGraph",
    "Doubt",
    "Embedding",
    "EpsChoice",
    "EpsPath",
    "Graph",
    "IntrinsicDimension",
    "LabelSpread",
    "LabelTransfer",
    "MeanCertificate",
    "Metacells",
    "MultiscaleGraph",
    "Reason",
    "Status",
    "TransportGraph",
    "Verification",
    "__version__",
    "balanced_mass",
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
    "intrinsic_dimension",
    "knn_gaussian_graph",
    "load_graph",
    "magic_graph",
    "metacells",
    "methods",
    "multiscale_graph",
    "plots",
    "quadratic_ot_graph",
    "singlecell",
    "spread_labels",
    "subspace_angle",
    "transport_graph",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("otgraph")
    # A package, or a name of one of these; the first is light, and the others load each other.
    return lazily(__name__, name, __all__, ("graphs", "solvers", "methods"))


def __dir__() -> list[str]:
    return list(__all__)
