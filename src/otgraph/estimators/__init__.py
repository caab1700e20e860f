"""scikit-learn faces of the graphs and methods; all the work is done by functions.

Transformers turn points into a graph. Estimators do something with any graph: one that a
transformer builds, one that you have, or a precomputed matrix.
"""

from __future__ import annotations

from otgraph.estimators.denoising import GraphDenoiser
from otgraph.estimators.embedding import GraphEigenmaps
from otgraph.estimators.labels import GraphLabelSpreading
from otgraph.estimators.transformers import (
    EntropicOTTransformer,
    GaussianTransformer,
    KNNGaussianTransformer,
    MAGICTransformer,
    QuadraticOTTransformer,
)

__all__ = [
    "EntropicOTTransformer",
    "GaussianTransformer",
    "GraphDenoiser",
    "GraphEigenmaps",
    "GraphLabelSpreading",
    "KNNGaussianTransformer",
    "MAGICTransformer",
    "QuadraticOTTransformer",
]
