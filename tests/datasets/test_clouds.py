from __future__ import annotations

import numpy as np
import pytest

from otgraph.datasets import gaussian_mixture, noisy_manifold, sample


class TestGaussianMixture:
    def test_centers_and_widths(self):
        mixture = gaussian_mixture(2000)
        assert mixture.X.shape == (6000, 250)
        for group, sigma in enumerate((0.3, 0.6, 1.0)):
            points = mixture.X[mixture.labels == group]
            angle = 2 * np.pi * group / 3
            center = np.zeros(250)
            center[:2] = 1.5 * np.cos(angle), 1.5 * np.sin(angle)
            # Five standard errors of a mean; 1 % of a standard deviation over 500 000 numbers.
            np.testing.assert_allclose(points.mean(axis=0), center, atol=5 * sigma / 2000**0.5)
            assert abs((points - center).std() / sigma - 1) < 0.01

    def test_clean_points_are_the_centers(self):
        mixture = gaussian_mixture(5)
        np.testing.assert_allclose(np.linalg.norm(mixture.clean, axis=1), 1.5)
        assert len(np.unique(mixture.clean.round(6), axis=0)) == 3

    def test_same_seed_same_points(self):
        np.testing.assert_array_equal(gaussian_mixture(5).X, gaussian_mixture(5).X)
        assert (gaussian_mixture(5).X != gaussian_mixture(5, random_state=1).X).any()


class TestNoisyManifold:
    def test_noise_norm_follows_the_first_parameter(self):
        manifold = noisy_manifold(500)
        noise = np.linalg.norm(manifold.X - manifold.clean @ manifold.basis.T, axis=1)
        rho = 0.3 * (0.05 + 0.95 * (1 + np.cos(2 * np.pi * manifold.t[:, 0])) / 2)
        np.testing.assert_allclose(noise, rho, rtol=1e-10)
        assert noise.max() > 10 * noise.min()  # uneven: that is its purpose

    def test_basis_is_orthonormal(self):
        basis = noisy_manifold(10).basis
        assert basis.shape == (50, 20)
        np.testing.assert_allclose(basis.T @ basis, np.eye(20), atol=1e-14)

    def test_locally_five_dimensional(self):
        # Neighbors of a point on the clean manifold span its tangent space: five singular values
        # of the size of the step, the others of the size of its square (curvature).
        manifold = noisy_manifold(200_000, noise=0)
        offsets = manifold.clean - manifold.clean[0]
        near = np.argsort((offsets**2).sum(axis=1))[1:31]
        values = np.linalg.svd(offsets[near], compute_uv=False)
        assert values[4] > 2 * values[5]

    def test_map_is_one_to_one(self):
        # Points that are close on the manifold are close in parameters.
        manifold = noisy_manifold(20_000, noise=0)
        offsets = manifold.clean - manifold.clean[0]
        near = np.argsort((offsets**2).sum(axis=1))[1:11]
        assert abs(manifold.t[near] - manifold.t[0]).max() < 0.5

    def test_float32_is_the_same_data_rounded(self):
        double, single = noisy_manifold(50), noisy_manifold(50, dtype=np.float32)
        assert single.X.dtype == np.float32
        np.testing.assert_array_equal(double.X.astype(np.float32), single.X)

    def test_blocks_do_not_show(self, monkeypatch):
        whole = noisy_manifold(100)
        monkeypatch.setattr(sample, "BLOCK_SIZE", 50 * 7)
        # A product of another shape may round differently in the last digit.
        np.testing.assert_allclose(noisy_manifold(100).X, whole.X, rtol=0, atol=1e-14)

    def test_too_few_dimensions(self):
        with pytest.raises(ValueError, match="`dim` must be an integer >= 20, got 10"):
            noisy_manifold(dim=10)
