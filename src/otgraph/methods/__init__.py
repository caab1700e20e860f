"""Methods for a :class:`otgraph.Graph` or any symmetric sparse matrix.

Nothing here knows how the graph was built, except the choice of eps, which tries many.
"""

from __future__ import annotations

from otgraph.methods.choice import choose_eps
from otgraph.methods.clustering import Clustering, cluster
from otgraph.methods.diffusion import denoise, diffusion_time
from otgraph.methods.joining import Metacells, metacells
from otgraph.methods.measures import perplexity, subspace_angle
from otgraph.methods.spectral import Embedding, eigenmaps
from otgraph.methods.spreading import LabelSpread, spread_labels

__all__ = [
    "Clustering",
    "Embedding",
    "LabelSpread",
    "Metacells",
    "choose_eps",
    "cluster",
    "denoise",
    "diffusion_time",
    "eigenmaps",
    "metacells",
    "perplexity",
    "spread_labels",
    "subspace_angle",
]
