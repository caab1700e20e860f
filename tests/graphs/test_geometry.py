"""Density and geometry from the weights of a plan, against manifolds whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from scipy.special import i0

import otgraph
from otgraph import datasets
from otgraph.experiments._manifolds import CLOSED, MANIFOLDS, mode_values, modes
from otgraph.graphs._canonical import without_loops
from otgraph.graphs.geometry import corrected, neighborhoods

N = 1200
CONSTRUCTIONS = {
    "quadratic": lambda X, **kw: otgraph.quadratic_ot_graph(X, mean_degree=40, **kw),
    "entropic": lambda X, **kw: otgraph.entropic_ot_graph(X, 0.03, **kw),
    "gaussian": lambda X, **kw: otgraph.gaussian_graph(X, 0.03, **kw),
}
# Logarithm of the integral of e^(cos t) over each manifold.
LOG_TOTAL = {
    "circle": np.log(2 * np.pi * i0(1.0)),
    "sphere": np.log(4 * np.pi * np.sinh(1.0)),
    "torus": np.log(4 * np.pi**2 * i0(1.0)),
}


def uneven(name, n=N, seed=0):
    """A sample of density e^(cos t), the logarithm of its density, and its first angle."""
    sample = MANIFOLDS[name].sample(n, concentration=1.0, random_state=seed)
    first = sample.t.reshape(n, -1)[:, 0]
    return sample, np.cos(first) - LOG_TOTAL[name]


def angle_to_truth(name, sample, embedding):
    leading = modes(name, 0.0, 0.0)[: embedding.coordinates.shape[1]]
    return otgraph.subspace_angle(embedding, mode_values(name, leading, sample.t))


class TestDensity:
    @pytest.mark.parametrize("method", CONSTRUCTIONS)
    @pytest.mark.parametrize("name", CLOSED)
    def test_is_the_true_one(self, name, method):
        """In absolute terms: a probability density per volume, not only up to a constant."""
        sample, truth = uneven(name)
        error = CONSTRUCTIONS[method](sample.X).log_density(MANIFOLDS[name].dim) - truth
        assert abs(error.mean()) < 0.05
        assert error.std() < 0.4  # of the order of 1/sqrt(degree)

    @pytest.mark.parametrize(
        "options",
        [
            {"power": 1.0},
            {"power": 3.0},
            {"normalize": False},
            {"metric": "sqeuclidean", "power": 1},
        ],
    )
    @pytest.mark.parametrize("method", CONSTRUCTIONS)
    def test_does_not_depend_on_the_cost(self, method, options):
        sample, truth = uneven("circle")
        graph = otgraph.quadratic_ot_graph(sample.X, mean_degree=40, **options)
        if method != "quadratic":
            eps = {1.0: 0.1, 3.0: 0.01}.get(options.get("power"), 0.03)
            if options.get("normalize") is False or "metric" in options:
                eps = 0.03
            graph = otgraph.graphs.constructions.CONSTRUCTIONS[method].build(
                sample.X, eps=eps, **options
            )
        error = graph.log_density(1) - truth
        assert abs(error.mean()) < 0.06

    def test_cosine_is_measured_on_the_unit_sphere(self):
        sample, truth = uneven("sphere")
        lengths = np.random.default_rng(0).uniform(0.5, 2.0, (N, 1))
        graph = otgraph.quadratic_ot_graph(lengths * sample.X, mean_degree=40, metric="cosine")
        assert abs((graph.log_density(2) - truth).mean()) < 0.05

    def test_has_the_unit_of_the_points(self):
        sample, _ = uneven("sphere")
        small, large = (CONSTRUCTIONS["quadratic"](s * sample.X) for s in (1.0, 10.0))
        shift = small.log_density(2) - large.log_density(2)
        np.testing.assert_allclose(shift, 2 * np.log(10.0), rtol=1e-6)

    def test_masses_change_the_weights_but_not_the_density_of_points(self):
        sample, truth = uneven("circle")
        mass = 1.0 + 0.5 * np.sin(sample.t)
        graph = otgraph.quadratic_ot_graph(sample.X, mean_degree=40, mass=mass)
        error = graph.log_density(1) - truth
        assert abs(error.mean()) < 0.06
        assert abs(np.corrcoef(error, mass)[0, 1]) < 0.2

    @pytest.mark.parametrize("self_loops", [False, True])
    def test_loops_do_not_count(self, self_loops):
        sample, truth = uneven("circle")
        graph = otgraph.quadratic_ot_graph(sample.X, mean_degree=40, self_loops=self_loops)
        assert abs((graph.log_density(1) - truth).mean()) < 0.05

    def test_points_without_neighbors(self):
        X = np.array([[0.0], [0.1], [0.2], [9.0]])
        graph = otgraph.quadratic_ot_graph(X, 0.01, self_loops=True, connect=False)
        density = graph.log_density(1)
        assert density[3] == -np.inf
        assert np.isfinite(density[:3]).all()
        assert np.isfinite(graph.without_density(1).weights.data).all()


class TestDimensionOfAPlan:
    @pytest.mark.parametrize("method", CONSTRUCTIONS)
    @pytest.mark.parametrize("name", CLOSED)
    def test_is_near_the_true_one(self, name, method):
        graph = CONSTRUCTIONS[method](uneven(name)[0].X)
        assert neighborhoods(graph).dimension() == pytest.approx(MANIFOLDS[name].dim, rel=0.12)


class TestWithoutDensity:
    @pytest.mark.parametrize("method", CONSTRUCTIONS)
    @pytest.mark.parametrize(("name", "k"), [("circle", 4), ("sphere", 8), ("torus", 8)])
    def test_laplace_beltrami(self, name, k, method):
        """Eigenfunctions of the manifold, and eigenvalues in its units."""
        sample, _ = uneven(name)
        graph = CONSTRUCTIONS[method](sample.X)
        found = otgraph.eigenmaps(graph, k, density="corrected", dim=MANIFOLDS[name].dim)
        plain = angle_to_truth(name, sample, otgraph.eigenmaps(graph, k))
        assert angle_to_truth(name, sample, found) < 0.6 * plain
        truth = [mode.eigenvalue for mode in modes(name, 0.0, 0.0)[:k]]
        np.testing.assert_allclose(found.laplacian_eigenvalues, truth, rtol=0.25)

    @pytest.mark.parametrize("power", [1.0, 3.0])
    def test_other_powers(self, power):
        sample, _ = uneven("circle")
        graph = otgraph.quadratic_ot_graph(sample.X, mean_degree=60, power=power)
        found = otgraph.eigenmaps(graph, 4, density="corrected", dim=1)
        assert angle_to_truth("circle", sample, found) < 0.05
        np.testing.assert_allclose(found.laplacian_eigenvalues, [1, 1, 4, 4], rtol=0.1)

    def test_is_what_eigenmaps_and_laplacian_use(self):
        sample, _ = uneven("sphere", 300)
        graph = otgraph.quadratic_ot_graph(sample.X, mean_degree=30)
        without = graph.without_density(2)
        found = otgraph.eigenmaps(graph, 3, density="corrected", dim=2)
        again = otgraph.eigenmaps(without, 3)
        np.testing.assert_array_equal(found.coordinates, again.coordinates)
        rate = without.params["rate"]
        np.testing.assert_allclose(found.laplacian_eigenvalues, rate * (1 - again.eigenvalues))
        for normalized in (False, True):
            L = graph.laplacian(normalized=normalized, density="corrected", dim=2)
            assert abs(L - without.laplacian(normalized=normalized)).max() == 0.0
        values = scipy.linalg.eigvalsh(L.toarray())[1:4]
        np.testing.assert_allclose(rate * values, found.laplacian_eigenvalues, rtol=1e-6)

    def test_against_formulas(self):
        """Dense, from the definition: a_i π_ij a_j, and row sums Σ V_ij h_j up to a factor."""
        sample, _ = uneven("sphere", 150)
        graph = otgraph.quadratic_ot_graph(sample.X, 1.0, tol=1e-11)
        W, u, d = graph.weights.toarray(), graph.potentials, 2.0
        level = (W * np.add.outer(u, u)).sum(axis=1) / 2  # rows sum to one
        V = W * np.multiply.outer(level ** (d / 4), level ** (d / 4))
        found = graph.without_density(d).weights.toarray()
        off = ~np.eye(150, dtype=bool)
        factor = (found[off] / np.where(V[off] > 0, V[off], 1))[V[off] > 0]
        np.testing.assert_allclose(factor, factor[0], rtol=1e-9)
        ratio = found.sum(axis=1) / (V @ level)
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
        assert np.diag(found).min() == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_array_equal(found, found.T)

    @pytest.mark.filterwarnings("ignore:Without the density")  # so few points, so small an eps
    @pytest.mark.parametrize("method", CONSTRUCTIONS)
    def test_rows_of_the_graph_give_its_coordinates(self, method):
        sample, _ = uneven("torus", 400)
        graph = CONSTRUCTIONS[method](sample.X)
        found = otgraph.eigenmaps(graph, 4, density="corrected", dim=2)
        np.testing.assert_allclose(found.extend(graph.weights), found.coordinates, atol=1e-8)

    def test_zero_slope_across_a_border(self):
        sample = MANIFOLDS["half sphere"].sample(N, concentration=1.0)
        graph = CONSTRUCTIONS["quadratic"](sample.X)
        found = otgraph.eigenmaps(graph, 5, density="corrected", dim=2)
        assert angle_to_truth("half sphere", sample, found) < 0.12
        np.testing.assert_allclose(found.laplacian_eigenvalues, [2, 2, 6, 6, 6], rtol=0.15)

    def test_a_few_points_that_stand_for_everything(self, rng):
        X = np.concatenate([datasets.circle(500).X, rng.uniform(-4, 4, (5, 2))])
        graph = otgraph.quadratic_ot_graph(X, mean_degree=20, connect=True)
        with pytest.warns(UserWarning, match="lie far from the others"):
            otgraph.eigenmaps(graph, 2, density="corrected")

    def test_new_points(self):
        sample, _ = uneven("circle", 2 * N)
        graph = otgraph.quadratic_ot_graph(sample.X[:N], mean_degree=40)
        found = otgraph.eigenmaps(graph, 2, density="corrected", dim=1)
        new = found.extend(graph.extend(sample.X[N:]))
        assert otgraph.subspace_angle(new, sample.X[N:]) < 0.08

    @pytest.mark.parametrize("eps", [1e-4, 1e-2, 1.0, 100.0])
    @pytest.mark.parametrize(
        "options", [{}, {"self_loops": True}, {"min_degree": 4, "connect": True}]
    )
    def test_is_defined_for_every_plan(self, eps, options, rng):
        """Potentials may be negative or not unique; floors and loops may hold most of the mass."""
        X = np.concatenate([rng.normal(size=(40, 2)), 30 + rng.normal(size=(5, 2)), [[99.0, 0.0]]])
        graph = otgraph.quadratic_ot_graph(X, eps, **{"connect": False, **options})
        weights, found = corrected(graph, None)
        assert np.isfinite(weights.data).all()
        assert weights.data.min() > 0.0
        assert abs(weights - weights.T).max() == 0.0
        assert np.isfinite(found.rate)
        assert (found.factors > 0.0).all()
        assert (found.steps > 0.0).all()
        same, edges = without_loops(weights), without_loops(graph.weights)
        np.testing.assert_array_equal(same.indices, edges.indices)

    def test_potentials_that_are_not_unique_do_not_matter(self):
        """Two points far from two others: u may be moved between the sides of each pair."""
        graph = otgraph.quadratic_ot_graph([[0.0], [1.0], [3.0], [4.5]], eps=0.5)
        shift = np.array([0.4, -0.4, -3.0, 3.0])
        moved = otgraph.TransportGraph(
            weights=graph.weights, params=graph.params, certificate=graph.certificate,
            potentials=graph.potentials + shift, mass=graph.mass,
        )  # fmt: skip
        np.testing.assert_allclose(moved.log_density(1), graph.log_density(1), rtol=1e-8)


class TestRefused:
    @pytest.mark.parametrize(
        "graph",
        [
            otgraph.knn_gaussian_graph(np.arange(5.0)[:, None], 2),
            otgraph.magic_graph(np.arange(9.0)[:, None] ** 2, 2),
            otgraph.Graph.from_weights([[0, 1.0], [1.0, 0]]),
        ],
    )
    def test_graphs_that_do_not_tell_the_density(self, graph):
        for call in (
            graph.log_density,
            graph.without_density,
            lambda: graph.laplacian(density="corrected"),
            lambda: otgraph.eigenmaps(graph, 1, density="corrected"),
        ):
            with pytest.raises(ValueError, match=r"`graph` is .* quadratic_ot_graph"):
                call()

    def test_keywords(self):
        graph = otgraph.quadratic_ot_graph(datasets.circle(50).X)
        with pytest.raises(ValueError, match="`density` must be"):
            otgraph.eigenmaps(graph, density="none")
        with pytest.raises(ValueError, match="`dim` is used with density='corrected' only"):
            otgraph.eigenmaps(graph, dim=2)
        with pytest.raises(ValueError, match="`dim` must be"):
            otgraph.eigenmaps(graph, density="corrected", dim=-1)
        with pytest.raises(ValueError, match="pass a smaller one"):
            graph.without_density(1e4)
