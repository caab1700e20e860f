"""Seeded point clouds: those of the paper, and one that scales to a million points."""

from __future__ import annotations

from otgraph.datasets.clouds import gaussian_mixture, noisy_manifold
from otgraph.datasets.curves import closed_curve, label_mask, noisy_spiral, spiral_arms
from otgraph.datasets.sample import Sample

__all__ = [
    "Sample",
    "closed_curve",
    "gaussian_mixture",
    "label_mask",
    "noisy_manifold",
    "noisy_spiral",
    "spiral_arms",
]
