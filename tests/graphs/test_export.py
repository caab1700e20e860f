"""Graphs as objects of other packages."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import otgraph


@pytest.fixture
def graph(rng):
    return otgraph.quadratic_ot_graph(rng.normal(size=(30, 3)), mean_degree=5, self_loops=True)


def test_networkx(graph):
    networkx = pytest.importorskip("networkx")
    theirs = graph.to_networkx()
    assert theirs.number_of_nodes() == 30
    W = networkx.to_scipy_sparse_array(theirs, nodelist=range(30), weight="weight")
    np.testing.assert_array_equal(W.toarray(), graph.weights.toarray())


def test_igraph(graph):
    pytest.importorskip("igraph")
    theirs = graph.to_igraph()
    assert not theirs.is_directed()
    assert theirs.vcount() == 30
    W = np.zeros((30, 30))
    for edge in theirs.es:
        W[edge.source, edge.target] = W[edge.target, edge.source] = edge["weight"]
    np.testing.assert_array_equal(W, graph.weights.toarray())


def test_pytorch_geometric(graph, monkeypatch):
    """With stand-ins for both packages, which are too large to install for a test."""
    torch = types.ModuleType("torch")
    torch.float32 = np.float32
    torch.as_tensor = lambda array, dtype=None: np.asarray(array, dtype=dtype)
    package, data = types.ModuleType("torch_geometric"), types.ModuleType("torch_geometric.data")
    data.Data = types.SimpleNamespace
    for module in (torch, package, data):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    theirs = graph.to_pyg()
    W = np.zeros((theirs.num_nodes, theirs.num_nodes), dtype=np.float32)
    W[tuple(theirs.edge_index)] = theirs.edge_weight
    np.testing.assert_array_equal(W, graph.weights.toarray().astype(np.float32))
    np.testing.assert_array_equal(theirs.x, graph.points.astype(np.float32))


@pytest.mark.parametrize(
    ("package", "method"),
    [("networkx", "to_networkx"), ("igraph", "to_igraph"), ("torch", "to_pyg")],
)
def test_a_missing_package_is_named(graph, monkeypatch, package, method):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"needs {package}; install it with `pip install"):
        getattr(graph, method)()
