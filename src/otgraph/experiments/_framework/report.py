"""Results of a run: files of scores, summary and figures, and a report."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from otgraph._atomic import replacing
from otgraph._optional import require
from otgraph._text import plain
from otgraph.experiments._framework.experiment import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from otgraph.experiments._framework.experiment import Claim, Params, Picture, Row, Scores, Task

FIGURE_DPI = 150
# Without the date, equal scores give equal files.
FIGURE_FORMATS: dict[str, Row] = {"png": {}, "pdf": {"CreationDate": None}}
QUICK_RUN = "quick run: small samples and thinned grids, which decide nothing"


@dataclass(frozen=True)
class Report:
    """The outcome of an experiment, or of all of them; ``print`` it.

    Attributes
    ----------
    name
        Name of the experiment, or ``"all"``.
    title
        One line about it.
    claims
        The paper's claims with their verdicts.
    files
        Everything that was written.
    quick
        Whether it was a quick run; then there are no verdicts.
    parts
        The reports of the single experiments, if there are several.
    """

    name: str
    title: str
    claims: list[Claim]
    files: list[Path]
    quick: bool = False
    parts: tuple[Report, ...] = ()

    @classmethod
    def of_all(cls, parts: Iterable[Report]) -> Report:
        """One report for several experiments.

        Parameters
        ----------
        parts
            Their reports.
        """
        parts = tuple(parts)
        claims = [claim for part in parts for claim in part.claims]
        files = [file for part in parts for file in part.files]
        quick = any(part.quick for part in parts)
        return cls(
            "all", tally(str(claim.verdict) for claim in claims), claims, files, quick, parts
        )

    def __str__(self) -> str:
        if self.parts:
            return "\n\n".join([*map(str, self.parts), f"{self.name}: {self.title}"])
        folder = self.files[0].parent if self.files else ""
        names = ", ".join(file.name for file in self.files)
        title = f"{self.name}: {self.title}"
        if self.quick:
            title += f" ({QUICK_RUN})"
        return "\n".join([title, *map(str, self.claims), f"{folder}: {names}"])


def tally(verdicts: Iterable[str]) -> str:
    """Number of claims by verdict, in words."""
    counts = Counter(verdicts)
    n = counts.total()
    if counts[Verdict.NOT_JUDGED] == n:
        return f"{n} claims, none judged"
    ties = counts[Verdict.TIE]
    remark = f", {ties} a tie" if ties else ""
    return f"{counts[Verdict.CONFIRMED]} of {n} claims confirmed{remark}"


def score_table(name: str, tasks: Iterable[Task], finished: Params) -> Scores:
    """Tidy data frame of all scores, in the order of the tasks."""
    rows = [
        {
            "experiment": name,
            "variant": task.variant,
            "seed": task.seed,
            "method": task.method,
            **task.params,
            **row,
        }
        for task in tasks
        for row in finished[task.key]
    ]
    frame = require("pandas", "data").DataFrame(rows)
    last = ["score", "value"]
    frame = frame[[column for column in frame if column not in last] + last]
    for column in frame.columns.drop(last):
        if all(isinstance(row.get(column, 0), int) for row in rows):
            frame[column] = frame[column].astype("Int64")  # whole numbers with gaps, such as k
    return frame


def rendered(pictures: Iterable[Picture]) -> dict[str, bytes]:
    """Files of the pictures, complete in memory before the first is written."""
    files = {}
    for picture in pictures:
        for kind, metadata in FIGURE_FORMATS.items():
            file = io.BytesIO()
            picture.figure.savefig(
                file, format=kind, metadata=metadata, dpi=FIGURE_DPI, bbox_inches="tight"
            )
            files[f"{picture.name}.{kind}"] = file.getvalue()
    return files


def as_json(claims: Iterable[Claim], **entries: object) -> bytes:
    """A summary as strict JSON; numbers that are not finite become null."""
    document = {**entries, "claims": [asdict(claim) for claim in claims]}
    text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def write_files(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files; each is replaced in one step."""
    for name, content in contents.items():
        with replacing(str(folder / name)) as file:
            file.write(content)
    return [folder / name for name in contents]
