"""Graphs without small weights lack no more than they say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import otgraph
from otgraph.exceptions import MemoryLimitError
from otgraph.graphs import cutoff

BUILDERS = {"gaussian": otgraph.gaussian_graph, "entropic": otgraph.entropic_ot_graph}


@pytest.fixture
def X(rng):
    return rng.standard_normal((400, 3))


def lacking(part, whole):
    """Largest share of a row of the whole that the part lacks."""
    sums = np.asarray(whole.sum(axis=1)).ravel()
    return float((np.asarray(abs(whole - part).sum(axis=1)).ravel() / sums).max())


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("max_error", [1e-9, 1e-4, 0.1])
def test_gaussian_rows_lack_at_most_their_share(X, max_error, self_loops):
    whole = otgraph.gaussian_graph(X, 0.02, self_loops=self_loops)
    part = otgraph.gaussian_graph(X, 0.02, self_loops=self_loops, max_error=max_error)
    assert lacking(part.weights, whole.weights) <= max_error
    assert part.weights.nnz < 0.8 * whole.weights.nnz
    assert (part.weights != part.weights.T).nnz == 0
    # What is kept is kept as it is.
    kept = part.weights.nonzero()
    np.testing.assert_allclose(part.weights[kept], whole.weights[kept], rtol=1e-10)
    assert part.params["max_error"] == max_error
    assert whole.params["max_error"] is None


def test_every_point_keeps_a_neighbor(rng):
    X = np.vstack((rng.standard_normal((100, 2)), [[30.0, 30.0]]))
    graph = otgraph.gaussian_graph(X, 5.0, normalize=False, max_error=0.5)
    assert graph.degrees.min() >= 1


@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("max_error", [1e-9, 1e-3])
def test_entropic_plan_is_near_that_of_all_pairs(X, rng, power, max_error, self_loops):
    mass = rng.uniform(0.8, 1.25, len(X))
    options = {"power": power, "self_loops": self_loops, "mass": mass, "tol": 1e-9}
    whole = otgraph.entropic_ot_graph(X, 0.02, **options)
    part = otgraph.entropic_ot_graph(X, 0.02, max_error=max_error, **options)
    certificate = part.certificate
    assert 0.0 < certificate.dropped_share <= max_error
    # The marginals that the potentials give to all pairs differ by what was left out.
    C = cdist(X, X) ** power / part.params["scale"]
    if not self_loops:
        np.fill_diagonal(C, np.inf)
    u = part.potentials
    everything = np.exp((u[:, None] + u - C) / 0.02)
    assert lacking(part.weights, sp.csr_matrix(everything)) <= certificate.dropped_share + 1e-12
    np.testing.assert_allclose(np.asarray(part.weights.sum(axis=1)).ravel(), mass, rtol=1e-8)
    # Pinsker: twice the square root of the gap, because both plans are compared with the best.
    total = mass.sum()
    with np.errstate(divide="ignore"):
        cost = np.where(everything > 0, C, 0.0)
    value = float((cost * part.weights.toarray()).sum()) + 0.02 * total
    bound = 2.0 * np.sqrt(2.0 * certificate.duality_gap * value / (0.02 * total))
    assert abs(part.weights - whole.weights).sum() / total <= bound + 1e-6
    assert abs(part.weights - whole.weights).sum() / total <= 20.0 * max_error + 1e-6
    assert part.certificate.verify(X)
    assert (part.weights != part.weights.T).nnz == 0


def test_status_says_whether_the_share_is_within_the_tolerance(X):
    assert otgraph.entropic_ot_graph(X, 0.05, max_error=1e-7).certificate.status == "exact"
    rough = otgraph.entropic_ot_graph(X, 0.05, max_error=1e-2).certificate
    assert rough.status == "exact_on_candidates"
    assert "left out have at most" in str(rough)


@pytest.mark.filterwarnings("ignore")  # the gap may stay unknown, as for all pairs
def test_points_that_share_a_partner(rng):
    """The first pairs are infeasible: lonely points have no partner but one."""
    X = rng.standard_normal((400, 3)) * np.geomspace(0.3, 3.0, 400)[:, None]
    graph = otgraph.entropic_ot_graph(X, 0.02, max_error=1e-5)
    assert graph.certificate.marginal_error <= 1e-6
    assert graph.certificate.dropped_share <= 1e-5
    assert graph.certificate.verify(X)


def test_a_lie_about_the_share_is_found(X):
    graph = otgraph.entropic_ot_graph(X, 0.05, max_error=1e-2)
    object.__setattr__(graph.certificate, "dropped_share", 1e-12)
    assert not graph.certificate.verify(X)


@pytest.mark.parametrize("method", BUILDERS)
def test_costs_without_cells_are_cut_too(X, method):
    build = BUILDERS[method]
    for points, metric in ((X, "cityblock"), (cdist(X, X), "precomputed"),
                           (sp.csr_matrix(X), "euclidean")):  # fmt: skip
        whole, part = (build(points, 0.02, metric=metric, max_error=e) for e in (None, 1e-3))
        assert part.weights.nnz < whole.weights.nnz
        assert lacking(part.weights, whole.weights) <= 1e-3


@pytest.mark.parametrize("method", BUILDERS)
def test_rows_of_new_points(X, rng, method):
    new = rng.standard_normal((40, 3))
    whole, part = (BUILDERS[method](X, 0.02, max_error=e).extend(new) for e in (None, 1e-5))
    assert part.nnz < whole.nnz
    # Rows of a plan are scaled to their mass again; potentials differ as much as rows do.
    assert lacking(part, whole) <= {"gaussian": 1e-5, "entropic": 1e-3}[method]


@pytest.mark.parametrize("method", BUILDERS)
def test_default_keeps_all_pairs_of_few_points(X, method, monkeypatch):
    build = BUILDERS[method]
    assert build(X, 0.02).params["max_error"] is None
    monkeypatch.setattr(cutoff, "MOST_DENSE_POINTS", 100)
    assert build(X, 0.02).params["max_error"] == cutoff.DEFAULT_ERROR
    assert build(X, 1.0).params["max_error"] is None  # nearly all pairs matter


def test_memory_is_asked_first(X, monkeypatch):
    monkeypatch.setattr("otgraph._memory.available_bytes", lambda: 10_000)
    with pytest.raises(MemoryLimitError, match="raise `max_error`"):
        otgraph.gaussian_graph(X, 0.02, max_error=1e-3)


@pytest.mark.parametrize("value", [0.0, 1.0, -1e-3, "much"])
def test_bad_shares(X, value):
    with pytest.raises((ValueError, TypeError), match="max_error"):
        otgraph.gaussian_graph(X, max_error=value)


def test_the_same_bits_for_any_threads(X):
    for build in BUILDERS.values():
        one, two = (build(X, 0.05, max_error=1e-4, n_jobs=jobs).weights for jobs in (1, 2))
        assert (one != two).nnz == 0
