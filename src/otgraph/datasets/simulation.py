"""Simulated single cells: sparse counts of cell types of different size and depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require
from otgraph._validation import check_count, check_positive
from otgraph.datasets.sample import BLOCK_SIZE, check_at_least
from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray

    from otgraph.datasets.sample import RandomState
    from otgraph.typing import BoolArray, FloatArray, IndexArray, IntArray, SparseMatrix

    Selection = list[int] | IndexArray | BoolArray | slice

GENE_SPREAD = 1.8  # standard deviation of log expression over genes; few genes have most counts
MARKER_SHARE = 0.04  # share of the genes that are specific to a family, or to a type in it
FAMILY_FOLD = 2.0  # mean log fold change of these genes in a family ...
TYPE_FOLD = 1.3  # ... and in a type, smaller: types of a family are more similar
TYPES_PER_FAMILY = 3
PROGRAM_SHARE = 0.1  # genes that take part in a program
PROGRAM_STRENGTH = 0.5  # standard deviation of a program's effect on log expression
DEPTH_SPREAD = 0.35  # standard deviation of log depth within a type


@dataclass(frozen=True, eq=False)
class SimulatedCells:
    """Counts, and the model that generated them.

    Attributes
    ----------
    counts
        One row per cell, one column per gene: CSR, float32 whole numbers.
    labels
        Type of every cell, counted from 0: type 0 is the most frequent, the last the rarest.
    depth
        Expected number of counts of every cell.
    profiles
        Expected share of the counts by type and gene; rows sum to one.
    activity
        Activity of the programs in every cell, ``(n, n_programs)``.
    loadings
        Effect of the programs on the logarithm of the expression, ``(n_programs, n_genes)``.

    Examples
    --------
    >>> from otgraph import datasets
    >>> cells = datasets.simulated_cells(100, n_genes=50, n_types=3, rarest=0.1)
    >>> cells.counts.shape, cells.expression(genes=[0, 1]).shape
    ((100, 50), (100, 2))
    """

    counts: SparseMatrix
    labels: IntArray
    depth: FloatArray
    profiles: FloatArray
    activity: FloatArray
    loadings: FloatArray

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def type_names(self) -> NDArray[np.str_]:
        """Names of the types, with their number of cells."""
        sizes = np.bincount(self.labels, minlength=len(self.profiles))
        return np.array([f"type {i} ({size})" for i, size in enumerate(sizes)])

    def expression(
        self, genes: Selection = slice(None), cells: Selection = slice(None)
    ) -> FloatArray:
        """Expected share of a cell's counts that a gene has: the counts without noise.

        Parameters
        ----------
        genes
            Numbers, a mask or a slice; the result is dense.
        cells
            Numbers, a mask or a slice.
        """
        rates = _rates(self.profiles, self.loadings, self.labels[cells], self.activity[cells])
        return np.asarray(rates[:, genes])

    def to_anndata(self) -> AnnData:
        """Annotated data with ``obs["cell_type"]`` and ``obs["depth"]``; needs anndata."""
        anndata = require("anndata", "singlecell")
        pandas = require("pandas", "singlecell")
        n, n_genes = self.counts.shape
        names = self.type_names
        obs = pandas.DataFrame(
            {
                "cell_type": pandas.Categorical(names[self.labels], categories=names),
                "depth": self.depth,
            },
            index=[f"cell{i}" for i in range(n)],
        )
        var = pandas.DataFrame(index=[f"gene{j}" for j in range(n_genes)])
        return anndata.AnnData(self.counts.copy(), obs=obs, var=var)


def simulated_cells(
    n: int = 2000,
    *,
    n_genes: int = 2000,
    n_types: int = 10,
    rarest: float = 0.005,
    depth: tuple[float, float] = (500.0, 5000.0),
    n_programs: int = 4,
    dispersion: float = 0.1,
    random_state: RandomState = 0,
) -> SimulatedCells:
    r"""Counts of cells of known type, from one batch.

    Types come in families of three. A gene's share of the counts is lognormal, changed in some
    genes by the family and in others by the type, and varies smoothly within a type through a
    few programs that all types share:

    .. math:: \mu_{cg} = D_c \, \frac{\rho_{k(c) g} \, e^{a_c \cdot L_g}}
              {\sum_h \rho_{k(c) h} \, e^{a_c \cdot L_h}}, \qquad
              X_{cg} \sim \text{NB}(\mu_{cg},\ \mu_{cg} + \varphi \mu_{cg}^2).

    Sizes of the types fall geometrically. Each type has a typical depth of its own, and cells
    scatter around it. There are no batches, doublets or empty droplets.

    Parameters
    ----------
    n
        Number of cells; 100 000 take about fifteen seconds.
    n_genes
        Number of genes.
    n_types
        Number of cell types.
    rarest
        Share of the rarest type, at most ``1 / n_types``. Every type has at least two cells.
    depth
        Typical number of counts of the shallowest and of the deepest type; the others lie
        between them, in random order.
    n_programs
        Number of directions in which cells of one type vary smoothly.
    dispersion
        :math:`\varphi`; zero for Poisson counts.
    random_state
        Seed or generator.

    Examples
    --------
    >>> from otgraph import datasets
    >>> cells = datasets.simulated_cells(500, n_types=4, rarest=0.02)
    >>> cells.counts.shape, [int((cells.labels == k).sum()) for k in range(4)]
    ((500, 2000), [351, 107, 32, 10])
    """
    n_types = check_count(n_types, "n_types", minimum=2)
    n = check_count(n, "n", minimum=2 * n_types)
    n_genes = check_count(n_genes, "n_genes")
    n_programs = check_count(n_programs, "n_programs", minimum=0)
    if check_positive(rarest, "rarest") > 1.0 / n_types:
        raise invalid("rarest", f"must be at most 1 / n_types = {1 / n_types:.6g}, got {rarest!r}.")
    shallow, deep = (check_positive(value, "depth") for value in depth)
    check_at_least(0, dispersion, "dispersion")
    rng = np.random.default_rng(random_state)
    labels = rng.permutation(np.repeat(np.arange(n_types), _sizes(n, n_types, rarest)))
    profiles = _profiles(n_types, n_genes, rng)
    typical = rng.permutation(np.geomspace(shallow, deep, n_types))
    depths = typical[labels] * np.exp(DEPTH_SPREAD * rng.standard_normal(n))
    takes_part = rng.random((n_programs, n_genes)) < PROGRAM_SHARE
    loadings = PROGRAM_STRENGTH * takes_part * rng.standard_normal((n_programs, n_genes))
    activity = rng.standard_normal((n, n_programs))
    counts = _counts(profiles, loadings, labels, activity, depths, dispersion, rng)
    return SimulatedCells(counts, labels.astype(np.int32), depths, profiles, activity, loadings)


def _sizes(n: int, n_types: int, rarest: float) -> IntArray:
    """Sizes in geometric progression whose last is the wanted share, at least two each."""

    def shares(log_ratio: float) -> FloatArray:
        powers = np.exp(-log_ratio * np.arange(n_types))
        return powers / powers.sum()

    low, high = 0.0, 50.0  # log ratio of successive sizes; at 50 only the first type has cells
    for _ in range(100):  # bisection: the last share falls with the ratio
        middle = 0.5 * (low + high)
        low, high = (middle, high) if shares(middle)[-1] > rarest else (low, middle)
    sizes = np.maximum(np.floor(n * shares(low)).astype(np.int32), 2)
    sizes[0] += n - sizes.sum()
    return sizes


def _profiles(n_types: int, n_genes: int, rng: np.random.Generator) -> FloatArray:
    """Expected shares of the genes, one row per type; relatives share their family's genes."""
    n_families = -(-n_types // TYPES_PER_FAMILY)
    family = rng.permutation(np.arange(n_types) % n_families)
    log_shares = np.tile(GENE_SPREAD * rng.standard_normal(n_genes), (n_types, 1))
    log_shares += _markers(n_families, n_genes, FAMILY_FOLD, rng)[family]
    log_shares += _markers(n_types, n_genes, TYPE_FOLD, rng)
    profiles = np.exp(log_shares)
    return np.asarray(profiles / profiles.sum(axis=1, keepdims=True))


def _markers(count: int, n_genes: int, fold: float, rng: np.random.Generator) -> FloatArray:
    chosen = rng.random((count, n_genes)) < MARKER_SHARE
    return np.asarray(chosen * rng.normal(fold, 0.5 * fold, (count, n_genes)))


def _rates(
    profiles: FloatArray, loadings: FloatArray, labels: IndexArray, activity: FloatArray
) -> FloatArray:
    rates = np.exp(activity @ loadings)
    rates *= profiles[labels]
    rates /= rates.sum(axis=1, keepdims=True)
    return np.asarray(rates)


def _counts(
    profiles: FloatArray,
    loadings: FloatArray,
    labels: IndexArray,
    activity: FloatArray,
    depths: FloatArray,
    dispersion: float,
    rng: np.random.Generator,
) -> SparseMatrix:
    """Draw counts in blocks of rows; only one block is dense at a time."""
    step = max(1, BLOCK_SIZE // profiles.shape[1])
    blocks = []
    for a in range(0, len(labels), step):
        rows = slice(a, a + step)
        means = _rates(profiles, loadings, labels[rows], activity[rows])
        means *= depths[rows, None]
        if dispersion > 0.0:  # negative binomial: Poisson with a gamma-distributed mean
            means *= dispersion * rng.standard_gamma(1.0 / dispersion, means.shape)
        blocks.append(sp.csr_matrix(rng.poisson(means).astype(np.float32)))
    return sp.csr_matrix(sp.vstack(blocks, format="csr"))
