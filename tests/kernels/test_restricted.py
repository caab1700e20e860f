"""The scalar equation of a row. What sums over rows is tested with `RestrictedProblem`."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from otgraph._kernels import restricted as kernels

numbers = st.floats(-50.0, 50.0, allow_subnormal=False)


def assert_solves(costs, target):
    t = kernels.solve_row(costs, target)
    assert t == pytest.approx(reference.solve_row(costs, target), rel=1e-12, abs=1e-12)
    rounding = len(costs) * (np.abs(costs).max() + target) * 1e-15
    assert np.maximum(t - costs, 0.0).sum() == pytest.approx(target, rel=1e-12, abs=rounding)


def test_ties_within_rounding_end():
    """Costs that equal the root but for the last digit must not make it go back and forth.

    In another process, because a compiled loop cannot be interrupted.
    """
    code = """
import itertools
import numpy as np
from otgraph._kernels.restricted import solve_row
for unit in (1.0, 0.1, 0.3, 1 / 3):
    for costs in itertools.combinations_with_replacement(range(4), 5):
        for target in range(1, 6):
            row = unit * (np.array(costs) / 3.0)
            t = solve_row(row, unit * (target / 3.0))
            assert abs(np.maximum(t - row, 0.0).sum() - unit * (target / 3.0)) < 1e-14
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@given(st.lists(numbers, min_size=1, max_size=12), st.floats(1e-6, 1e3))
def test_solve_row(costs, target):
    """sum_j (t - c_j)_+ reaches the target: one equation, one root."""
    assert_solves(np.sort(costs), target)


def test_solve_row_ignores_forbidden_entries():
    assert kernels.solve_row(np.array([1.0, 2.0, np.inf]), 2.0) == 2.5
    assert kernels.solve_row(np.array([np.inf]), 2.0) == np.inf
