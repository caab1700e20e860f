"""Wrap the prose of all Markdown files at one width: ``python tools/markdown_width.py [--fix]``.

Paragraphs and list items are filled to ``WIDTH`` columns. Tables, code, headings, formulas, HTML
and paragraphs with hard line breaks stay as they are. Without ``--fix`` the files that would
change are listed, and the exit code is 1 if there are any.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

WIDTH = 100
GENERATED = {"docs/reproduction.md"}  # written by otgraph.experiments, which wraps by itself

ITEM = re.compile(r"( *)([-*+]|\d+[.)]|:) +")
VERBATIM = re.compile(r" *(#|\||<|\[[^]]+\]: )")
FENCE = re.compile(r" *(```+|~~~+|\$\$)")
# Spaces that must not become line breaks: before a word that would start a list, heading, quote
# or table; between a number and its unit; inside short code and formulas.
NOT_FIRST = re.compile(r" (?=(?:[-+*>|:]|#+|=+|\d+[.)])(?: |$))")
UNIT = re.compile(r"(?<=\d) (?=[A-Za-z]{1,2}\b|%)")
INLINE = re.compile(r"`[^`]{1,60}`|\$[^$]{1,60}\$")


def wrapped(text: str) -> str:
    """The same document with its prose filled to the width."""
    result: list[str] = []
    paragraph: list[str] = []
    fence, in_list = "", False

    def close() -> None:
        result.extend(_filled(paragraph))
        paragraph.clear()

    lines = text.split("\n")
    start = lines.index("---", 1) + 1 if lines[0] == "---" else 0  # front matter
    result.extend(lines[:start])
    for line in lines[start:]:
        opening = FENCE.match(line)
        item = ITEM.match(line)
        if fence or opening:
            close()
            result.append(line)
            mark = opening.group(1) if opening else ""
            if fence:
                fence = "" if line.strip() == fence else fence
            elif not (mark == "$$" and line.strip() != "$$"):
                fence = mark
        elif not line.strip() or VERBATIM.match(line):
            close()
            result.append(line)
            in_list = in_list and not line.strip()
        elif item or paragraph:
            if item:
                close()
                in_list = True
            paragraph.append(line)
        elif line.startswith("    ") and not in_list:  # indented code
            result.append(line)
        else:
            in_list = in_list and line.startswith(" ")
            paragraph.append(line)
    close()
    return "\n".join(result)


def _filled(paragraph: list[str]) -> list[str]:
    if not paragraph or any(line.endswith(("  ", "\\")) for line in paragraph):
        return paragraph
    first = paragraph[0]
    item = ITEM.match(first)
    indent = " " * (item.end() if item else len(first) - len(first.lstrip()))
    words = " ".join(line.strip() for line in paragraph)
    words = INLINE.sub(lambda found: found.group().replace(" ", "\0"), words)
    words = UNIT.sub("\0", NOT_FIRST.sub("\0", words))
    lead = first[: len(first) - len(first.lstrip())]
    filled = textwrap.wrap(
        words,
        WIDTH,
        initial_indent=lead,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in filled]


def main() -> int:
    """Check or fix every Markdown file that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    changed = []
    for name in sorted(set(listed) - GENERATED - {""}):
        path = Path(name)
        before = path.read_text(encoding="utf-8")
        after = wrapped(before)
        if after != before:
            changed.append(name)
            if "--fix" in sys.argv[1:]:
                path.write_text(after, encoding="utf-8")
    if changed and "--fix" not in sys.argv[1:]:
        print(f"Not wrapped at {WIDTH} columns: {', '.join(changed)}. Run `make format`.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
