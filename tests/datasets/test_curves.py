from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from otgraph.datasets import (
    closed_curve,
    elephant_curve,
    label_mask,
    noisy_spiral,
    spiral_arms,
)
from otgraph.datasets.curves import _peanut, _peanut_speed, _spiral, _spiral_speed

# Arc lengths below come from an adaptive quadrature that is good to about 1e-10.
GAP_RTOL = 1e-6


def lengths_between(t, speed):
    return np.array([quad(speed, a, b, epsabs=1e-12)[0] for a, b in pairwise(t)])


def arm_length(t):
    """Length of (t cos t, t sin t) from 0, in closed form."""
    return (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2


@pytest.mark.parametrize(("curve", "speed"), [(_spiral, _spiral_speed), (_peanut, _peanut_speed)])
def test_speed_is_the_norm_of_the_derivative(curve, speed):
    t, h = np.linspace(0, 2 * np.pi, 57), 1e-5
    derivative = (curve(t + h) - curve(t - h)) / (2 * h)
    np.testing.assert_allclose(speed(t), np.linalg.norm(derivative, axis=1), rtol=1e-8)


class TestNoisySpiral:
    def test_lies_on_the_curve_of_the_paper(self):
        spiral = noisy_spiral(n=3)
        np.testing.assert_allclose(spiral.clean[0], [1.5, 0.0, 0.0])  # t = 0
        t = spiral.t[1]
        expected = [
            np.cos(t) * (0.5 * np.cos(6 * t) + 1),
            np.sin(t) * (0.4 * np.cos(6 * t) + 1),
            0.4 * np.sin(6 * t),
        ]
        np.testing.assert_allclose(spiral.clean[1], expected)

    def test_steps_have_equal_length_around_the_whole_loop(self):
        t = noisy_spiral(n=101).t
        steps = lengths_between(np.append(t, 2 * np.pi), _spiral_speed)
        np.testing.assert_allclose(steps, steps.mean(), rtol=GAP_RTOL)

    def test_end_is_not_the_start_again(self):
        clean = noisy_spiral(n=500).clean
        first_step = np.linalg.norm(clean[1] - clean[0])
        np.testing.assert_allclose(np.linalg.norm(clean[-1] - clean[0]), first_step, rtol=1e-3)

    def test_basis_is_orthonormal(self):
        basis = noisy_spiral().basis
        assert basis.shape == (100, 3)
        np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-14)

    def test_noise_has_the_norm_of_the_paper(self):
        spiral = noisy_spiral(noise=0.5)
        noise = np.linalg.norm(spiral.X - spiral.clean @ spiral.basis.T, axis=1)
        rho = 0.05 + 0.95 * (1 + np.cos(6 * spiral.t)) / 2
        np.testing.assert_allclose(noise, 0.5 * rho, rtol=1e-12)
        np.testing.assert_allclose(spiral.noise_level, noise, rtol=1e-12)

    def test_noise_has_no_preferred_direction(self):
        spiral = noisy_spiral(n=4000)
        noise = spiral.X - spiral.clean @ spiral.basis.T
        directions = noise / spiral.noise_level[:, None]
        # The mean of n unit vectors has norm about 1/sqrt(n) = 0.016.
        assert np.linalg.norm(directions.mean(axis=0)) < 0.032

    def test_three_dimensions_are_not_turned(self):
        spiral = noisy_spiral(n=50, dim=3, noise=0)
        np.testing.assert_array_equal(spiral.X, spiral.clean)

    def test_float32_is_the_same_data_rounded(self):
        double, single = noisy_spiral(n=50), noisy_spiral(n=50, dtype=np.float32)
        assert single.X.dtype == np.float32
        np.testing.assert_array_equal(double.X.astype(np.float32), single.X)

    def test_too_few_dimensions(self):
        with pytest.raises(ValueError, match=r"`dim` must be an integer >= 3, got 2"):
            noisy_spiral(dim=2)


class TestSpiralArms:
    def test_shape_and_labels(self):
        arms = spiral_arms()
        assert arms.X.shape == (1500, 100)
        np.testing.assert_array_equal(np.bincount(arms.labels), np.full(10, 150))

    def test_arms_are_turned_copies(self):
        arms = spiral_arms(40, n_arms=5, noise=0)
        by_arm = arms.clean.reshape(5, 40, 2)
        c, s = np.cos(2 * np.pi / 5), np.sin(2 * np.pi / 5)
        turn = np.array([[c, -s], [s, c]])
        for arm, following in pairwise(by_arm):
            np.testing.assert_allclose(arm @ turn.T, following, atol=1e-12)
        # The last arm is turned by a full circle.
        t = arms.t[-40:]
        np.testing.assert_allclose(
            by_arm[-1], np.column_stack([t * np.cos(t), t * np.sin(t)]), atol=1e-12
        )

    def test_even_steps_from_end_to_end(self):
        t = spiral_arms(60, n_arms=1).t
        np.testing.assert_allclose([t[0], t[-1]], [1.0, 5.0])
        steps = np.diff(arm_length(t))
        np.testing.assert_allclose(steps, steps.mean(), rtol=GAP_RTOL)

    @pytest.mark.parametrize(
        ("spacing", "measure"), [("random", arm_length), ("uniform", lambda t: t)]
    )
    def test_random_spacing_follows_its_measure(self, spacing, measure):
        t = spiral_arms(4000, n_arms=1, dim=2, spacing=spacing).t
        assert t.min() >= 1
        assert t.max() <= 5
        share = (measure(3.0) - measure(1.0)) / (measure(5.0) - measure(1.0))
        assert abs((t < 3).mean() - share) < 0.025  # three standard errors

    def test_noise_vanishes_where_the_sine_is_one(self):
        arms = spiral_arms(noise=0.5)
        noise = np.linalg.norm(arms.X - arms.clean @ arms.basis.T, axis=1)
        np.testing.assert_allclose(noise, 0.5 * (1 - np.sin(3 * arms.t) ** 4), atol=1e-12)

    def test_plane_without_noise_is_the_curve_itself(self):
        arms = spiral_arms(50, dim=2, noise=0, t_range=(0.5, 5.0), spacing="uniform")
        np.testing.assert_array_equal(arms.X, arms.clean)
        np.testing.assert_allclose(np.linalg.norm(arms.X, axis=1), arms.t)

    def test_bad_arguments_are_named(self):
        with pytest.raises(ValueError, match=r"`spacing` must be one of .*, got 'odd'"):
            spiral_arms(spacing="odd")
        with pytest.raises(ValueError, match="`t_range` must be two rising numbers"):
            spiral_arms(t_range=(5.0, 1.0))


