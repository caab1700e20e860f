"""Find the colors in ``otgraph/plots/palette.py``: ``python tools/palette.py``.

The first ten are given. The others are taken one by one from all colors of a screen that are
neither gray, nor as light as paper, nor as dark as ink. Each is the color whose distance from its
nearest predecessor is largest, for the eyes of most readers and for those that lack red or green.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph.plots.palette import GROUPS, INK, UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from otgraph.typing import FloatArray

PAPER = "#ffffff"
MOST_GROUPS = 100  # more cannot be told apart; colors repeat
STEPS = 24  # per channel of the screen, between candidates
LIGHTNESS = (0.42, 0.86)  # range in OKLab: seen on paper, and not taken for black
CHROMA = (0.075, 0.21)  # range of the distance from gray in OKLab: neither gray nor glaring
# Linear sRGB as seen without red and without green cones (Viénot, Brettel and Mollon 1999).
WITHOUT_RED = ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0))
WITHOUT_GREEN = ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0))
# Distances for these readers count this many times: they see two dimensions of color out of three,
# and would otherwise decide alone.
ALLOWANCE = 2.0
# OKLab (Ottosson 2020): cone responses of linear sRGB, and opponent colors of their cube roots.
TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
TO_OPPONENTS = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def found_colors(n: int) -> list[str]:
    """The first n colors."""
    levels = np.linspace(0.0, 1.0, STEPS)
    rgb = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1).reshape(-1, 3)
    lightness, *opponents = oklab(rgb).T
    rgb = rgb[_within(lightness, LIGHTNESS) & _within(np.hypot(*opponents), CHROMA)]
    candidates = views(rgb)
    distance = np.full(len(rgb), np.inf)
    chosen = [*GROUPS]
    for color in (PAPER, INK, UNKNOWN, *GROUPS):
        distance = np.minimum(distance, distances(candidates, views(rgb_of(color)[None])))
    while len(chosen) < n:
        best = int(np.argmax(distance))
        chosen.append("#" + "".join(f"{round(255 * value):02x}" for value in rgb[best]))
        distance = np.minimum(distance, distances(candidates, candidates[:, [best]]))
    return chosen


def oklab(rgb: FloatArray) -> FloatArray:
    """Lightness and two opponent colors, in which distances are as seen; rows of sRGB in [0, 1]."""
    return _oklab_of_linear(_linear(rgb))


def views(rgb: FloatArray) -> FloatArray:
    """Coordinates for readers of three kinds, shape (3, n, 3)."""
    linear = _linear(rgb)
    kinds = [np.eye(3), np.array(WITHOUT_RED), np.array(WITHOUT_GREEN)]
    return np.stack([_oklab_of_linear(np.clip(linear @ kind.T, 0.0, 1.0)) for kind in kinds])


def distances(candidates: FloatArray, color: FloatArray) -> FloatArray:
    """Distances from one color, for those who see them smallest."""
    usual, *lacking = np.linalg.norm(candidates - color, axis=2)
    return np.minimum(usual, ALLOWANCE * np.minimum(*lacking))


def _within(values: FloatArray, limits: tuple[float, float]) -> NDArray[np.bool_]:
    return (values >= limits[0]) & (values <= limits[1])


def _linear(rgb: FloatArray) -> FloatArray:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _oklab_of_linear(linear: FloatArray) -> FloatArray:
    return np.asarray(np.cbrt(linear @ np.array(TO_CONES).T) @ np.array(TO_OPPONENTS).T)


def rgb_of(color: str) -> FloatArray:
    """Red, green and blue of a hexadecimal string, from 0 to 1."""
    return np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255


if __name__ == "__main__":
    print(*found_colors(MOST_GROUPS), sep="\n")
