"""Small clusters, each started once."""

from __future__ import annotations

import numpy as np
import pytest
from distributed import Client, LocalCluster

import otgraph.distributed


@pytest.fixture(scope="session")
def client():
    """Two workers in threads of this process: quick to start."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def one_worker():
    """One worker with two threads."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def build(client):
    """The function under test, with a client."""

    def build(X, eps=None, **options):
        options.setdefault("client", client)
        return otgraph.distributed.quadratic_ot_graph(X, eps, **options)

    return build


@pytest.fixture(scope="session")
def assert_same():
    """A check that the graph of a cluster is the local one to the last bit."""

    def assert_same(there, here):
        W = there.to_scipy()
        for name in ("indptr", "indices", "data"):
            mine, other = getattr(W, name), getattr(here.weights, name)
            assert mine.dtype == other.dtype
            np.testing.assert_array_equal(mine, other)
        np.testing.assert_array_equal(there.potentials, here.potentials)
        np.testing.assert_array_equal(there.mass, here.mass)
        np.testing.assert_array_equal(there.degrees, here.degrees)
        assert there.certificate == here.certificate
        assert there.params == here.params

    return assert_same
