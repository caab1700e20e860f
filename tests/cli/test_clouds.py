"""Labels carried from one file to another."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import otgraph


@pytest.fixture
def clouds(rng, tmp_path):
    """A reference with labels, and the same groups moved."""
    frames = {}
    for name, shift in (("reference", 0.0), ("new", 3.0)):
        points = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 9.0]) + shift
        rows = [f"{name}{i}" for i in range(60)]
        frames[name] = pd.DataFrame(points, columns=["a", "b"], index=rows)
        frames[name].to_csv(tmp_path / f"{name}.csv")
    kinds = np.repeat(["left", "right"], 30)
    frames["reference"].assign(kind=kinds).to_csv(tmp_path / "labeled.csv")
    pd.Series(kinds, frames["reference"].index, name="kind").to_csv(tmp_path / "kinds.csv")
    return frames


def test_labels_of_a_column_and_of_a_file(cli, clouds):
    options = ("--mean-degree", 6, "--json")
    done = cli("transfer", "new.csv", "labeled.csv", "--label-column", "kind", "-o", "l.csv",
               "--plan", "p.otg", *options)  # fmt: skip
    assert (done.code, done.err) == (0, "")
    table = pd.read_csv("l.csv", index_col=0)
    assert list(table.index) == list(clouds["new"].index)
    assert list(table) == ["label", "p_left", "p_right", "known"]
    plan = otgraph.transport_graph(clouds["new"], clouds["reference"], mean_degree=6)
    carried = plan.transfer_labels(np.repeat(["left", "right"], 30))
    assert list(table["label"]) == list(carried.labels)
    np.testing.assert_allclose(table[["p_left", "p_right"]], carried.probabilities, atol=1e-6)
    told = json.loads(done.out)
    assert told["certificate"]["status"] == "exact"
    assert told["n_reference"] == 60
    saved = otgraph.CrossGraph.load("p.otg")
    assert (saved.weights != plan.weights).nnz == 0
    again = cli("transfer", "new.csv", "reference.csv", "--labels", "kinds.csv", "-o", "m.csv",
                *options)  # fmt: skip
    assert again.code == 0
    assert list(pd.read_csv("m.csv", index_col=0)["label"]) == list(carried.labels)


def test_points_without_a_counterpart_drop_out(cli, clouds):
    clouds["new"].iloc[3] += 1000.0
    clouds["new"].to_csv("new.csv")
    asked = ("transfer", "new.csv", "labeled.csv", "--label-column", "kind", "-o", "l.csv")
    options = ("--mean-degree", 6, "--outlier-cost", 0.01)
    done = cli(*asked, *options, "--json")
    assert (done.code, done.err) == (0, "")
    told, table = json.loads(done.out), pd.read_csv("l.csv", index_col=0)
    plan = otgraph.transport_graph(
        clouds["new"], clouds["reference"], mean_degree=6, outlier_cost=0.01
    )
    assert told["n_dropped"] == np.count_nonzero(plan.dropped.x)
    assert told["mass_kept"] == pytest.approx(plan.mass_kept.x.mean())
    assert plan.dropped.x[3]
    assert table["known"].to_numpy()[3] == 0.0
    assert pd.isna(table["label"].iloc[3])
    assert "of the reference dropped" in cli(*asked, *options, "--force", "--verbose").out


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ((), "exactly one of --labels and --label-column, got neither"),
        (("--labels", "kinds.csv", "--pca", 2), "--pca would change each file by itself"),
        (("--labels", "kinds.csv", "--eps", -1), "--eps"),
        (("--labels", "kinds.csv", "--eps", 1, "--mean-degree", 3), "at most one"),
        (("--labels", "missing.csv"), "missing.csv"),
    ],
)
def test_errors(cli, clouds, options, match):
    done = cli("transfer", "new.csv", "reference.csv", "-o", "l.csv", *options)
    assert done.code == 1
    assert match in done.err


def test_columns_must_agree(cli, clouds):
    clouds["new"].rename(columns={"b": "z"}).to_csv("other.csv")
    done = cli("transfer", "other.csv", "labeled.csv", "--label-column", "kind", "-o", "l.csv")
    assert done.code == 1
    assert "column 1 is 'z' and not 'b'" in done.err
    clouds["new"].assign(c=1.5).to_csv("wide.csv")
    done = cli("transfer", "wide.csv", "labeled.csv", "--label-column", "kind", "-o", "l.csv")
    assert "must have the 2 columns of labeled.csv, got 3" in done.err
