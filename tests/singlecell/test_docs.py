"""The page tells what was measured, and the tutorials run."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

import otgraph

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "singlecell.md").read_text()
FEWER_CELLS = 400


@pytest.fixture(scope="module")
def tables():
    path = ROOT / "benchmarks" / "singlecell_tables.py"
    if not path.exists():
        pytest.skip("benchmarks do not come with the source distribution")
    spec = importlib.util.spec_from_file_location("singlecell_tables", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_are_the_measured_ones(tables):
    results = json.loads((DOCS / "results" / "singlecell.json").read_text())
    assert set(results) == {"pbmc", "copies", "cells", "connected"}
    assert tables.with_tables(PAGE, results) == PAGE


def test_no_table_is_missing(tables):
    named = re.findall(r"<!-- ((?:pbmc|copies|cells|connected) [a-z ]+) -->", PAGE)
    assert set(named) == set(tables.TABLES)
    assert PAGE.count("<!-- end -->") == len(named)


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https:)(.+?)\)", PAGE))
def test_links_lead_somewhere(target):
    assert (DOCS / target.split("#")[0]).exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # whatever scanpy says; the pages show it
@pytest.mark.parametrize("name", ["annotation", "denoising"])
def test_tutorial_runs(name, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    simulate = otgraph.datasets.simulated_cells

    def fewer(n, **keywords):
        return simulate(FEWER_CELLS, **keywords)

    monkeypatch.setattr(otgraph.datasets, "simulated_cells", fewer)
    text = (DOCS / "tutorials" / f"{name}.md").read_text()
    names: dict = {}
    for cell in re.findall(r"```\{code-cell\} ipython3\n(.*?)```", text, flags=re.DOTALL):
        exec(cell, names)
    plt.close("all")
    assert names["adata"].n_obs == FEWER_CELLS


@pytest.mark.filterwarnings("ignore")  # of scanpy's old file
def test_example_runs():
    import scanpy

    (example,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names = {"adata": scanpy.datasets.pbmc68k_reduced()}
    exec(example, names)
    assert names["adata"].uns["neighbors"]["params"]["status"] == "exact"
