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


def test_every_picture_is_made_by_the_code_above_it(tmp_path, monkeypatch):
    module = make_plots()
    photographed = []
    monkeypatch.setattr(module, "photograph", lambda page, image: photographed.append(page))
    monkeypatch.chdir(tmp_path)
    for page in module.PAGES:
        names: dict = {}
        for code, image in module.steps(page):
            assert (DOCS / image).stat().st_size < 250_000  # small enough for a repository
            module.run(code, names, tmp_path / Path(image).name)
    assert not plt.get_fignums()
    made = {file.name for file in tmp_path.glob("*.png")}
    assert made | {"explorer.png"} == {file.name for file in DOCS.glob("images/*plo*.png")}
    assert photographed == [Path("arms.html")]
    assert (tmp_path / "arms.html").exists()


def test_all_code_about_good_graphs_runs():
    """Also the pieces that make no picture."""
    page = (DOCS / "good_graph.md").read_text()
    pieces = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names: dict = {}
    for code in pieces:
        exec(code, names)
    plt.close("all")
    fragmented, default, joined = (
        names[name].n_connected for name in ("plain", "default", "joined")
    )
    assert fragmented > default > joined == 1  # as the picture shows


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
