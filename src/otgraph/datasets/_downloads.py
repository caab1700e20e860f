"""Download files, and check that they do not change."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from otgraph._optional import require
from otgraph.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

CACHE_VARIABLE = "OTGRAPH_DATA"
TIMEOUT = 30  # seconds without an answer

# The data of section 3.3, as the authors used them.
REMOTE_FILES = {
    "bmmc": "https://github.com/KrishnaswamyLab/PHATE/raw/main/data/BMMC_myeloid.csv.gz",
}


def fetch(
    name: str,
    *,
    cache: str | PathLike[str] | None = None,
    sha256: str | None = None,
    progress: bool = False,
) -> Path:
    """Path of a downloaded file.

    The publisher gives no checksum. The first download records it in ``<file>.sha256``, and every
    later use must match it. A damaged copy is downloaded again. A file that has changed at its
    source is an error.
    """
    pooch = require("pooch", "data")
    url = REMOTE_FILES[name]
    folder = Path(cache or os.environ.get(CACHE_VARIABLE) or pooch.os_cache("otgraph"))
    path = folder / url.rpartition("/")[2]
    record = path.with_name(f"{path.name}.sha256")
    known = sha256 or (record.read_text().split()[0] if record.exists() else None)
    downloader = pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT)
    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(url, known, fname=path.name, path=folder, downloader=downloader)
    except ValueError as error:  # pooch's error for a different checksum
        msg = (
            f"{path.name} from {url} is not the file with the checksum {known}"
            f"{'' if sha256 else f' that is recorded in {record}'}. If it was changed on purpose, "
            f"{'pass its checksum' if sha256 else 'delete that record'} and load it again."
        )
        raise FormatError(msg) from error
    except OSError as error:
        msg = (
            f"{path.name} could not be downloaded ({_reason(error)}). Get it on a machine with a "
            f"network from {url}, then either pass its path in place of {name!r} (on the command "
            f"line: --data PATH), or put it into {folder}."
        )
        raise ConnectionError(msg) from error
    if not record.exists():
        record.write_text(f"{pooch.file_hash(str(path))}  {path.name}\n")
    return path


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Silence pooch's log messages."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _reason(error: OSError) -> str:
    """A short reason, without addresses and ports."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answers {response.status_code}"
    return "no connection" if "onnection" in type(error).__name__ else str(error)
