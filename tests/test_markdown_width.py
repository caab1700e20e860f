"""The tool that wraps Markdown changes prose and nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "markdown_width.py"
LONG = " ".join(["word"] * 40)


@pytest.fixture(scope="module")
def wrapped():
    spec = importlib.util.spec_from_file_location("markdown_width", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.wrapped


def test_prose_is_wrapped_and_list_items_stay_indented(wrapped):
    text = wrapped(f"{LONG}\n\n* {LONG}\n")
    lines = text.split("\n")
    assert max(map(len, lines)) <= 100
    assert text.count("* ") == 1
    assert text.split() == f"{LONG} * {LONG}".split()
    assert wrapped(text) == text


@pytest.mark.parametrize(
    "block",
    [
        f"| {LONG} |",
        f"# {LONG}",
        f"```text\n{LONG}\n```",
        f"$$\n{LONG}\n$$",
        f"paragraph\n\n    {LONG}",
        f"---\nkey: {LONG}\n---",
        "a hard break  \nhere",
    ],
)
def test_everything_else_stays(wrapped, block):
    assert wrapped(block) == block


def test_no_line_begins_with_a_list_mark_by_accident(wrapped):
    text = wrapped(f"{'x' * 97} - {LONG}\n")
    assert not any(line.startswith("-") for line in text.split("\n"))
