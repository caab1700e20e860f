"""The code of docs/plots.md makes its pictures."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import matplotlib.pyplot as plt

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
    names: dict = {}
    for code, image in module.steps():
        assert (DOCS / image).stat().st_size < 250_000  # small enough for a repository
        module.run(code, names, tmp_path / Path(image).name)
    assert not plt.get_fignums()
    made = {file.name for file in tmp_path.glob("*.png")}
    assert made | {"explorer.png"} == {file.name for file in DOCS.glob("images/*plo*.png")}
    assert photographed == [Path("arms.html")]
    assert (tmp_path / "arms.html").exists()


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
