"""What can be done with a graph that stays on a cluster."""

from __future__ import annotations

import json
import time

import anndata.io
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

import otgraph
from otgraph.cli.app import run
from otgraph.exceptions import DisconnectedWarning, FormatError
from otgraph.methods.clustering import _followed_edges

N = 300


@pytest.fixture(scope="module")
def X():
    """Two groups far from each other, which share no edge."""
    rng = np.random.default_rng(2)
    return np.concatenate([rng.normal(size=(200, 3)), 50.0 + rng.normal(size=(100, 3))])


@pytest.fixture(scope="module")
def here(X):
    return otgraph.quadratic_ot_graph(X, 0.01, self_loops=True)


@pytest.fixture(scope="module")
def there(X, client):
    return otgraph.distributed.quadratic_ot_graph(
        X, 0.01, self_loops=True, client=client, block_rows=70
    )


def test_facts(here, there):
    assert there.n == N
    assert there.mean_degree == here.mean_degree
    assert there.n_connected == here.n_connected > 1
    np.testing.assert_array_equal(there.component_labels, here.component_labels)
    np.testing.assert_allclose(there.row_sums, 1.0, rtol=1e-5)
    assert repr(there).startswith(f"DistributedGraph(n={N}, edges=")
    assert there.n_blocks == 5
    assert repr(there)[len("Distributed") : -1] == repr(here)[len("Transport") : -1] + ", blocks=5"


def test_ordinary_graph(X, here, there):
    graph = there.to_graph()
    assert (graph.weights != here.weights).nnz == 0
    assert repr(graph) == repr(here)
    assert (graph.extend(X[:5]) != here.extend(X[:5])).nnz == 0


def test_labels(here, there):
    labels = np.full(N, -1)
    labels[[3, 50, 120]] = [0, 1, 2]  # none in the second group
    with pytest.warns(DisconnectedWarning, match="No label reaches"):
        mine = otgraph.spread_labels(there, labels)
    with pytest.warns(DisconnectedWarning, match="No label reaches"):
        other = otgraph.spread_labels(here, labels)
    np.testing.assert_array_equal(mine.labels, other.labels)
    np.testing.assert_allclose(mine.probabilities, other.probabilities, atol=1e-9)
    np.testing.assert_array_equal(mine.unreachable, other.unreachable)


def test_labels_are_checked(there):
    with pytest.raises(ValueError, match="`mu` must be"):
        otgraph.spread_labels(there, np.zeros(N), mu=-1.0)
    with pytest.raises(ValueError, match="`labels` must hold one label per point"):
        otgraph.spread_labels(there, [0, 1])


