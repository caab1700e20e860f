"""The tables of docs/distributed.md are those of the measurements, and its example runs."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    return importlib.import_module("benchmarks.cluster_model")


@pytest.fixture
def measured(model):
    return json.loads(model.MEASURED.read_text())


def test_tables(model, measured):
    page = model.PAGE.read_text()
    assert model.filled(page, measured) == page


def test_more_threads_help_large_problems_and_not_small_ones(model, measured):
    fitted = model.model_of(measured)

    def total(n, threads):
        return sum(fitted.seconds(n, threads).values())

    assert total(10**8, 128) < 0.2 * total(10**8, 1)
    assert total(10**5, 128) > 0.3 * total(10**5, 1)
    assert fitted.seconds(10**6, 2)["messages"] > fitted.seconds(10**5, 2)["messages"]


def test_example_runs(client, tmp_path):
    page = (ROOT / "docs" / "distributed.md").read_text()
    example = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    np.save(tmp_path / "points.npy", np.random.default_rng(0).normal(size=(300, 3)))
    example = example.replace("tcp://scheduler:8786", client.scheduler.address)
    names = {"__name__": "__main__"}
    exec(example.replace("/shared", str(tmp_path)), names)
    names["client"].close()
    assert names["graph"].certificate.status == "exact"
    assert (tmp_path / "graph.zarr").exists()
