"""Points on a closed curve: length, density, and eigenfunctions of the curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from otgraph import datasets
    from otgraph.typing import BoolArray, FloatArray

WINDOW = 0.01  # share of the length in which points are counted for the density


class Places(NamedTuple):
    """Length of the curve up to each point, length of all, and density over its median."""

    position: FloatArray
    length: float
    density: FloatArray

    @property
    def sparse(self) -> BoolArray:
        """Points of the half of the curve, by length, on which they are sparse."""
        return np.asarray(self.density < 1)


class Outline(NamedTuple):
    """A curve as a polygon through many noiseless points: their parameters and places."""

    t: FloatArray
    known: Places

    def places(self, curve: datasets.Sample) -> Places:
        """Positions of the points of a sample, by their parameters."""
        assert curve.t is not None  # curves have parameters
        position, length, density = self.known
        around = np.append(self.t, self.t[0] + 2 * np.pi)
        found = np.interp(curve.t, around, np.append(position, length))
        return Places(found, length, np.interp(found, position, density))


def outline_of(curve: datasets.Sample) -> Outline:
    """The curve that many points without noise lie on, in their order along it."""
    assert curve.t is not None  # curves have parameters
    steps = np.linalg.norm(np.roll(curve.clean, -1, axis=0) - curve.clean, axis=1)
    position, length = np.cumsum(steps) - steps, float(steps.sum())
    around = np.concatenate([position - length, position, position + length])

    def counted(at: FloatArray) -> FloatArray:
        half = WINDOW * length / 2
        before, behind = (np.searchsorted(around, at + way) for way in (half, -half))
        return (before - behind).astype(np.float64)

    median = np.median(counted(np.linspace(0, length, len(position))))
    return Outline(curve.t, Places(position, length, counted(position) / median))


def eigenfunctions(at: Places) -> FloatArray:
    """The first two non-constant eigenfunctions of Laplace-Beltrami: one wave around the curve."""
    angle = 2 * np.pi * at.position / at.length
    return np.column_stack([np.cos(angle), np.sin(angle)])
