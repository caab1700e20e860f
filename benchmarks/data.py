"""The point sets of the benchmarks, by name."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np

FILES = Path("out/bench/points")
FILE_BLOCK = 1 << 16  # points that are made at once
CELLS_BLOCK = 4096  # 64 MB of rates with 2000 genes
COUNTS_OF_CELL = 500.0  # mean library size: a tenth of 2000 genes is seen in a cell


def make(name: str, n: int, *, dim: int | None = None) -> Any:
    """Points as the library and its peers get them."""
    return MAKERS[name](n, dim)


def manifold(n: int, dim: int | None) -> Any:
    """A noisy manifold with uneven noise: 5-dimensional in 50 dimensions, 2-dimensional in 10."""
    from otgraph import datasets

    d = dim or 50
    return datasets.noisy_manifold(n, dim=d, intrinsic_dim=min(5, d // 4), dtype=np.float32).X


def gaussian(n: int, dim: int | None) -> Any:
    """Isotropic Gaussians: nothing to exclude, and nearest neighbors that are hubs."""
    return np.random.default_rng(0).normal(size=(n, dim or 250)).astype(np.float32)


def spiral(n: int, dim: int | None) -> Any:
    """The paper's spiral in 3 dimensions, without an ambient space, thickened by noise."""
    from otgraph import datasets

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


def cells(n: int, dim: int | None) -> Any:
    """Counts of genes along a curved surface of cell states, by library size, as square roots."""
    import scipy.sparse as sp

    genes, rng = dim or 2000, np.random.default_rng(0)
    frequencies, phases = rng.normal(size=(3, 12)), rng.uniform(0, 2 * np.pi, 12)
    base, loadings = rng.normal(scale=1.5, size=genes), rng.normal(scale=0.5, size=(12, genes))
    blocks = []
    for first in range(0, n, CELLS_BLOCK):
        states = rng.random((min(CELLS_BLOCK, n - first), 3))
        rates = np.exp(base + np.cos(2 * np.pi * states @ frequencies + phases) @ loadings)
        counts = rng.poisson(COUNTS_OF_CELL * rates / rates.sum(axis=1, keepdims=True))
        sizes = np.maximum(counts.sum(axis=1, keepdims=True), 1)
        blocks.append(sp.csr_matrix(np.sqrt(counts * (COUNTS_OF_CELL / sizes)), dtype=np.float32))
    return sp.vstack(blocks, format="csr")


def manifold_file(n: int, dim: int | None) -> Any:
    """The noisy manifold from a file that is mapped into memory, as float32."""
    return np.load(manifold_path(n, dim), mmap_mode="r")


def manifold_path(n: int, dim: int | None = None) -> Path:
    """The file of the noisy manifold.

    It is made by a process of its own if it is missing, so that only reading it counts.
    """
    path = FILES / f"manifold-{n}-{dim or 50}.npy"
    if not path.exists():
        maker = multiprocessing.get_context("spawn").Process(target=_write, args=(path, n, dim))
        maker.start()
        maker.join()
    return path


def _write(path: Path, n: int, dim: int | None) -> None:
    """Blocks of points around one manifold; `noisy_manifold` would bend each in another way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new, d = path.with_suffix(".new"), dim or 50
    k = min(5, d // 4)
    rng = np.random.default_rng(0)
    frequencies, phases = 1.5 * rng.standard_normal((k, 4 * k)), rng.uniform(0, 2 * np.pi, 4 * k)
    basis = np.linalg.qr(rng.standard_normal((d, 4 * k)))[0]
    out = np.lib.format.open_memmap(new, mode="w+", dtype=np.float32, shape=(n, d))
    for first in range(0, n, FILE_BLOCK):
        t = rng.random((min(FILE_BLOCK, n - first), k))
        noise = rng.standard_normal((len(t), d))
        radius = 0.3 * (0.05 + 0.95 * (1 + np.cos(2 * np.pi * t[:, :1])) / 2)
        noise *= radius / np.linalg.norm(noise, axis=1, keepdims=True)
        clean = np.sqrt(0.5 / k) * np.cos(t @ frequencies + phases)
        out[first : first + len(t)] = clean @ basis.T + noise
    out.flush()
    new.rename(path)


MAKERS = {
    "manifold": manifold, "gaussian": gaussian, "spiral": spiral, "clusters": clusters,
    "manifold_file": manifold_file, "cells": cells,
}  # fmt: skip
