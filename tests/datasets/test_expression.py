from __future__ import annotations

import numpy as np
import pytest

from otgraph import datasets
from otgraph.datasets.cells import make_cells

COUNTS = np.array([[900, 100, 0], [0, 1600, 0], [5, 5, 5], [999, 0, 0]])


@pytest.fixture
def cells():
    return make_cells(COUNTS, ["a", "b", "c"], ["1", "2", "3", "4"], "example")


def test_steps_by_hand(cells):
    large = datasets.keep_large_cells(cells, 1000)
    assert list(large.cells) == ["1", "2"]
    common = datasets.keep_common_genes(large, 1)
    assert list(common.genes) == ["a", "b"]
    np.testing.assert_array_equal(datasets.keep_common_genes(large, 2).genes, ["b"])
    shares = datasets.normalize_totals(common, 100)
    np.testing.assert_allclose(shares.X.toarray(), [[90, 10], [0, 100]])
    roots = datasets.square_root(shares)
    np.testing.assert_allclose(roots.X.toarray(), np.sqrt([[90, 10], [0, 100]]))
    together = datasets.prepare_cells(cells, min_cells=1, total=100)
    np.testing.assert_array_equal(together.X.toarray(), roots.X.toarray())
    np.testing.assert_array_equal(cells.X.toarray(), COUNTS)  # as it was


def test_genes_are_counted_in_the_cells_that_stay(cells):
    # Gene c is only in a cell that is too small.
    assert "c" not in datasets.prepare_cells(cells, min_cells=1).genes


def test_empty_cells_stay_empty():
    cells = make_cells([[0, 0], [1, 3]], ["a", "b"], ["1", "2"], "example")
    np.testing.assert_allclose(datasets.normalize_totals(cells, 4).X.toarray(), [[0, 0], [1, 3]])


def test_too_little_left(cells):
    with pytest.raises(ValueError, match=r"Only 0 of 4 cells .* at least 2000; the median is 999"):
        datasets.prepare_cells(cells, min_total=2000)
    with pytest.raises(ValueError, match="None of the 3 genes of example is found in 3 of 2 cells"):
        datasets.prepare_cells(cells, min_cells=3)
