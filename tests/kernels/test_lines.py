"""Coverage of pixels by lines, against areas that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from otgraph._kernels.lines import add_lines


def painted(ends, width, shape=(6, 8), value=1.0):
    out = np.zeros(shape)
    x, y = np.array(ends, dtype=float).T
    index = np.arange(0, len(x), 2)
    add_lines(x.copy(), y.copy(), index, index + 1, np.full(len(index), value), width / 2, out)
    return out


def test_horizontal_line_covers_its_share_of_every_pixel():
    out = painted([(1.5, 2.5), (4.0, 2.5)], width=1.0)
    expected = np.zeros((6, 8))
    expected[2, 1:4] = [0.5, 1.0, 1.0]
    np.testing.assert_allclose(out, expected, atol=1e-12)


def test_line_between_two_rows_of_pixels():
    out = painted([(2.0, 3.0), (4.0, 3.0)], width=1.0)
    np.testing.assert_allclose(out[2:4, 2:4], 0.5)
    assert out.sum() == pytest.approx(2.0)


@pytest.mark.parametrize("end", [(5.0, 3.0), (3.0, 5.0), (1.0, 1.0), (2.0, 5.0), (6.5, 1.25)])
@pytest.mark.parametrize("width", [0.3, 1.0, 2.0])
def test_total_is_length_times_width(end, width):
    start = np.array([3.0, 3.0])
    length = np.linalg.norm(np.array(end) - start)
    out = painted([start, end], width)
    assert out.sum() == pytest.approx(length * width)
    np.testing.assert_allclose(out, painted([end, start], width), atol=1e-12)


def test_transposed_line_is_the_transposed_picture():
    out = painted([(0.5, 1.0), (5.5, 3.0)], 0.8, shape=(6, 6))
    np.testing.assert_allclose(out.T, painted([(1.0, 0.5), (3.0, 5.5)], 0.8, shape=(6, 6)))


def test_only_the_part_inside_is_painted():
    out = painted([(-100.0, 2.5), (100.0, 2.5)], 1.0)
    np.testing.assert_allclose(out[2], 1.0)
    assert out.sum() == pytest.approx(8.0)
    assert painted([(-5.0, -5.0), (-1.0, 20.0), (9.0, 0.0), (30.0, 6.0)], 1.0).sum() == 0.0


def test_points_are_no_lines():
    assert painted([(2.0, 2.0), (2.0, 2.0)], 1.0).sum() == 0.0
