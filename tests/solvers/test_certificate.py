"""A certificate says what was proved, and cannot contradict itself."""

from __future__ import annotations

import dataclasses
import json
import pickle

import numpy as np
import pytest

import otgraph
from otgraph.solvers import Certificate, Status


@pytest.mark.parametrize("name", ["exact", "exact_on_candidates", "not_converged"])
def test_status_is_its_string(name):
    status = Status(name)
    assert status == name
    assert f"{status}" == name
    assert json.loads(json.dumps(status)) == name
    assert {name: 1}[status] == 1
    assert pickle.loads(pickle.dumps(status)) is status
    assert len(status.meaning) > 10


@pytest.fixture
def certificate():
    return Certificate(
        status=Status.EXACT, marginal_error=1e-9, duality_gap=2e-12, pairs_checked=4950,
        violations=0, n_steps=7, eps=0.5,
    )  # fmt: skip


def test_text_says_what_was_proved(certificate):
    text = str(certificate)
    for part in (
        "exact",
        "1.0e-09",
        "2.0e-12",
        "4,950 pairs",
        "0 violations",
        "Newton steps: 7",
        "0.5",
    ):
        assert part in text


def test_frozen(certificate):
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.violations = 3


def test_history_tells_every_step_and_ends_at_the_error(rng):
    certificate = otgraph.quadratic_ot_graph(rng.normal(size=(300, 3)), eps=0.3).certificate
    assert sum(len(errors) - 1 for errors in certificate.history) == certificate.n_steps
    assert certificate.history[-1][-1] == pytest.approx(certificate.marginal_error, abs=1e-12)
    assert np.all(np.concatenate(certificate.history) >= 0.0)


@pytest.mark.parametrize("status", [Status.EXACT, Status.EXACT_ON_CANDIDATES])
@pytest.mark.parametrize(
    "claims", [{"duality_gap": np.inf}, {"duality_gap": np.nan}, {"marginal_error": np.nan},
               {"violations": 3}],
)  # fmt: skip
def test_a_certificate_cannot_contradict_itself(certificate, status, claims):
    with pytest.raises(ValueError, match="needs a finite marginal error"):
        dataclasses.replace(certificate, status=status, **claims)
    assert dataclasses.replace(certificate, status=Status.NOT_CONVERGED, **claims).eps == 0.5


def test_missing_pairs_are_told_with_the_gap_of_the_candidates(certificate):
    approximate = dataclasses.replace(
        certificate, status=Status.EXACT_ON_CANDIDATES,
        missing_pairs=120.0, missing_pairs_bound=200.0, n_edges=1000,
    )  # fmt: skip
    text = str(approximate)
    assert "gap on the candidates" in text
    assert "about 120 pairs missing (12 % of the edges; 95 % bound 200)" in text
    assert "missing" not in str(certificate).replace("no pair is missing", "")
