"""The examples of docs/elsewhere.md run, as far as their packages are installed."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "elsewhere.md").read_text()
START, *EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
# Packages that `[test]` does not install; the page says in which versions they ran.
ELSEWHERE = {"cellrank", "magic", "phate", "scib_metrics", "scvelo", "squidpy", "torch_geometric"}


def packages(example):
    return set(re.findall(r"^(?:import|from) (\w+)", example, flags=re.MULTILINE))


def marks(example):
    """umap compiles for a while in every process."""
    return pytest.mark.slow if re.search(r"tl\.umap|import umap|umap_", example) else ()


@pytest.fixture(scope="module")
def names():
    pytest.importorskip("scanpy")
    names: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scanpy's old file
        exec(START, names)
    return names


@pytest.mark.filterwarnings("ignore")  # whatever other packages say
@pytest.mark.parametrize("example", [pytest.param(each, marks=marks(each)) for each in EXAMPLES])
def test_example_runs(example, names):
    for package in packages(example) & ELSEWHERE:
        pytest.importorskip(package)
    exec(example, dict(names))


def test_what_the_tests_install_is_not_skipped():
    used = set().union(*map(packages, EXAMPLES))
    assert used > ELSEWHERE
    assert used - ELSEWHERE == {"sklearn", "otgraph", "umap", "networkx", "graphtools"}
