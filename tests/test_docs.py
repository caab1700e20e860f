"""The examples of pages that belong to no single package run."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

PAGES = ("how_it_works.md", "extending.md")
DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page):
    """All examples of a page in order; later ones use names of earlier ones."""
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for example in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL):
            exec(example, names)
    if page == "extending.md":
        assert names["graph"].params["method"] == "mutual"  # the last example ran


@pytest.mark.parametrize("page", PAGES)
def test_pictures_and_pages_exist(page):
    links = re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text())
    assert links or page == "extending.md"
    for link in links:
        assert link.startswith("http") or (DOCS / link).exists(), link
