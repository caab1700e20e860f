from __future__ import annotations

import numpy as np
import pytest

from otgraph import datasets

MANIFOLDS = (datasets.circle, datasets.sphere, datasets.flat_torus)


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_points_are_on_the_manifold_where_t_says(manifold):
    sample = manifold(300, concentration=0.7, random_state=3)
    if manifold is datasets.sphere:
        np.testing.assert_allclose(np.linalg.norm(sample.X, axis=1), 1.0)
        np.testing.assert_allclose(sample.X[:, 2], np.cos(sample.t[:, 0]))
        np.testing.assert_allclose(
            np.arctan2(sample.X[:, 1], sample.X[:, 0]) % (2 * np.pi), sample.t[:, 1]
        )
    else:
        angles = sample.t.reshape(300, -1)
        expected = np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(300, -1)
        np.testing.assert_allclose(sample.X, expected)


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_density(manifold):
    """Mean of cos t under e^(κ cos t), against an integral."""
    kappa = 1.3
    sample = manifold(40_000, concentration=kappa, random_state=1)
    angle = np.linspace(0, np.pi, 2001)
    area = np.sin(angle) if manifold is datasets.sphere else np.ones_like(angle)
    weight = area * np.exp(kappa * np.cos(angle))
    expected = np.sum(weight * np.cos(angle)) / np.sum(weight)
    found = np.cos(sample.t.reshape(len(sample), -1)[:, 0])
    assert found.mean() == pytest.approx(expected, abs=5 * found.std() / np.sqrt(len(found)))
    even = manifold(40_000, random_state=1)
    assert np.abs(even.X.mean(axis=0)).max() < 5 / np.sqrt(40_000)


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_seeds(manifold):
    np.testing.assert_array_equal(manifold(20).X, manifold(20).X)
    assert not np.array_equal(manifold(20).X, manifold(20, random_state=1).X)


def test_bad_concentration():
    for value in (-0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match="`concentration` must be a finite number >= 0"):
            datasets.circle(10, concentration=value)
