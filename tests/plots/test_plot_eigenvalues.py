from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure

import otgraph
from otgraph.plots import plot_eigenvalues
from small_graphs import ring


@pytest.fixture
def ax():
    return Figure().add_subplot()


def test_used_and_other_eigenvalues(ax):
    found = otgraph.cluster(sp.block_diag([ring(20), ring(25), ring(30)], format="csr"))
    assert plot_eigenvalues(found, ax=ax, title="rings") is ax
    used, others = (points.get_offsets() for points in ax.collections)
    frequencies = np.sqrt(1 - found.eigenvalues)
    np.testing.assert_allclose(used, [[1, 0], [2, 0], [3, 0]])
    np.testing.assert_allclose(others[:, 1], frequencies[3:])
    (band,) = ax.patches
    np.testing.assert_allclose(band.get_y() + band.get_height(), frequencies[3])
    assert ax.get_legend().get_texts()[0].get_text() == "3 clusters"
    assert ax.get_title() == "rings"


def test_no_eigenvalue_left(ax):
    plot_eigenvalues(otgraph.cluster(ring(4), 4), ax=ax)
    assert len(ax.collections[1].get_offsets()) == 0
    assert not ax.patches


def test_something_else(ax):
    with pytest.raises(TypeError, match=r"must be a result of `otgraph.cluster`, got csr_matrix"):
        plot_eigenvalues(ring(4), ax=ax)
