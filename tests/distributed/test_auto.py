"""eps='auto' on a cluster: the same choice, wherever the points are."""

from __future__ import annotations

from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr

import otgraph
from otgraph import datasets
from otgraph.graphs import choice

HOMES = {
    "array": lambda X, folder: X,
    "frame": lambda X, folder: pd.DataFrame(X),
    "dask": lambda X, folder: da.from_array(X, chunks=(170, 7)),
    "npy": lambda X, folder: saved(np.save, folder / "points.npy", X),
    "zarr": lambda X, folder: saved(zarr.save_array, folder / "points.zarr", X),
}


def saved(save, path, X):
    save(path, X)
    return str(path)


@pytest.mark.parametrize("home", HOMES)
def test_same_choice_and_graph(assert_same, build, tmp_path, monkeypatch, home):
    sampled = partial(choice.choose_by_prediction, all_points=200)  # a sample of the 500 points
    monkeypatch.setattr(choice, "choose_by_prediction", sampled)
    X = datasets.noisy_manifold(500, dim=20, intrinsic_dim=2).X
    here = otgraph.quadratic_ot_graph(X, "auto")
    assert otgraph.EpsChoice.from_params(here.params).n_points == 200
    assert_same(build(HOMES[home](X, tmp_path), "auto"), here)


def test_fallback_is_told(build):
    X = np.random.default_rng(0).normal(size=(100, 1))
    with pytest.warns(UserWarning, match="one feature has no two halves"):
        graph = build(X, "auto")
    assert graph.params["mean_degree"] == 15
