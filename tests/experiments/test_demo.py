from __future__ import annotations

import re

import numpy as np
import pytest

import otgraph
from otgraph.experiments import demo


@pytest.fixture
def report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    demo.main()
    return capsys.readouterr().out


def test_demo_tells_and_draws(report, tmp_path):
    assert "exact: " in report
    assert report.rstrip().endswith(f"Picture: {demo.PICTURE}")
    picture = (tmp_path / demo.PICTURE).read_bytes()
    assert picture.startswith(b"\x89PNG")
    # The claim of the picture: OT connects noisy points with each other, nearest neighbors do not.
    ours, rival = (int(share) for share in re.findall(r"keeps (\d+)% of its weight", report))
    assert ours > 2 * rival


def test_rival_has_the_closest_mean_degree(rng):
    X = rng.standard_normal((60, 3))
    wanted = 9.0
    found = demo.knn_of_mean_degree(X, wanted)
    errors = [
        abs(otgraph.knn_gaussian_graph(X, n_neighbors=k, eps=None).mean_degree - wanted)
        for k in range(1, 20)
    ]
    assert abs(found.mean_degree - wanted) == min(errors)


def test_steps_count_the_shorter_way_around():
    steps = demo.steps_along_curve(np.array([0, 0, 7]), np.array([3, 9, 2]), 10)
    np.testing.assert_array_equal(steps, [3, 1, 5])
