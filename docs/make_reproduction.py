"""The page ``docs/reproduction.md``, made from the summaries of a run.

``python docs/make_reproduction.py out/reproduce`` writes the page and its pictures. With ``--keep``
sections without new results stay. No number in it is typed by hand.
"""

from __future__ import annotations

import argparse
import io
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otgraph._optional import require
from otgraph.exceptions import ExperimentError
from otgraph.experiments._framework.report import QUICK_RUN, tally, write_files
from otgraph.experiments._framework.runner import NAMES
from otgraph.experiments._framework.statistics import SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PAGE = "reproduction.md"
WIDTH = 100  # of its lines, as in all Markdown files here
PICTURES = Path("images", "reproduction")
# Limit per picture, because the page has two dozen of them; they have few colors.
MAX_PICTURE_BYTES = 300_000
COLORS = 256
SHRINK = 0.85  # factor by which a picture that is too large is shrunk
LEFT_OUT = ("per seed", "std")  # columns of the table: too long, or printed with the mean

OVERVIEW = """\
| experiment | what | in the paper | seeds | verdicts |
| --- | --- | --- | --- | --- |"""
INTRODUCTION = """\
# Reproduction of the paper

What Matsumoto, Zhang and Schiebinger (2022, *Beyond kNN: Adaptive, Sparse Neighborhood Graphs via
Optimal Transport*) claim, beside what this package measures. `otgraph reproduce all --variant both`
computes everything but the second set of cells (`otgraph reproduce cells --data FILE`), and
`python docs/make_reproduction.py` makes this page from the summaries: no number here is typed by
hand.

*Text* is the experiment as the paper describes it, *code* as the authors' published scripts do it
where they differ. Numbers are mean ± standard deviation over the seeds. Best parameters are chosen
with the truth known, for every method, as in the paper: they show what a graph can give. Every
verdict comes with its reason; a difference within the spread over the samples is a tie.
"""


def write_page(*out: str | Path, docs: str | Path = "docs", keep: bool = False) -> Path:
    """Write the page and its pictures from all summaries below folders of results.

    Parameters
    ----------
    *out
        Folders that were passed to ``reproduce``. If an experiment is in several of them, the
        last is used. An experiment that takes data has a section for each data set.
    docs
        Folder of the page.
    keep
        Leave the sections of experiments that are not in these folders as they are on the page.

    Returns
    -------
    Path of the page.
    """
    docs = Path(docs)
    found = _found(out)
    summaries = {name: summary for name, (_, summary) in found.items()}
    if not summaries:
        listed = ", ".join(repr(str(folder)) for folder in out)
        msg = f"There are no summaries in {listed}: run `otgraph reproduce all` first."
        raise ExperimentError(msg)
    kept = _kept(docs / PAGE) if keep else {}
    sections: dict[str, tuple[str, str]] = {}
    pictures: dict[str, bytes] = {}
    for name, summary in summaries.items():
        shown = _distinct_pictures(found[name][0], summary)
        pictures |= {f"{name}-{figure['name']}.png": content for figure, content in shown}
        text = "\n".join(_section(name, summary, [figure for figure, _ in shown]))
        sections[name] = _row(name, summary), text
    names = sorted({**kept, **sections}, key=lambda name: NAMES.index(name.split("-")[0]))
    rows, texts = zip(*({**kept, **sections}[name] for name in names), strict=True)
    parts = [INTRODUCTION, "\n".join((OVERVIEW, *rows)) + "\n", *texts]
    (docs / PICTURES).mkdir(parents=True, exist_ok=True)
    write_files(docs / PICTURES, {file: _small(png) for file, png in pictures.items()})
    text = "\n".join(parts) + "\n"
    return write_files(docs, {PAGE: text.encode()})[0]


def _found(out: Sequence[str | Path]) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Name of each section to its folder and summary; a second data set has its name in it."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for name in NAMES:
        of_data: dict[str, tuple[Path, dict[str, Any]]] = {}
        for folder in (Path(each, name) for each in out):
            if (folder / "summary.json").exists():
                summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
                data = Path(summary.get("parameters", {}).get("data", "")).stem
                of_data[data] = folder, summary
        for number, (data, entry) in enumerate(of_data.items()):
            found[f"{name}-{data}" if number else name] = entry
    return found


