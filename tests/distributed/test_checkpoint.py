"""A computation that lost its cluster goes on from the potentials that it had reached."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from distributed import Client, LocalCluster

import otgraph
from otgraph.distributed import _cluster, quadratic_ot_graph
from otgraph.exceptions import ClusterError

TOL = 1e-8


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(1).normal(size=(600, 5))


@pytest.mark.parametrize("goal", [{"eps": 0.5}, {"mean_degree": 8}], ids=str)
def test_lost_scheduler(X, client, tmp_path, monkeypatch, caplog, goal):
    """The second run evaluates fewer potentials than one without a start, and gives the graph."""
    path = tmp_path / "state.npz"
    options = {"tol": TOL, "block_rows": 250, "checkpoint": path, **goal}
    runs = ["plain"]
    doomed = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    submit, asked = _cluster.Cluster.submit, {"plain": 0, "first": 0, "second": 0}

    def submit_until_saved(self, name, *args):
        asked[runs[-1]] += name == "evaluate"
        if path.exists() and name == "plan" and runs[-1] == "first":
            runs.append("second")
            doomed.close()
        return submit(self, name, *args)

    monkeypatch.setattr(_cluster.Cluster, "submit", submit_until_saved)
    quadratic_ot_graph(X, client=client, tol=TOL, block_rows=250, **goal)
    runs.append("first")
    with (
        Client(doomed, set_as_default=False) as first,
        pytest.raises(ClusterError, match=r"was lost.*`checkpoint=`"),
    ):
        quadratic_ot_graph(X, client=first, **options)
    here = otgraph.quadratic_ot_graph(X, tol=TOL, **goal)
    with caplog.at_level(logging.WARNING, "otgraph.distributed"):
        there = quadratic_ot_graph(X, client=client, **options)
    assert f"continues from {path}" in caplog.text
    assert there.certificate.status == "exact"
    assert asked["second"] < asked["plain"]
    assert there.params["eps"] == pytest.approx(here.params["eps"], rel=1e-2)
    if "eps" in goal:
        # Row sums are right to TOL, and entries depend on them through a well conditioned matrix.
        difference = abs(there.to_scipy() - here.weights)
        assert difference.max() < 1e3 * TOL


def test_file_of_another_problem(X, build, tmp_path):
    path = tmp_path / "state.npz"
    build(X, 0.5, checkpoint=path)
    for points, eps, options in ((X[:-1], 0.5, {}), (X, 0.5, {"self_loops": True})):
        with pytest.raises(ValueError, match=r"`checkpoint` is .* other points, masses or options"):
            build(points, eps, checkpoint=path, **options)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="`checkpoint` must be a file of this function"):
        build(X, 0.5, checkpoint=path)
    assert path.read_bytes() == b"something else"
