"""scikit-learn estimators for graphs and methods; functions do all the work.

Transformers turn points into a graph. The other estimators work on any graph: one that a
transformer builds, a `Graph`, or a precomputed matrix.
"""

from __future__ import annotations

from otgraph.estimators.clustering import GraphSpectralClustering
from otgraph.estimators.denoising import GraphDenoiser
from otgraph.estimators.embedding import GraphEigenmaps
from otgraph.estimators.labels import GraphLabelSpreading
from otgraph.estimators.transformers import (
    EntropicOTTransformer,
    GaussianTransformer,
    KNNGaussianTransformer,
    MAGICTransformer,
    MultiscaleOTTransformer,
    QuadraticOTTransformer,
)

__all__ = [
    "EntropicOTTransformer",
    "GaussianTransformer",
    "GraphDenoiser",
    "GraphEigenmaps",
    "GraphLabelSpreading",
    "GraphSpectralClustering",
    "KNNGaussianTransformer",
    "MAGICTransformer",
    "MultiscaleOTTransformer",
    "QuadraticOTTransformer",
]