class TestClosedCurve:
    def test_density_falls_by_the_contrast(self):
        curve = closed_curve(n=40_000, contrast=10)

        def points_per_length(center, width=0.2):
            inside = abs(np.angle(np.exp(1j * (curve.t - center)))) < width
            return inside.sum() / quad(_peanut_speed, center - width, center + width)[0]

        ratio = points_per_length(0.0) / points_per_length(np.pi)
        assert 9 < ratio < 11

    def test_contrast_one_is_uniform_by_arc_length(self):
        curve = closed_curve(n=40_000, contrast=1)
        half = quad(_peanut_speed, 0, np.pi / 3)[0] / quad(_peanut_speed, 0, 2 * np.pi)[0]
        assert abs((curve.t < np.pi / 3).mean() - half) < 0.01

    def test_is_clean(self):
        curve = closed_curve()
        np.testing.assert_array_equal(curve.X, curve.clean)
        np.testing.assert_allclose(
            np.linalg.norm(curve.X, axis=1), 1 + 0.4 * np.cos(2 * curve.t), rtol=1e-12
        )

    def test_bad_contrast(self):
        with pytest.raises(ValueError, match="`contrast` must be a finite number >= 1, got 0"):
            closed_curve(contrast=0.5)


class TestElephantCurve:
    def test_lies_on_the_curve_of_its_four_parameters(self):
        """Fourier sums of complex coefficients, as the elephant was published."""
        p1, p2, p3, p4 = 50 - 30j, 18 + 8j, 12 - 10j, -14 - 60j
        down = {1: p1.real * 1j, 2: p2.real * 1j, 3: p3.real, 5: p4.real}
        right = {1: p4.imag + p1.imag * 1j, 2: p2.imag * 1j, 3: p3.imag * 1j}
        elephant = elephant_curve(n=300)

        def fourier(coefficients):
            return sum(
                c.real * np.cos(k * elephant.t) + c.imag * np.sin(k * elephant.t)
                for k, c in ((k, complex(c)) for k, c in coefficients.items())
            )

        expected = np.column_stack([fourier(right), -fourier(down)])
        np.testing.assert_allclose(elephant.clean, expected, atol=1e-12)

    def test_angles_follow_the_von_mises_distribution(self):
        angles = elephant_curve(n=20_000).t
        centered = (angles + np.pi) % (2 * np.pi) - np.pi
        assert stats.kstest(centered, stats.vonmises(1.1).cdf).pvalue > 0.01
        assert np.all(np.diff(angles) >= 0)  # ordered along the curve

    def test_noise_is_gaussian_of_the_given_size(self):
        elephant = elephant_curve(n=20_000, noise=3.0)
        noise = (elephant.X - elephant.clean).ravel()
        assert stats.kstest(noise, stats.norm(0, 3).cdf).pvalue > 0.01
        np.testing.assert_array_equal(elephant.noise_level, 3.0)

    @pytest.mark.parametrize("name", ["concentration", "noise"])
    def test_negative_numbers_are_named(self, name):
        with pytest.raises(ValueError, match=f"`{name}` must be a finite number >= 0, got -1"):
            elephant_curve(**{name: -1})


class TestLabelMask:
    def test_every_group_keeps_the_same_share(self):
        labels = np.repeat([0, 1, 2], [40, 80, 3])
        mask = label_mask(labels, 0.1)
        np.testing.assert_array_equal(np.bincount(labels[mask]), [4, 8, 1])

    @pytest.mark.parametrize(
        ("fraction", "n", "kept"),
        [
            (0.01, 225, 3),
            (0.01, 250, 3),
            (0.01, 125, 2),
            (0.025, 150, 4),
            (0.07, 100, 7),
            (1, 9, 9),
        ],
    )
    def test_rounded_up_as_published(self, fraction, n, kept):
        assert label_mask(np.zeros(n, dtype=int), fraction).sum() == kept

    def test_other_seed_other_points(self):
        labels = np.zeros(100, dtype=int)
        assert (label_mask(labels, 0.1) != label_mask(labels, 0.1, random_state=1)).any()

    @pytest.mark.parametrize("fraction", [0, -0.1, 1.5])
    def test_bad_fraction(self, fraction):
        with pytest.raises(ValueError, match="`fraction` must be a number in"):
            label_mask([0, 1], fraction)


@pytest.mark.parametrize("make", [noisy_spiral, spiral_arms, closed_curve, elephant_curve])
class TestSeeds:
    def test_same_seed_same_points(self, make):
        np.testing.assert_array_equal(make(30).X, make(30, random_state=0).X)

    def test_generator_is_used_and_moves_on(self, make):
        generator = np.random.default_rng(0)
        np.testing.assert_array_equal(make(30, random_state=generator).X, make(30).X)
        assert (make(30, random_state=generator).X != make(30).X).any()
