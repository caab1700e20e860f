"""Check the links between Markdown files: ``python tools/links.py``.

A link to a file must lead to one, and a part after ``#`` must be a heading there, as GitHub and
Sphinx name it. Addresses on the web are not visited.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

FENCED = re.compile(r"^( *)(```+|~~~+).*?^ *\2 *$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#+ +(.*?)[ #]*$", re.MULTILINE)
ANCHOR = re.compile(r"(?:^\(([\w-]+)\)=$|<a (?:id|name)=\"([\w-]+)\")", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)  # https:, mailto:


def broken_links(path: Path) -> list[str]:
    """Links of a Markdown file that lead nowhere, each with its line and the reason."""
    text = FENCED.sub(_blank, path.read_text(encoding="utf-8"))
    text = CODE.sub(_blank, text)
    found = []
    for match in [*LINK.finditer(text), *DEFINITION.finditer(text)]:
        target = match.group(1)
        reason = "" if ELSEWHERE.match(target) else _reason(path, target)
        if reason:
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path}:{line}: {target}: {reason}")
    return found


def _reason(path: Path, target: str) -> str:
    """Why a relative link is broken; empty if it is not."""
    name, _, anchor = target.partition("#")
    file = path.parent / name if name else path
    if not file.exists():
        return "no such file"
    if anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
        return "no such heading"
    return ""


def anchors(text: str) -> set[str]:
    """Names under which the headings of a Markdown text can be reached."""
    text = FENCED.sub(_blank, text)
    found = {first or second for first, second in ANCHOR.findall(text)}
    seen: dict[str, int] = {}
    for heading in HEADING.findall(text):
        slug = _slug(heading)
        repeated = seen.get(slug, 0)
        seen[slug] = repeated + 1
        found.add(f"{slug}-{repeated}" if repeated else slug)
    return found


def _slug(heading: str) -> str:
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)  # a link keeps its text
    return re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-")


def _blank(match: re.Match[str]) -> str:
    """The same number of lines, so that reported line numbers are right."""
    return "\n" * match.group().count("\n")


def markdown_files() -> list[Path]:
    """Every Markdown file that git knows; in an unpacked archive without git, all there are."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    except OSError:  # no git at all
        listed = ""
    found = {ROOT / name for name in listed.splitlines()}
    found = found or {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")}
    return sorted(path for path in found if path.exists())


def main() -> int:
    """Print the broken links of all files; 1 if there are any."""
    broken = [line for path in markdown_files() for line in broken_links(path)]
    print("\n".join(broken) or "Links between Markdown files: all lead somewhere.")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
