"""Checks name the argument, say what it must be and what came."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otgraph import _validation as checks
from otgraph.exceptions import InfeasibleError


def test_points_come_back_as_float64_in_c_order(rng):
    X = rng.integers(0, 9, size=(6, 3))
    for points in (X, np.asfortranarray(X), X.tolist(), X.astype(np.float32)):
        checked = checks.check_points(points)
        assert checked.dtype == np.float64
        assert checked.flags.c_contiguous
        np.testing.assert_array_equal(checked, X)


def test_sparse_points_come_back_as_canonical_csr(rng):
    X = sp.random_array((8, 5), density=0.5, random_state=rng, format="csc")
    checked = checks.check_points(X)
    assert checked.format == "csr"
    assert checked.has_canonical_format
    np.testing.assert_array_equal(checked.toarray(), X.toarray())


def test_finite_but_with_an_overflowing_sum():
    checks.check_finite(np.full((4, 2), 1.7e308), "X")


def test_first_bad_row_of_sparse_points():
    X = sp.csr_matrix(np.diag([1.0, 2.0, np.nan, np.inf]))
    with pytest.raises(ValueError, match=r"2 value\(s\) that are not finite, the first in row 2"):
        checks.check_points(X)


@pytest.mark.parametrize("value", [1, 2.5, np.float32(3), np.int8(4)])
def test_positive_numbers(value):
    assert checks.check_positive(value, "eps") == float(value)


@pytest.mark.parametrize("value", ["1", None, True, 1j, [1.0]])
def test_not_a_number(value):
    with pytest.raises(TypeError, match="`eps` must be a positive number, got"):
        checks.check_positive(value, "eps")


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, -np.inf])
def test_not_positive(value):
    with pytest.raises(ValueError, match=r"`eps` must be a positive, finite number, got"):
        checks.check_positive(value, "eps")


def test_counts():
    assert checks.check_count(np.int32(3), "k") == 3
    assert checks.check_count(0, "k", minimum=0) == 0
    for wrong in (2.0, "3", True, None):
        with pytest.raises(TypeError, match="`k` must be an integer, got"):
            checks.check_count(wrong, "k")
    with pytest.raises(ValueError, match="`k` must be an integer >= 1, got 0"):
        checks.check_count(0, "k")


def test_choices():
    assert checks.check_choice("a", "way", ("a", "b")) == "a"
    for wrong in ("c", None, 1, ["a"]):
        with pytest.raises(ValueError, match="`way` must be one of 'a', 'b', got"):
            checks.check_choice(wrong, "way", ("a", "b"))


def test_masses():
    np.testing.assert_array_equal(checks.check_mass(None, 3, self_loops=False), 1.0)
    np.testing.assert_array_equal(checks.check_mass([1, 2, 3], 3, self_loops=False), [1, 2, 3])
    with pytest.raises(InfeasibleError, match=r"point 2 \(4\) exceeds"):
        checks.check_mass([1, 2, 4], 3, self_loops=False)
    checks.check_mass([1, 2, 4], 3, self_loops=True)
    with pytest.raises(ValueError, match=r"positive, got .*0.0.* at point 1"):
        checks.check_mass([1.0, 0.0, 1.0], 3, self_loops=True)
    with pytest.raises(ValueError, match=r"`mass` must be finite, got nan at point 2"):
        checks.check_mass([1.0, 1.0, np.nan], 3, self_loops=True)


def test_asymmetry_beyond_one_block(rng):
    """The check goes by blocks of rows: an error in the last one is found."""
    C = rng.uniform(size=(1500, 1500))
    C = C + C.T
    checks.check_cost_matrix(C)
    C[1499, 3] += 1e-3
    with pytest.raises(ValueError, match="must be symmetric"):
        checks.check_cost_matrix(C)


def test_sparse_zeros_are_kept():
    """A candidate pair that costs nothing is still a candidate."""
    C = sp.csr_matrix(([0.0, 0.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert checks.check_cost_matrix(C).nnz == 2


@pytest.mark.parametrize(
    ("check", "kind", "argument"),
    [
        (lambda: checks.check_positive("1", "eps"), TypeError, "eps"),
        (lambda: checks.check_positive(-1, "eps"), ValueError, "eps"),
        (lambda: checks.check_count(0, "n_neighbors"), ValueError, "n_neighbors"),
        (lambda: checks.check_choice("a", "search", ("b", "c")), ValueError, "search"),
        (lambda: checks.check_vector([1.0], "u0", 2), ValueError, "u0"),
        (lambda: checks.check_mass([9, 1, 1], 3, self_loops=False), InfeasibleError, "mass"),
        (lambda: checks.check_points([[np.nan], [1.0]]), ValueError, "X"),
        (lambda: checks.check_points([1.0, 2.0], name="X_new"), ValueError, "X_new"),
        (lambda: checks.check_points([[1.0, 2.0]]), ValueError, "X"),
        (lambda: checks.check_points([["a"], ["b"]]), ValueError, "X"),
        (lambda: checks.check_cost_matrix(np.ones((2, 3))), ValueError, "X"),
    ],
)
def test_errors_carry_the_argument(check, kind, argument):
    with pytest.raises(kind, match=f"^`{argument}` ") as caught:
        check()
    assert caught.value.argument == argument
