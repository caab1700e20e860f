"""Labeled points on which graphs are judged.

Public sets come from a file, if it is there. Everything else is made here or comes with packages.
No contender sees the labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn import datasets as toy
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from otgraph import datasets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

FILE = Path(__file__).parents[2] / "shared/data/clusters_dev.npz"
MAX_POINTS = 2500  # more points are subsampled: dense eigenvectors of 2500 points take seconds
SEED = 0
N_TOY = 600
N_CELLS = 2000
N_PCS = 30
COUNTS_PER_CELL = 1e4  # usual target of the normalization


class LabeledSet(NamedTuple):
    """Points with the truth about their groups."""

    kind: str
    name: str
    X: Any
    y: Any

    @property
    def title(self) -> str:
        """Kind and name, as options and tables give them."""
        return f"{self.kind}/{self.name}"


def sets(
    file: str | Path = FILE,
    *,
    select: Collection[str] = (),
    max_points: int = MAX_POINTS,
) -> list[LabeledSet]:
    """All labeled sets at hand.

    Parameters
    ----------
    file
        Archive with arrays ``KIND__NAME__X`` and ``KIND__NAME__y``; may be missing.
    select
        Kinds (``shape``) or titles (``shape/flame``) to keep; all by default.
    max_points
        Larger sets are subsampled with a fixed seed; zero keeps all points.
    """
    kinds = {name.split("/")[0] for name in select}
    made = [make() for kind, make in MAKERS.items() if not kinds or kind in kinds]
    read = [] if kinds and kinds <= set(MAKERS) else from_file(Path(file))
    found = [one for source in (read, *made) for one in source]
    if select:
        found = [one for one in found if one.kind in select or one.title in select]
    return [_subsampled(one, max_points) for one in found]


def from_file(file: Path) -> Iterator[LabeledSet]:
    """The sets of an archive; features of real ones have units of their own, and are scaled."""
    if not file.is_file():
        print(f"Without the public sets: there is no file {file}.")
        return
    with np.load(file) as archive:
        for key in archive.files:
            kind, name, part = key.split("__")
            if part == "X":
                X = archive[key].astype(np.float64)
                X = StandardScaler().fit_transform(X) if kind == "real" else X
                yield LabeledSet(kind, name, X, _codes(archive[f"{kind}__{name}__y"]))


def bundled() -> Iterator[LabeledSet]:
    """Tables that come with scikit-learn."""
    for name in ("iris", "wine", "breast_cancer"):
        X, y = getattr(toy, f"load_{name}")(return_X_y=True)
        yield LabeledSet("table", name, StandardScaler().fit_transform(X), y)
    X, y = toy.load_digits(return_X_y=True)
    yield LabeledSet("table", "digits", X, y)  # pixels have one unit


def toys() -> Iterator[LabeledSet]:
    """Noisy toy sets of scikit-learn."""
    noise = {"random_state": SEED, "n_samples": N_TOY}
    yield LabeledSet("toy", "moons", *toy.make_moons(noise=0.1, **noise))
    yield LabeledSet("toy", "circles", *toy.make_circles(noise=0.08, factor=0.5, **noise))
    yield LabeledSet("toy", "widths", *toy.make_blobs(cluster_std=[1.0, 2.5, 0.5], **noise))
    X, y = toy.make_blobs(**noise)
    yield LabeledSet("toy", "slanted", X @ [[0.6, -0.6], [-0.4, 0.8]], y)


def noisy() -> Iterator[LabeledSet]:
    """The paper's labeled sets: uneven noise in high dimension."""
    for name, sample in (
        ("arms", datasets.spiral_arms(noise=0.5, spacing="random")),
        ("noisy-arms", datasets.spiral_arms()),
        ("mixture", datasets.gaussian_mixture()),
    ):
        yield LabeledSet("noisy", name, sample.X, sample.labels)


def cells() -> Iterator[LabeledSet]:
    """Cells: simulated ones with rare types, and the blood cells that come with scanpy."""
    for name, n_types, rarest in (("rare", 8, 0.01), ("rarer", 12, 0.004)):
        simulated = datasets.simulated_cells(N_CELLS, n_types=n_types, rarest=rarest)
        counts = simulated.counts.toarray()
        X = np.log1p(counts * (COUNTS_PER_CELL / counts.sum(axis=1, keepdims=True)))
        components = PCA(N_PCS, svd_solver="covariance_eigh").fit_transform(X)
        yield LabeledSet("cells", name, components, simulated.labels)
    try:
        import scanpy as sc
    except ImportError:
        print("Without pbmc68k_reduced: scanpy is not installed.")
        return
    adata = sc.datasets.pbmc68k_reduced()
    labels = adata.obs["bulk_labels"].cat.codes.to_numpy()
    yield LabeledSet("cells", "pbmc68k", adata.obsm["X_pca"].astype(np.float64), labels)


MAKERS = {"table": bundled, "toy": toys, "noisy": noisy, "cells": cells}


def _subsampled(one: LabeledSet, max_points: int) -> LabeledSet:
    n = len(one.y)
    if not max_points or n <= max_points:
        return one
    kept = np.sort(np.random.default_rng(SEED).choice(n, max_points, replace=False))
    return one._replace(X=one.X[kept], y=_codes(one.y[kept]))


def _codes(labels: Any) -> Any:
    return np.unique(labels, return_inverse=True)[1]
