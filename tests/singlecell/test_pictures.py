"""Pictures are judged by what is drawn."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import otgraph.singlecell as ogs
from otgraph.plots.colors import UNKNOWN


@pytest.fixture
def cells(adata):
    ogs.pp.neighbors(adata, eps=2.0)
    adata.obsm["X_umap"] = adata.obsm["X_pca"][:, :2]
    return adata


@pytest.fixture
def ax():
    return Figure().add_subplot()


def of_kind(ax, kind):
    (found,) = [c for c in ax.collections if isinstance(c, kind)]
    return found


def test_edges_and_cells(cells, ax):
    ogs.pl.graph(cells, ax=ax)
    assert len(of_kind(ax, LineCollection).get_segments()) == cells.obsp["weights"].nnz // 2
    points = of_kind(ax, PathCollection)
    np.testing.assert_array_equal(points.get_offsets(), cells.obsm["X_umap"])


def test_groups_have_scanpys_colors_and_a_legend(cells, ax):
    cells.uns["group_colors"] = ["#ff0000", "#00ff00", "#0000ff"]
    cells.obs.loc["cell5", "group"] = np.nan
    ogs.pl.graph(cells, "X_umap", color="group", ax=ax)
    shades = of_kind(ax, PathCollection).get_facecolors()
    np.testing.assert_array_equal(shades[0], to_rgba("#ff0000"))
    np.testing.assert_array_equal(shades[89], to_rgba("#0000ff"))
    np.testing.assert_array_equal(shades[5], to_rgba(UNKNOWN))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b/c", "d"]


def test_gene_and_number(cells, ax):
    ogs.tl.denoise(cells, genes=["gene4"])
    cells.obs["depth"] = np.arange(90.0)
    for color, layer in (("gene4", None), ("gene4", "denoised"), ("depth", None), ("degree", None)):
        shades = of_kind(ogs.pl.graph(cells, color=color, layer=layer, ax=ax), PathCollection)
        assert len(np.unique(shades.get_facecolors(), axis=0)) > 1
        assert ax.get_legend() is None
        (bar,) = ax.child_axes
        assert bar.get_ylabel() == color
        ax.clear()


def test_unknown_embedding(cells):
    with pytest.raises(KeyError, match=r"got 'tsne'; there are: 'X_pca', .*'X_umap'"):
        ogs.pl.graph(cells, "tsne")


def test_degrees_of_one_graph_and_of_several(cells):
    assert len(ogs.pl.degrees(cells, ax=Figure().add_subplot()).get_legend().get_texts()) == 1
    ogs.pp.neighbors(cells, method="knn", n_neighbors=9, key_added="knn")
    ax = ogs.pl.degrees(cells, neighbors_key=["neighbors", "knn"], ax=Figure().add_subplot())
    names = [text.get_text().split()[0] for text in ax.get_legend().get_texts()]
    assert names == ["neighbors", "knn"]
    with pytest.raises(TypeError, match="`neighbors_key` cannot go together with `groupby`"):
        ogs.pl.degrees(cells, "group", neighbors_key=["neighbors", "knn"])


def test_box_for_every_group(cells, ax):
    ogs.pl.degrees(cells, "group", ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b/c", "d"]
    assert ax.get_ylabel() == "group"
    mean = np.diff(cells.obsp["weights"].indptr).mean()
    (name,) = [text.get_text() for text in ax.texts]
    assert name == f"mean of all cells: {mean:.3g}"
    with pytest.raises(KeyError, match="got 'grp'; there are: 'group'"):
        ogs.pl.degrees(cells, "grp")


def test_names_of_groups_are_not_mathematics(cells, ax):
    cells.obs["$n$"] = [rf"$\\frac{{{k % 3}}}$" for k in range(90)]
    ogs.pl.degrees(cells, "$n$", ax=ax)
    other = ogs.pl.graph(cells, color="$n$", ax=ax.figure.add_subplot())
    ax.figure.savefig(io.BytesIO())
    assert other.get_legend().get_title().get_text() == "$n$"
