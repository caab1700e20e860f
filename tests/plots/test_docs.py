"""The code of the pages runs and makes their pictures."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from otgraph import plots
from otgraph.singlecell import pl

DOCS = Path(__file__).parents[2] / "docs"


def make_plots():
    spec = importlib.util.spec_from_file_location("make_plots", DOCS / "make_plots.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", make_plots().PAGES)
def test_every_picture_is_made_by_the_code_above_it(page, tmp_path, monkeypatch):
    module = make_plots()
    photographed = []
    monkeypatch.setattr(module, "photograph", lambda page, image: photographed.append(page))
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for code, image in module.steps(page):
        if image is not None:
            assert (DOCS / image).stat().st_size < 250_000  # small enough for a repository
        module.run(code, names, tmp_path / Path(image).name if image else None)
    assert not plt.get_fignums()
    shown = {Path(image).name for _, image in module.steps(page) if image}
    assert {file.name for file in tmp_path.glob("*.png")} == shown - {"explorer.png"}
    assert photographed == ([Path("arms.html")] if page == "plots.md" else [])
    if page == "good_graph.md":  # as its picture shows
        fragmented, default, joined = (
            names[name].n_connected for name in ("plain", "default", "joined")
        )
        assert fragmented > default > joined == 1


def test_every_picture_has_a_page():
    module = make_plots()
    shown = {image for page in module.PAGES for _, image in module.steps(page) if image}
    there = {f"images/{file.name}" for file in DOCS.glob("images/*plo*.png")}
    assert shown == there


@pytest.mark.parametrize("page", ["good_graph.md"])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https:)(.+?)\)", (DOCS / page).read_text()):
        assert (DOCS / target).exists()


def test_gallery_shows_every_plot_function():
    module = make_plots()
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert page == module.gallery()
    drawing = set(plots.__all__) - {"layout"}  # which returns positions
    for name in (*drawing, *pl.__all__):
        assert f"`{name}`" in page
    for anchor in re.findall(r"plots\.md#([\w-]+)", page):
        assert anchor in anchors_of(DOCS / "plots.md")


def anchors_of(page):
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
