from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from otgraph import datasets
from otgraph.datasets import sample, simulation


@pytest.fixture(scope="module")
def cells():
    return datasets.simulated_cells(3000, n_genes=400, n_types=6, rarest=0.01)


def test_counts_are_sparse_whole_numbers(cells):
    X = cells.counts
    assert isinstance(X, sp.csr_matrix)
    assert X.dtype == np.float32
    assert X.shape == (3000, 400)
    assert X.data.min() >= 1
    np.testing.assert_array_equal(X.data, np.round(X.data))


def test_sizes_fall_geometrically_to_the_rarest(cells):
    sizes = np.bincount(cells.labels)
    assert sizes.sum() == len(cells) == 3000
    assert sizes[-1] == 30
    ratios = sizes[1:] / sizes[:-1]
    np.testing.assert_allclose(ratios, ratios.mean(), rtol=0.05)  # of whole numbers >= 30


def test_depth_differs_between_types_and_cells(cells):
    totals = np.asarray(cells.counts.sum(axis=1)).ravel()
    # Sum of 400 genes: relative deviation well below one, mean over 3000 cells below 2 %.
    assert totals.sum() == pytest.approx(cells.depth.sum(), rel=0.02)
    medians = [np.median(cells.depth[cells.labels == k]) for k in range(6)]
    # Medians of at least 30 cells scatter by 1.25 * 0.35 / sqrt(30) = 8 %.
    assert max(medians) / min(medians) == pytest.approx(10, rel=0.3)


def test_mean_and_variance_are_those_of_the_model():
    cells = datasets.simulated_cells(
        4000, n_genes=30, n_types=2, rarest=0.5, n_programs=0, dispersion=0.5
    )
    means = cells.depth[:, None] * cells.expression()
    X = cells.counts.toarray()
    z = (X - means) / np.sqrt(means + 0.5 * means**2)
    # 120 000 standardized values, heavy-tailed: mean within 5 / sqrt(120000), variance within 5 %
    assert abs(z.mean()) < 0.015
    assert z.var() == pytest.approx(1.0, rel=0.05)


def test_poisson_without_dispersion():
    cells = datasets.simulated_cells(4000, n_genes=30, n_types=2, rarest=0.5, dispersion=0.0)
    means = cells.depth[:, None] * cells.expression()
    z = (cells.counts.toarray() - means) / np.sqrt(means)
    assert z.var() == pytest.approx(1.0, rel=0.05)


def test_expression_is_a_share(cells):
    shares = cells.expression(cells=slice(0, 100))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    some = cells.expression(genes=[3, 7], cells=slice(0, 100))
    np.testing.assert_array_equal(some, shares[:, [3, 7]])
    np.testing.assert_allclose(cells.profiles.sum(axis=1), 1.0, rtol=1e-12)


def test_seed(cells):
    again = datasets.simulated_cells(3000, n_genes=400, n_types=6, rarest=0.01)
    assert (again.counts != cells.counts).nnz == 0
    np.testing.assert_array_equal(again.labels, cells.labels)
    other = datasets.simulated_cells(3000, n_genes=400, n_types=6, rarest=0.01, random_state=1)
    assert (other.counts != cells.counts).nnz > 0


def test_memory_is_that_of_the_result(monkeypatch):
    monkeypatch.setattr(simulation, "BLOCK_SIZE", sample.BLOCK_SIZE // 32)
    n, n_genes = 4000, 1000
    tracemalloc.start()
    try:
        cells = datasets.simulated_cells(n, n_genes=n_genes, depth=(100.0, 100.0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    stored = cells.counts.data.nbytes + cells.counts.indices.nbytes
    assert stored < 0.15 * n * n_genes * 8
    assert peak < 0.5 * n * n_genes * 8  # half of one dense matrix


def test_annotated_data(cells):
    adata = cells.to_anndata()
    assert adata.shape == (3000, 400)
    assert list(adata.obs["cell_type"].cat.categories) == list(cells.type_names)
    assert str(adata.obs["cell_type"].iloc[0]) == cells.type_names[cells.labels[0]]
    assert cells.type_names[-1] == "type 5 (30)"


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"n": 5}, "`n` must be an integer >= 20"),
        ({"n_types": 1}, "`n_types` must be an integer >= 2"),
        ({"rarest": 0.2}, r"`rarest` must be at most 1 / n_types = 0\.1"),
        ({"rarest": 0.0}, "`rarest` must be a positive"),
        ({"depth": (0.0, 5.0)}, "`depth` must be a positive"),
        ({"dispersion": -1.0}, "`dispersion` must be a finite number >= 0"),
    ],
)
def test_bad_arguments(keywords, message):
    with pytest.raises(ValueError, match=message):
        datasets.simulated_cells(**keywords)
