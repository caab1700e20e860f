"""The intrinsic dimension, against manifolds of known dimension."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from otgraph import datasets, intrinsic_dimension
from otgraph.graphs.dimension import FEW, NOISE

CLOUDS = {
    "circle": (1, datasets.circle(800).X),
    "uneven circle": (1, datasets.circle(800, concentration=1.0).X),
    "sphere": (2, datasets.sphere(800).X),
    "uneven torus": (2, datasets.flat_torus(800, concentration=0.5).X),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_known_dimensions(name):
    dim, X = CLOUDS[name]
    found = intrinsic_dimension(X)
    assert abs(found.value - dim) < 3 * found.error
    assert found.error < 0.1 * dim
    assert found.trusted
    assert float(found) == found.value
    assert len(found.local) == len(found.eps) - 1
    assert found.local.min() <= found.value <= found.local.max()


def test_a_sphere_of_five_dimensions(rng):
    X = rng.normal(size=(1500, 6))
    found = intrinsic_dimension(X / np.linalg.norm(X, axis=1, keepdims=True))
    assert found.value == pytest.approx(5.0, rel=0.06)
    assert found.trusted


@pytest.mark.parametrize("options", [{"power": 1.0}, {"metric": "cosine"}, {"self_loops": True}])
def test_any_cost(options):
    assert intrinsic_dimension(CLOUDS["sphere"][1], **options).value == pytest.approx(2, rel=0.08)


def test_given_costs_are_those_of_the_points():
    X = CLOUDS["sphere"][1]
    found = intrinsic_dimension(cdist(X, X, "sqeuclidean"), metric="precomputed")
    assert found.value == pytest.approx(intrinsic_dimension(X).value, rel=1e-4)
    assert found.coarse is not None


def test_noise_that_fills_the_space_is_told(rng):
    X = np.pad(datasets.circle(1000).X, ((0, 0), (0, 8))) + 0.05 * rng.normal(size=(1000, 10))
    found = intrinsic_dimension(X)
    assert found.value > 4
    assert found.coarse < 2.5  # there it is a circle
    assert found.doubt == NOISE
    assert "noise" in repr(found)
    spiral = intrinsic_dimension(datasets.noisy_spiral(n=1000).X)
    assert spiral.doubt == NOISE


def test_error_bar_is_that_of_samples():
    found = [intrinsic_dimension(datasets.sphere(500, random_state=seed).X) for seed in range(6)]
    values, errors = np.array([(each.value, each.error) for each in found]).T
    assert np.all(np.abs(values - 2) < 2 * errors)
    assert values.std() < errors.mean()


def test_few_points_and_copies(rng):
    found = intrinsic_dimension(rng.normal(size=(60, 2)))
    assert found.doubt == FEW
    assert 1.2 < found.value < 3
    assert intrinsic_dimension(np.repeat(rng.normal(size=(3, 2)), 30, axis=0)).value < 0.5
    with pytest.raises(ValueError, match="at least 20 points"):
        intrinsic_dimension(rng.normal(size=(19, 2)))


def test_does_not_depend_on_threads_or_units():
    X = CLOUDS["sphere"][1]
    one, two = intrinsic_dimension(X, n_jobs=1), intrinsic_dimension(X, n_jobs=2)
    assert one.value == two.value
    assert intrinsic_dimension(1e3 * X).value == pytest.approx(one.value, rel=1e-5)


def test_many_points_are_sampled(monkeypatch):
    monkeypatch.setattr("otgraph.graphs.dimension.MOST_POINTS", 400)
    assert intrinsic_dimension(CLOUDS["circle"][1]).n_points == 400