@pytest.mark.parametrize("t", [2, "auto"])
def test_denoising(X, here, there, t):
    np.testing.assert_allclose(
        otgraph.denoise(there, X, t), otgraph.denoise(here, X, t), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("kind", ["npy", "zarr", "dask"])
def test_denoising_of_features_that_are_elsewhere(here, there, rng, tmp_path, kind):
    Y = rng.normal(size=(N, 20))
    if kind == "npy":
        np.save(tmp_path / "features.npy", Y)
        stored = np.load(tmp_path / "features.npy", mmap_mode="r")
    elif kind == "zarr":
        zarr.save_array(tmp_path / "features.zarr", Y)
        stored = zarr.open_array(tmp_path / "features.zarr", mode="r")
    else:
        stored = da.from_array(Y, chunks=(100, 7))
    found = otgraph.denoise(there, stored, columns=[1, 5, 19])
    np.testing.assert_allclose(found, otgraph.denoise(here, Y[:, [1, 5, 19]]), rtol=1e-12)


def test_products(here, there, rng):
    V, scale = rng.normal(size=(N, 20)), rng.uniform(size=N)  # more columns than travel at once
    np.testing.assert_array_equal(there.product(V), here.weights @ V)
    expected = scale[:, None] * (here.weights @ V) + here.weights @ (scale[:, None] * V)
    np.testing.assert_allclose(there.product(V, scale), expected, rtol=1e-12, atol=1e-14)


def test_number_of_steps(X, here, there):
    assert otgraph.methods.diffusion_time(there, X) == otgraph.methods.diffusion_time(here, X)


def test_methods_that_need_the_weights_say_how_to_get_them(there):
    with pytest.raises(TypeError, match=r"got DistributedGraph. Pass `graph.to_graph\(\)`"):
        otgraph.methods.perplexity(there)


@pytest.mark.parametrize("n_clusters", [None, 2, 4])
def test_clusters(here, there, n_clusters):
    mine, other = (otgraph.cluster(graph, n_clusters) for graph in (there, here))
    np.testing.assert_array_equal(mine.labels, other.labels)
    np.testing.assert_allclose(mine.eigenvalues, other.eigenvalues, atol=1e-9)


def test_fragments_follow_their_edges(here, there):
    labels = np.full(N, -1, dtype=np.int32)
    labels[:100], labels[100:150] = 0, 1  # none in the second group
    mine, other = (_followed_edges(graph, labels.copy()) for graph in (there, here))
    np.testing.assert_array_equal(mine, other)
    assert (mine[150:200] >= 0).any()
    assert (mine[200:] == -1).all()


def test_warnings_name_the_line_of_the_caller(X, client):
    with pytest.warns(DisconnectedWarning, match="2 connected components") as caught:
        otgraph.distributed.quadratic_ot_graph(X, 0.01, client=client)
    assert caught[0].filename == __file__


def test_eigenmaps_of_several_components(here, there):
    with pytest.warns(DisconnectedWarning, match="connected components"):
        mine = otgraph.eigenmaps(there, 2)
    with pytest.warns(DisconnectedWarning, match="connected components"):
        other = otgraph.eigenmaps(here, 2)
    np.testing.assert_allclose(mine.coordinates, other.coordinates, atol=1e-8)
    np.testing.assert_allclose(mine.component_eigenvalues, other.component_eigenvalues, atol=1e-9)


def test_eigenmaps_by_products(client, rng):
    """Too many points for a dense matrix: Lanczos, with products on the workers."""
    X = rng.normal(size=(700, 2)) @ np.diag([3.0, 1.0])
    options = {"mean_degree": 12, "connect": True}
    there = otgraph.distributed.quadratic_ot_graph(X, client=client, block_rows=300, **options)
    mine = otgraph.eigenmaps(there, 3)
    other = otgraph.eigenmaps(otgraph.quadratic_ot_graph(X, **options), 3)
    np.testing.assert_allclose(mine.eigenvalues, other.eigenvalues, atol=1e-9)
    # Residuals of 1e-10 over the distances of these eigenvalues, which are at least 1e-3.
    np.testing.assert_allclose(mine.coordinates, other.coordinates, atol=1e-5)


@pytest.mark.parametrize("name", ["graph.zarr", "graph.parquet"])
@pytest.mark.parametrize("home", ["disk", "memory"])
def test_loaded_again(there, here, tmp_path, name, home):
    path = str(tmp_path / name) if home == "disk" else f"memory://loaded/{name}"
    there.write(path)
    with pytest.raises(FileExistsError, match="exists already"):
        there.write(path)
    graph = otgraph.load_graph(path)
    assert (graph.weights != here.weights).nnz == 0
    assert graph.weights.indices.dtype == here.weights.indices.dtype
    assert graph.certificate == here.certificate
    assert graph.params == here.params
    np.testing.assert_array_equal(graph.potentials, here.potentials)
    np.testing.assert_array_equal(graph.mass, here.mass)


@pytest.mark.parametrize("name", ["graph.zarr", "graph.parquet"])
def test_commands_read_what_was_written(there, here, tmp_path, capsys, name):
    """A folder in the place of a file, for commands that report and that compute."""
    there.write(tmp_path / name)
    assert run(["info", str(tmp_path / name), "--json"]) == 0
    said = capsys.readouterr().out
    assert str(here.certificate.status) in said
    assert json.loads(said)["n_points"] == N
    assert run(["embed", str(tmp_path / name), "-o", str(tmp_path / "places.npy")]) == 0
    found = np.load(tmp_path / "places.npy")
    with pytest.warns(DisconnectedWarning):
        mine = otgraph.eigenmaps(here).coordinates
    np.testing.assert_allclose(found, mine, atol=1e-6)


@pytest.mark.parametrize("n", [500, 9000], ids=["copied", "shared"])
def test_workers_hold_the_graph_and_nothing_else(client, n):
    X = otgraph.datasets.noisy_manifold(n, dim=20, dtype=np.float32).X
    before = set(client.who_has())
    there = otgraph.distributed.quadratic_ot_graph(X, client=client, mean_degree=8)

    def left():
        holders = client.who_has()
        return {str(key).split("-")[1] for key in set(holders) - before if holders[key]}

    deadline = time.perf_counter() + 20
    while left() - {"weights"} and time.perf_counter() < deadline:  # it is told of releases later
        time.sleep(0.1)
    assert left() == {"weights"}
    assert there.n == n


def test_minimum_flows_are_loaded_too(client, rng, tmp_path):
    X = np.concatenate([rng.normal(size=(80, 3)), 4.0 + 3.0 * rng.normal(size=(10, 3))])
    there = otgraph.distributed.quadratic_ot_graph(X, mean_degree=6, client=client, block_rows=40)
    assert there.floors is not None
    for name in ("graph.zarr", "graph.parquet"):
        there.write(tmp_path / name)
        floors = otgraph.load_graph(tmp_path / name).floors
        assert (floors != there.floors).nnz == 0


def test_folders_that_are_no_graph(tmp_path, there):
    zarr.open_group(tmp_path / "empty.zarr", mode="w")
    with pytest.raises(FormatError, match="has no record of a graph"):
        otgraph.load_graph(tmp_path / "empty.zarr")
    there.write(tmp_path / "cut.parquet")
    (tmp_path / "cut.parquet" / "part-00001.parquet").unlink()
    with pytest.raises(FormatError, match="has 4 of 5 files of edges"):
        otgraph.load_graph(tmp_path / "cut.parquet")


def test_zarr(here, there, tmp_path):
    path = tmp_path / "graph.zarr"
    there.write(path)
    group = zarr.open_group(path, mode="r")
    weights = sp.csr_matrix(anndata.io.read_elem(group["weights"]))
    assert (weights != here.weights).nnz == 0
    np.testing.assert_array_equal(group["potentials"][...], here.potentials)
    np.testing.assert_array_equal(group["mass"][...], here.mass)
    assert group.attrs["otgraph"]["eps"] == 0.01
    assert group.attrs["otgraph"]["certificate_status"] == "exact"


def test_parquet(here, there, tmp_path):
    there.write(tmp_path / "edges.parquet")
    edges = pd.read_parquet(tmp_path / "edges.parquet")
    upper = sp.coo_matrix((edges.weight, (edges.source, edges.target)), shape=(N, N))
    assert (upper != sp.triu(here.weights)).nnz == 0


def test_nothing_is_left_of_a_file_that_cannot_be_written(there, tmp_path):
    with pytest.raises(ValueError, match=r"`path` must end in .zarr or .parquet, got"):
        there.write(tmp_path / "graph.csv")
    with pytest.raises(FileNotFoundError, match="cannot write into the directory"):
        there.write(tmp_path / "missing" / "graph.zarr")
    (tmp_path / "taken.zarr").mkdir()
    with pytest.raises(FileExistsError, match="exists already"):
        there.write(tmp_path / "taken.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.zarr"]


def test_points_without_edges_of_their_own(client):
    """A point that keeps all its mass: its row is its loop alone."""
    X = np.array([[0.0], [0.1], [100.0], [0.2]])
    there = otgraph.distributed.quadratic_ot_graph(
        X, 1e-3, self_loops=True, client=client, block_rows=2
    )
    here = otgraph.quadratic_ot_graph(X, 1e-3, self_loops=True)
    assert (there.to_scipy() != here.weights).nnz == 0
    assert there.degrees[2] == 0
    np.testing.assert_allclose(otgraph.denoise(there, X), otgraph.denoise(here, X), rtol=1e-12)


def test_copies_that_share_no_edge_with_the_rest(client, rng):
    X = np.concatenate([np.zeros((40, 2)), 5.0 + rng.normal(size=(60, 2))])
    with pytest.warns(DisconnectedWarning, match="40 points fall into 1 group"):
        otgraph.distributed.quadratic_ot_graph(X, 0.01, client=client, block_rows=30)
