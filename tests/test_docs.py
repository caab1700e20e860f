"""The examples of the pages run, and no page is forgotten."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = ("extending.md", "large.md")
TUTORIALS = ("digits", "clusters", "blood")
# Pages whose code other tests run.
ELSEWHERE = {
    "tests/cli/test_docs.py": ("cli.md", "index.md", "start.md"),
    "tests/distributed/test_docs.py": ("distributed.md",),
    "tests/graphs/test_elsewhere.py": ("elsewhere.md",),
    "tests/methods/test_docs.py": ("methods.md",),
    "tests/plots/test_docs.py": (
        "plots.md",
        "good_graph.md",
        "choosing.md",
        "choosing_options.md",
        "choosing_graph.md",
        "geometry.md",
        "multiscale.md",
        "masses.md",
        "outliers.md",
        "clouds.md",
    ),
    "tests/singlecell/test_docs.py": (
        "singlecell.md",
        "tutorials/annotation.md",
        "tutorials/denoising.md",
    ),
    "tests/test_reference.py": ("reference/index.md",),
}
CODE = re.compile(r"```(?:python|\{code-cell\} ipython3)\n(.*?)```", re.DOTALL)


def test_every_page_with_code_is_run_by_a_test():
    written = {
        path.relative_to(DOCS).as_posix()
        for path in DOCS.rglob("*.md")
        if CODE.search(path.read_text(encoding="utf-8"))
    }
    run = {*PAGES, *(f"tutorials/{name}.md" for name in TUTORIALS)}
    run |= {page for pages in ELSEWHERE.values() for page in pages}
    assert written == run
    for test, pages in ELSEWHERE.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert "make_plots" in text or all(Path(page).stem in text for page in pages), test


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page):
    """All examples of a page in order; later ones use names of earlier ones."""
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for example in CODE.findall((DOCS / page).read_text(encoding="utf-8")):
            exec(example, names)
    if page == "extending.md":
        assert names["graph"].params["method"] == "mutual"  # the last example ran


@pytest.mark.filterwarnings("ignore")  # whatever scanpy says; the pages show it
@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial_runs(name, tmp_path, monkeypatch):
    if name == "blood":
        pytest.importorskip("scanpy")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    cells = CODE.findall((DOCS / "tutorials" / f"{name}.md").read_text(encoding="utf-8"))
    assert len(cells) > 5
    for cell in cells:
        exec(cell, names)
    plt.close("all")


def tree():
    """Pages in the order of the site."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\{toctree\}\n:caption: (.*?)\n:hidden:\n\n(.*?)```", text, re.DOTALL)
    return {caption: pages.split() for caption, pages in blocks}


def test_order_is_what_a_reader_needs():
    assert list(tree()) == [
        "Start", "Choosing", "Guides", "How it works", "Evidence", "Reference",
    ]  # fmt: skip
    assert tree()["Start"][0] == "start"


def test_every_page_is_in_the_tree():
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    listed = [page for part in tree().values() for page in part]
    assert sorted(listed) == sorted(pages - {"index"})
