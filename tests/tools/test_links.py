"""Broken links between Markdown files are found, and only those."""

from __future__ import annotations

import links
import pytest


@pytest.fixture
def page(tmp_path):
    (tmp_path / "other.md").write_text(
        "# A `code` heading: *one*\n\n(target)=\n## Twice\n\n## Twice\n"
    )
    (tmp_path / "picture.png").touch()
    return tmp_path / "page.md"


@pytest.mark.parametrize(
    "text",
    [
        "[x](other.md)",
        "[x](other.md#a-code-heading-one)",
        "[x](other.md#twice-1)",
        "[x](other.md#target)",
        "![two\nlines](picture.png)",
        '[x](other.md "title")',
        "[x](#here)\n\n## Here",
        "[x](https://example.org/nothing) [y](mailto:a@b.c)",
        "`[x](nothing.md)`",
        "```md\n[x](nothing.md)\n```",
        "[x]: other.md",
    ],
)
def test_link_that_leads_somewhere(page, text):
    page.write_text(text)
    assert links.broken_links(page) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\n\n[x](nothing.md)", ":3: nothing.md: no such file"),
        ("```\ncode\n```\n![x](nothing.png)", ":4: nothing.png: no such file"),
        ("[x](other.md#thrice)", ":1: other.md#thrice: no such heading"),
        ("[x](#here)\n```\n# Here\n```", ":1: #here: no such heading"),
        ("[x]: nothing.md", ":1: nothing.md: no such file"),
    ],
)
def test_link_that_leads_nowhere(page, text, reason):
    page.write_text(text)
    assert links.broken_links(page) == [f"{page}{reason}"]


def test_links_of_this_project():
    files = links.markdown_files()
    assert links.ROOT / "README.md" in files
    assert [line for path in files for line in links.broken_links(path)] == []


def test_archive_without_git(monkeypatch):
    monkeypatch.setenv("PATH", "")
    files = links.markdown_files()
    assert links.ROOT / "README.md" in files
    assert links.ROOT / "docs" / "cli.md" in files
    assert not any(".venv" in path.parts for path in files)
