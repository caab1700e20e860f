from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import otgraph
from otgraph.experiments._framework.statistics import course, falls, rate
from otgraph.experiments._manifolds import CLOSED, MANIFOLDS, mode_values, modes
from otgraph.experiments.laplace import (
    CORRECTED,
    EIGENFUNCTIONS,
    EXPERIMENT,
    OWN_EIGENFUNCTIONS,
    STEP_RATIO,
    Parameters,
    fitted_step,
    support_radius,
)
from small_experiments import run_small

KNOWN = {
    "circle": [1, 1, 4, 4, 9, 9, 16, 16],
    "sphere": [2] * 3 + [6] * 5 + [12] * 7,
    "torus": [1] * 4 + [2] * 4 + [4] * 4,
    "half circle": [1, 4, 9, 16],
    "half sphere": [2] * 2 + [6] * 3 + [12] * 4,
    "half torus": [1] * 3 + [2] * 2 + [4] * 3,
}


@pytest.mark.parametrize("name", MANIFOLDS)
def test_spectra_of_laplace_beltrami(name):
    leading = modes(name, 0.0, 0.0)
    np.testing.assert_allclose([mode.eigenvalue for mode in leading], KNOWN[name], rtol=1e-3)
    # The first eigenspace is that of the coordinates; on a half, of those not folded.
    manifold = MANIFOLDS[name]
    sample = manifold.sample(400)
    coordinates = sample.X
    if manifold.whole:
        coordinates = np.delete(coordinates, 3 if name == "half torus" else 1, axis=1)
        assert sample.X.min(axis=0)[3 if name == "half torus" else 1] >= 0
    first = mode_values(name, leading[: manifold.n_first], sample.t)
    assert otgraph.subspace_angle(first, coordinates) < 1e-3


def test_halves_are_sampled_with_the_same_density():
    for name, manifold in MANIFOLDS.items():
        if manifold.whole:
            whole = MANIFOLDS[manifold.whole].sample(500, concentration=0.5)
            half = manifold.sample(500, concentration=0.5)
            np.testing.assert_allclose(np.cos(half.t), np.cos(whole.t), atol=1e-12)
            assert half.t.reshape(500, -1)[:, -1].max() <= np.pi, name


def test_weighted_modes_on_the_circle():
    """In one dimension the limit of kNN is the plain Laplacian of the distribution function."""
    kappa = 0.7
    leading = modes("circle", kappa, 2.0)
    angle = np.linspace(0, 2 * np.pi, 20_001)
    density = np.exp(kappa * np.cos(angle))
    step = np.diff(angle)
    F = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * step)])
    expected = (2 * np.pi / F[-1]) ** 2 * np.array(KNOWN["circle"])
    np.testing.assert_allclose([mode.eigenvalue for mode in leading], expected, rtol=1e-3)
    t = np.array([0.3, 1.0, 2.5, 4.0, 6.0])
    turned = 2 * np.pi * np.interp(t, angle, F) / F[-1]
    found = mode_values("circle", leading[:2], t)
    expected = np.column_stack([np.cos(turned), np.sin(turned)])
    assert otgraph.subspace_angle(found, expected) < 1e-3


@pytest.mark.parametrize("name", CLOSED)
def test_eps_gives_the_radius_and_the_step(name):
    manifold, n = MANIFOLDS[name], 3000
    radius = support_radius(manifold, n, Parameters())
    X = manifold.sample(n).X
    graph = otgraph.quadratic_ot_graph(X, manifold.quadratic_eps(radius, n), normalize=False)
    expected_degree = n * manifold.ball * radius**manifold.dim / manifold.volume
    assert graph.mean_degree == pytest.approx(expected_degree, rel=0.05)
    pairs = graph.weights.tocoo()
    squares = ((X[pairs.row] - X[pairs.col]) ** 2).sum(axis=1)
    mean_square = (pairs.data * squares).sum() / n
    assert mean_square == pytest.approx(2 * manifold.dim * manifold.step(radius), rel=0.05)


def test_step_of_an_exact_spectrum():
    eigenvalues = np.array([1.0, 1.0, 4.0, 4.0])
    assert fitted_step(0.01 * eigenvalues, eigenvalues, 2) == (0.01, 0.0)
    _, error = fitted_step(np.array([0.01, 0.01, 0.044, 0.036]), eigenvalues, 2)
    assert error == pytest.approx(0.1)


def test_rates():
    n = np.array([100, 200, 400])
    table = pd.DataFrame([n**-0.5, 2 * n**-0.4], columns=n)
    assert rate(table)[0] == pytest.approx(-0.45)
    assert "0.208" in course(table.iloc[:1] * 2.08)
    assert not falls(table)  # two seeds that differ: the interval is wide
    assert falls(pd.DataFrame([n**-0.5, 2 * n**-0.5001], columns=n))
    assert not falls(pd.DataFrame([n**0.5, 2 * n**0.5001], columns=n))


def test_small_run():
    parameters = replace(
        Parameters(),
        manifolds=("circle", "sphere", "half circle"),
        n=(150, 300),
        large_n=(400,),
        dense_n=150,
        degree=40.0,
    )
    scores, summary, pictures = run_small(EXPERIMENT, parameters)
    assert len(summary.claims) == 11
    assert all(claim.reason for claim in summary.claims)
    assert pictures == ["even", "uneven-eigenfunctions", "uneven-eigenvalues", "border"]
    # The largest n is for surfaces at a fixed eps.
    large = scores[scores["n"] == 400]
    assert set(large["manifold"]) == {"sphere"}
    assert large["method"].str.endswith("fixed eps").all()
    assert scores["value"].notna().all()
    closed = scores[scores["manifold"] != "half circle"]
    means = closed.groupby(["score", "density", "method", "n"])["value"].mean()
    assert means[STEP_RATIO, "even", "quadratic OT, hollow", 300] == pytest.approx(1, abs=0.1)
    # More points are better, and dividing the density out helps even here.
    for method in (CORRECTED, "kNN"):
        errors = means[EIGENFUNCTIONS, "even", method]
        assert errors[300] < errors[150]
    uneven = means[EIGENFUNCTIONS, "uneven"]
    assert uneven[CORRECTED, 300] < uneven["quadratic OT, hollow", 300]
    assert means[OWN_EIGENFUNCTIONS, "uneven", "kNN", 300] < uneven["kNN", 300]
