"""The README runs, names every status, and links to files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_example_runs_and_says_what_is_true():
    import matplotlib.pyplot as plt

    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict = {}
    exec(example, names)
    plt.close("all")
    graph = names["graph"]
    W = graph.weights
    assert (W != W.T).nnz == 0
    np.testing.assert_allclose(W.sum(axis=1), 1.0, atol=1e-6)
    assert len(np.unique(graph.degrees)) > 1
    assert graph.certificate.status == "exact"


def test_table_names_every_status():
    from otgraph.solvers import Status

    assert set(re.findall(r'^\| `"(\w+)"`', README, flags=re.MULTILINE)) == {
        s.value for s in Status
    }


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https:)(.+?)\)", README))
def test_link_leads_somewhere(target):
    assert (ROOT / target.partition("#")[0]).exists()


@pytest.mark.parametrize("target", re.findall(r"`make ([\w-]+)`", README))
def test_command_is_a_target(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
