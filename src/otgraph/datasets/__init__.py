"""Seeded point clouds, among them those of the paper, and single cells."""

from __future__ import annotations

from otgraph.datasets.cells import Cells, load_cells
from otgraph.datasets.clouds import gaussian_mixture, noisy_manifold
from otgraph.datasets.curves import (
    closed_curve,
    elephant_curve,
    label_mask,
    noisy_spiral,
    spiral_arms,
)
from otgraph.datasets.expression import (
    keep_common_genes,
    keep_large_cells,
    normalize_totals,
    prepare_cells,
    square_root,
)
from otgraph.datasets.manifolds import circle, flat_torus, sphere
from otgraph.datasets.sample import Sample
from otgraph.datasets.simulation import SimulatedCells, simulated_cells

__all__ = [
    "Cells",
    "Sample",
    "SimulatedCells",
    "circle",
    "closed_curve",
    "elephant_curve",
    "flat_torus",
    "gaussian_mixture",
    "keep_common_genes",
    "keep_large_cells",
    "label_mask",
    "load_cells",
    "noisy_manifold",
    "noisy_spiral",
    "normalize_totals",
    "prepare_cells",
    "simulated_cells",
    "sphere",
    "spiral_arms",
    "square_root",
]