def _distinct_pictures(
    folder: Path, summary: Mapping[str, Any]
) -> list[tuple[dict[str, str], bytes]]:
    """The pictures of a summary; one that looks the same in both variants is shown once."""
    seen: dict[bytes, dict[str, str]] = {}
    for figure in summary["figures"]:
        seen.setdefault((folder / f"{figure['name']}.png").read_bytes(), figure)
    return [(figure, content) for content, figure in seen.items()]


def _row(name: str, summary: Mapping[str, Any]) -> str:
    """The line of an experiment in the first table."""
    source, verdicts = summary["source"] or "beyond it", [c["verdict"] for c in summary["claims"]]
    cells = (f"[{name}](#{name})", summary["title"], source, summary["seeds"], tally(verdicts))
    return f"| {' | '.join(map(str, cells))} |"


def _kept(page: Path) -> dict[str, tuple[str, str]]:
    """Lines of the first table and sections of an existing page."""
    head, *sections = page.read_text(encoding="utf-8").split("\n## ")
    rows = {line.split("]")[0].lstrip("| ["): line for line in head.split("\n") if "](#" in line}
    texts = {text.split("\n", 1)[0]: "\n## " + text.removesuffix("\n") for text in sections}
    return {name: (rows[name], text) for name, text in texts.items()}


def _section(
    name: str, summary: Mapping[str, Any], figures: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    where = f" ({summary['source']})" if summary["source"] else ""
    title = _wrapped(f"{summary['title']}{where}.")
    yield f"\n## {name}\n\n{title}\n"
    if summary["quick"]:
        yield f"*{QUICK_RUN.capitalize()}.*\n"
    for claim in summary["claims"]:
        variant = f" ({claim['variant']})" if claim["variant"] else ""
        yield _wrapped(f"* **{claim['verdict'].capitalize()}**{variant}: *{claim['text']}*", "  ")
        yield _wrapped(f"  {claim['sentence']}", "  ")
        if claim["reason"]:
            yield _wrapped(f"  Why: {claim['reason']}", "  ")
    yield "\n" + markdown_table(summary["table"])
    for figure in figures:
        path = (PICTURES / f"{name}-{figure['name']}.png").as_posix()
        caption = _wrapped(f"*{figure['caption']}*")
        yield f"\n![{name}: {figure['name']}]({path})\n\n{caption}"


def _wrapped(text: str, indent: str = "") -> str:
    """Prose as lines of at most ``WIDTH`` columns; all but the first are indented."""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same keys; a mean is printed with its standard deviation."""
    if not rows:
        return ""
    names = [name for name in rows[0] if name not in LEFT_OUT]
    lines = [names, ["---"] * len(names), *([_cell(row, name) for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(row: Mapping[str, Any], name: str) -> str:
    if name == "mean" and row.get("std") is not None:
        return f"{row['mean']:.3f} ± {row['std']:.3f}"
    return _text(row.get(name))


def _text(value: object) -> str:
    """A value as text: numbers to three digits, lists without repetitions, named parameters."""
    if isinstance(value, dict):
        return ", ".join(f"{SYMBOLS.get(key, key)} = {_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return " / ".join(_text(item) for item in sorted(set(value)))
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _small(png: bytes) -> bytes:
    """The picture with fewer colors, shrunk until the file is small enough."""
    image = require("PIL.Image", "plots").open(io.BytesIO(png)).convert("RGB")
    scale = 1.0
    while True:
        size = [round(scale * side) for side in image.size]
        file = io.BytesIO()
        image.resize(size).quantize(COLORS).save(file, "png", optimize=True)
        if file.tell() <= MAX_PICTURE_BYTES:
            return file.getvalue()
        scale *= SHRINK


def main() -> None:
    """Command line of the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="*", default=["out/reproduce"], help="folders of the results")
    parser.add_argument("--docs", default="docs", help="folder of the page")
    parser.add_argument("--keep", action="store_true", help="sections without results stay")
    arguments = parser.parse_args()
    print(write_page(*arguments.out, docs=arguments.docs, keep=arguments.keep))


if __name__ == "__main__":
    main()
