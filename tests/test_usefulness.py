"""Scores of the benchmark of usefulness on graphs whose scores are known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

usefulness = pytest.importorskip("benchmarks.usefulness")
graphs = pytest.importorskip("benchmarks.usefulness_graphs")


def blocks(*sizes):
    return sp.block_diag([sp.csr_matrix(np.ones((n, n))) for n in sizes], format="csr")


def test_perfect_graph():
    y = np.repeat([0, 1], 50)
    found = usefulness.score(blocks(50, 50), y)
    assert found["nmi"] == pytest.approx(1.0)
    assert found["accuracy"] == 1.0
    assert (found["components"], found["fragments"], found["min_degree"]) == (2, 0, 49)


def test_graph_that_knows_nothing():
    y = np.arange(100) % 2
    found = usefulness.score(blocks(50, 50), y)
    assert found["nmi"] == pytest.approx(0.0, abs=1e-9)
    assert 0.3 < found["accuracy"] < 0.7


def test_fragments_are_counted_and_their_points_are_errors():
    y = np.repeat([0, 1, 0], [50, 48, 2])
    found = usefulness.score(blocks(50, 48, 2), y)
    assert (found["components"], found["fragments"]) == (3, 1)
    assert found["accuracy"] < 1.0


def test_weak_edge_between_groups():
    W = blocks(40, 30).tolil()
    W[0, 40] = W[40, 0] = 0.1
    assert usefulness.score(W.tocsr(), np.repeat([0, 1], [40, 30]))["nmi"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "name", ["ours", "ours connected", "ours plain", "kNN", "kNN+Gaussian", "MAGIC"]
)
def test_contenders_are_symmetric_and_have_the_degree(name, rng):
    W = usefulness.CONTENDERS[name](rng.normal(size=(300, 3)), 10.0)
    assert abs(W - W.T).max() < 1e-15
    # MAGIC keeps three times as many neighbors as it is asked for, and so has larger steps.
    assert graphs.degree(W) == pytest.approx(10.0, abs=2.5 if name == "MAGIC" else 0.8)
    assert W.min() >= 0


@pytest.fixture
def groups(rng):
    """Two groups far apart, and two outliers that prefer each other."""
    X = rng.normal(size=(200, 2))
    X[:100] += 50.0
    X[-1] = X[-2] = (20.0, -20.0)
    X[-1] += 0.1
    return X


@pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
def test_our_contenders_differ_by_what_they_join(groups):
    def components(name):
        found = usefulness.score(usefulness.CONTENDERS[name](groups, 5.0), np.arange(200) // 100)
        return found["components"] - found["fragments"], found["fragments"]

    assert components("ours") == (2, 0)
    assert components("ours connected") == (1, 0)
    large, fragments = components("ours plain")
    assert large == 2
    assert fragments > 0


def test_contender_without_a_degree_runs_at_its_default_only(tmp_path, groups):
    with pytest.raises(ValueError, match="must be None, got 5"):
        usefulness.CONTENDERS["ours auto"](groups, 5.0)
    chosen = usefulness.sets(tmp_path / "none.npz", select=["table/iris"], max_points=60)
    rows = usefulness.run(chosen, ["5", "default"], ["ours", "ours auto", "kNN"])
    ran = [(row["degree"], row["graph"]) for row in rows]
    assert [degree for degree, graph in ran if graph == "ours auto"] == ["default"]
    assert len(ran) == 5
    assert "| default | ours auto |" in usefulness.wins(rows)


def test_duplicates(rng):
    X = np.repeat(rng.normal(size=(50, 2)), 3, axis=0)
    assert np.isfinite(usefulness.CONTENDERS["kNN+Gaussian"](X, 2.0).data).all()


def test_runs_without_the_file(tmp_path, capsys):
    chosen = usefulness.sets(tmp_path / "none.npz", select=["shape", "table/iris"], max_points=60)
    assert "there is no file" in capsys.readouterr().out
    rows = usefulness.run(chosen, ["5", "default"], ["ours", "kNN"])
    assert [len(one.y) for one in chosen] == [60]
    assert len(rows) == 4
    report = usefulness.report(rows)
    assert "| table (1) | 5 | ours |" in report
    assert "won / lost / tied" in report


def test_selection_and_scaling_of_a_file(tmp_path, rng):
    X, y = rng.normal(size=(20, 2)) * 9.0, np.arange(20) % 2
    np.savez(
        tmp_path / "a.npz", real__one__X=X, real__one__y=y + 5, shape__two__X=X, shape__two__y=y
    )
    real, shape = usefulness.sets(tmp_path / "a.npz", select=["real", "shape/two"])
    np.testing.assert_allclose(real.X.std(axis=0), 1.0)
    np.testing.assert_array_equal(real.y, y)
    np.testing.assert_array_equal(shape.X, X)
