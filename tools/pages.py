"""Check the built pages: ``python tools/pages.py out/docs``.

A page needs nothing from the network: scripts, style sheets, pictures and fonts come with it. A
link to another page leads to one, and a part after ``#`` to something with that name.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, by tag: the attribute that says from where.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# Links of the head that are not loaded: names of the page and of its neighbors.
NAMES = {"canonical", "index", "search", "next", "prev", "author", "alternate"}
# Listings of the source. Sphinx assumes one public module for all names of a file, so links from
# there lead to the right page, but not always to a place on it.
SOURCES = "_modules"
STYLE_ADDRESS = re.compile(r"(?:@import\s+|url\(\s*)[\"']?(?:https?:)?//[^\"')\s]+")


class Page(HTMLParser):
    """What a page loads, where it leads, and the names in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one tag."""
        values = {name: value or "" for name, value in attrs}
        self.names.update(filter(None, (values.get("id"), values.get("name"))))
        if tag == "a":
            self.links.append(values.get("href", ""))
        elif tag in LOADED and not NAMES & set(values.get("rel", "").split()):
            self.loads.append(values.get(LOADED[tag], ""))


def faults(site: Path) -> list[str]:
    """What is wrong with the pages below a folder, each with the page."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        return [f"{site}: no pages"]
    found = []
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        found += [
            f"{where}: {each}: {why}" for each in page.loads if (why := _load_fault(path, each))
        ]
        found += [
            f"{where}: {each}: {why}"
            for each in page.links
            if (why := _link_fault(path, each, pages))
        ]
    for path in sorted(site.rglob("*.css")):
        remote = STYLE_ADDRESS.findall(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(site)}: {each}: from the network" for each in remote]
    return found


def _load_fault(page: Path, address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme == "data" or not address:
        return ""
    if parts.scheme or parts.netloc:
        return "from the network"
    return "" if (page.parent / unquote(parts.path)).exists() else "no such file"


def _link_fault(page: Path, address: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return ""
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.exists():
        return "no such page"
    known = pages.get(target)
    if SOURCES in page.parts:
        return ""
    if parts.fragment and known and unquote(parts.fragment) not in known.names:
        return "no such place on the page"
    return ""


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    (folder,) = sys.argv[1:]
    found = faults(Path(folder))
    print("\n".join(found) or "Pages: all links lead somewhere, and nothing needs the network.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
