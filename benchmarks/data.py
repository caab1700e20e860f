"""The point sets of the benchmarks, by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from otgraph import datasets


def make(name: str, n: int, *, dim: int | None = None) -> Any:
    """Points as the library and its peers get them."""
    return MAKERS[name](n, dim)


def manifold(n: int, dim: int | None) -> Any:
    """A noisy manifold with uneven noise: 5-dimensional in 50 dimensions, 2-dimensional in 10."""
    d = dim or 50
    return datasets.noisy_manifold(n, dim=d, intrinsic_dim=min(5, d // 4), dtype=np.float32).X


def gaussian(n: int, dim: int | None) -> Any:
    """Isotropic Gaussians: nothing to exclude, and nearest neighbors that are hubs."""
    return np.random.default_rng(0).normal(size=(n, dim or 250)).astype(np.float32)


def spiral(n: int, dim: int | None) -> Any:
    """The paper's spiral in 3 dimensions, without an ambient space, thickened by noise."""
    del dim
    return datasets.noisy_spiral(n, dim=3, noise=0.2, dtype=np.float32).X


def clusters(n: int, dim: int | None) -> Any:
    """Fifty clusters of very different size and width."""
    rng = np.random.default_rng(0)
    d = dim or 50
    centers = rng.normal(size=(50, d))
    share = rng.dirichlet(np.full(50, 0.7))
    labels = rng.choice(50, size=n, p=share)
    width = np.exp(rng.uniform(-3.0, -0.5, size=50))
    return (centers[labels] + width[labels, None] * rng.normal(size=(n, d))).astype(np.float32)


MAKERS = {"manifold": manifold, "gaussian": gaussian, "spiral": spiral, "clusters": clusters}
