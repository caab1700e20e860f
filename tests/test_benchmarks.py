"""Every job of the benchmarks runs, on few points."""

from __future__ import annotations

import numpy as np
import pytest

data = pytest.importorskip("benchmarks.data")
jobs = pytest.importorskip("benchmarks.jobs")

PACKAGES = {
    "nn_descent": "pynndescent", "regot": "regot", "pot": "ot", "magic_impute": "magic",
}  # fmt: skip
OPTIONS = {
    "otgraph": {"mean_degree": 10, "search": "exact"},
    "otgraph_path": {"log_eps": (-1, 0), "search": "exact"},
    "solve_only": {"mean_degree": 10, "search": "exact"},
    "kneighbors_graph": {"k": 10},
    "nn_descent": {"k": 10},
    "regot": {"eps": 1.0, "solver": "qrot_grssn"},
    "pot": {"eps": 1.0},
    "knn_graph": {"k": 10},
    "kernel_graph": {"function": "gaussian_graph", "eps": 0.1},
    "extend": {},
    "kneighbors": {"k": 10},
    "eigenmaps": {"k": 3},
    "scipy_eigenvectors": {"k": 3},
    "spectral_embedding": {"k": 3},
    "spread_labels": {},
    "label_spreading": {},
    "denoise": {"genes": 20},
    "scipy_products": {"genes": 20},
    "denoised_cells": {},
    "magic_impute": {},
    "small": {},
    "rates": {},
}
DATA = {"denoised_cells": "cells", "magic_impute": "cells"}
MARKS = {"nn_descent": pytest.mark.slow}  # pynndescent compiles for most of a minute


@pytest.mark.filterwarnings("ignore")  # as in the benchmarks: peers warn of what they use
@pytest.mark.parametrize("name", [pytest.param(job, marks=MARKS.get(job, ())) for job in jobs.JOBS])
def test_job(name, monkeypatch):
    monkeypatch.setattr("benchmarks.bounds.SECONDS", 0.01)
    monkeypatch.setattr("benchmarks.small.MOST_TURNS", 2)
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    found = jobs.JOBS[name](data.make(DATA.get(name, "manifold"), 200), **OPTIONS[name])
    assert found.get("seconds", 1.0) > 0.0
    assert found.get("status", "exact") == "exact"
    if name == "otgraph":
        assert found["mean_degree"] == pytest.approx(10, abs=1.0)


def test_solve_only_does_no_search(monkeypatch):
    """The time is that of the solve: the candidates of a larger eps are enough."""
    from otgraph.graphs.transport import TransportProblem

    X, starts = data.make("manifold", 200), []
    solve = TransportProblem.solve

    def watched(problem, eps, **keywords):
        starts.append(keywords.get("start"))
        return solve(problem, eps, **keywords)

    monkeypatch.setattr(TransportProblem, "solve", watched)
    jobs.solve_only(X, eps=1.0, search="exact")
    assert starts[-1] is not None


def test_other_estimates_of_the_dimension():
    """The formulas that `intrinsic_dimension` is compared with, on a cube of three dimensions."""
    geometry = pytest.importorskip("benchmarks.geometry")
    X = np.random.default_rng(0).uniform(size=(3000, 3))
    assert geometry.levina_bickel(X) == pytest.approx(3.0, rel=0.1)
    assert geometry.two_nn(X) == pytest.approx(3.0, rel=0.1)


@pytest.mark.filterwarnings("ignore:No `eps` was found")  # that few points cannot all be kept
def test_labels_between_clouds():
    clouds = pytest.importorskip("benchmarks.clouds")
    X, truth, Y, labels = (part[:150] for part in clouds.digits(0, 0.5))
    for name, method in clouds.METHODS.items():
        assert (method(X, Y, labels) == truth).mean() > 0.7, name
    for kind in ("normal", "uniform", "manifold"):
        found = clouds.otgraph_run(*clouds.two_samples(100, 20, kind), mean_degree=5)
        assert found["status"] == "exact"
