"""Angles between the spans of two sets of vectors."""

from __future__ import annotations

import numpy as np
import pytest

from otgraph import eigenmaps, subspace_angle
from small_graphs import ring


def test_of_two_lines():
    assert subspace_angle([[1.0], [0.0]], [[np.sqrt(3)], [1.0]]) == pytest.approx(np.pi / 6)


def test_is_the_mean_over_all_directions():
    """One direction in common, one orthogonal: 0 and π/2."""
    assert subspace_angle(np.eye(3)[:, :2], np.eye(3)[:, 1:]) == pytest.approx(np.pi / 4)


def test_depends_on_the_spans_alone(rng):
    A, B = rng.standard_normal((2, 20, 4))
    mixed = A @ rng.standard_normal((4, 4))
    assert subspace_angle(mixed, B) == pytest.approx(subspace_angle(B, A))
    assert subspace_angle(A, mixed) == pytest.approx(0.0, abs=1e-7)


def test_takes_embeddings():
    embedding = eigenmaps(ring(20), 2)
    assert subspace_angle(embedding, embedding.coordinates) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize(
    ("A", "match"),
    [
        (np.ones((3, 1)), "same rows, got 3 and 4"),
        (np.ones(4), r"`A` must be a matrix .* got shape \(4,\)"),
        (np.full((4, 1), np.nan), "`A` must be finite, got nan"),
        (np.zeros((4, 2)), "`A` must have a column that is not zero"),
    ],
)
def test_bad_input(A, match):
    with pytest.raises(ValueError, match=match):
        subspace_angle(A, np.ones((4, 1)))
