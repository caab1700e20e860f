"""The check of the built pages sees what needs the network, and links that lead nowhere."""

from __future__ import annotations

import pages
import pytest

GOOD = """<html><head><link rel="stylesheet" href="style.css"><link rel="canonical"
href="https://example.org/"><script src="code.js"></script></head><body>
<h1 id="top">A</h1><a href="#top">up</a> <a href="b.html#there">b</a> <a href="https://x.org">x</a>
<img src="data:image/png;base64,AA==">{}</body></html>"""


@pytest.fixture
def site(tmp_path):
    def build(more=""):
        (tmp_path / "index.html").write_text(GOOD.format(more))
        (tmp_path / "b.html").write_text('<p id="there">b</p>')
        (tmp_path / "style.css").write_text("p { background: url('local.png') }")
        (tmp_path / "code.js").write_text("")
        return tmp_path

    return build


def test_pages_without_faults(site):
    assert pages.faults(site()) == []


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ('<script src="https://cdn.org/m.js"></script>', "https://cdn.org/m.js: from the network"),
        ('<img src="//cdn.org/a.png">', "//cdn.org/a.png: from the network"),
        ('<link rel="stylesheet" href="http://cdn.org/a.css">', "http://cdn.org/a.css: from the"),
        ('<img src="none.png">', "none.png: no such file"),
        ('<a href="none.html">n</a>', "none.html: no such page"),
        ('<a href="b.html#nowhere">n</a>', "b.html#nowhere: no such place"),
        ('<a href="#nowhere">n</a>', "#nowhere: no such place"),
    ],
)
def test_fault_is_named_with_its_page(site, more, fault):
    (found,) = pages.faults(site(more))
    assert found.startswith(f"index.html: {fault}")


def test_style_sheet_that_loads_from_the_network(site):
    folder = site()
    (folder / "style.css").write_text('@import "https://fonts.org/a.css";')
    (found,) = pages.faults(folder)
    assert "from the network" in found


def test_no_pages_at_all(tmp_path):
    assert pages.faults(tmp_path) == [f"{tmp_path}: no pages"]
