"""The code of docs/plots.md makes its pictures."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[2] / "docs"


def test_every_picture_is_made_by_the_code_above_it(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("make_plots", DOCS / "make_plots.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
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
