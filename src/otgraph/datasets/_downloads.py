"""Download files, and check that they do not change."""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from otgraph._atomic import replacing
from otgraph._optional import require
from otgraph.exceptions import FormatError, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

CACHE_VARIABLE = "OTGRAPH_DATA"
TIMEOUT = 30  # seconds without an answer
CHECKSUM = re.compile("[0-9a-fA-F]{64}")
PAGE_BYTES = 512  # a web page shows itself here
CHUNK_BYTES = 1 << 20

COMMIT = re.compile(r"(?<=/)[0-9a-f]{40}(?=/)")  # in an address; "main" is the newest version

# The data of section 3.3, as the authors used them. Pinned to a commit whose own tests read the
# file. No checksum and no mirror are known.
REMOTE_FILES = {
    "bmmc": (
        "https://github.com/KrishnaswamyLab/PHATE/raw/"
        "1045d7e1b1aec546e8320f1312c9c7bfa128ee8c/data/BMMC_myeloid.csv.gz"
    ),
}


def fetch(
    name: str,
    *,
    cache: str | PathLike[str] | None = None,
    sha256: str | None = None,
    progress: bool = False,
) -> Path:
    """Path of a downloaded file.

    The first download records the checksum in ``<file>.sha256``, and every later use must match
    it. Only a whole file of the right format is recorded, never the page of a login. A damaged
    copy is downloaded again. A file that has changed at its source is an error.
    """
    if sha256 is not None and not CHECKSUM.fullmatch(str(sha256)):
        raise invalid("sha256", f"must be 64 hexadecimal digits, got {sha256!r}.")
    pooch = require("pooch", "data")
    url = REMOTE_FILES[name]
    folder = Path(cache or os.environ.get(CACHE_VARIABLE) or pooch.os_cache("otgraph"))
    path = folder / url.rpartition("/")[2]
    record = path.with_name(f"{path.name}.sha256")
    known = sha256 or _recorded(record)
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
            f"network from {url}, or if that is gone from {COMMIT.sub('main', url)}. Then either "
            f"pass its path in place of {name!r} (on the command line: --data PATH), or put it "
            f"into {folder}."
        )
        raise ConnectionError(msg) from error
    fault = _fault(path)
    if fault and known is None:
        path.unlink()  # nothing that would be found again
        msg = (
            f"{url} does not give the file {path.name}: {fault}. A login page of the network may "
            f"answer in its place; log in, or put the file into {folder}. Nothing was kept."
        )
        raise FormatError(msg)
    if fault:
        msg = f"{path} is not what its name says: {fault}. Delete it and {record}, and load again."
        raise FormatError(msg)
    if _recorded(record) is None:
        with replacing(str(record)) as file:
            file.write(f"{pooch.file_hash(str(path))}  {path.name}\n".encode())
    return path


def _recorded(record: Path) -> str | None:
    """The checksum in a file; None if there is none, as after a kill while it was written."""
    try:
        words = record.read_text(encoding="utf-8", errors="replace").split()
    except FileNotFoundError:
        return None
    return words[0] if words and CHECKSUM.fullmatch(words[0]) else None


def _fault(path: Path) -> str | None:
    """Why a file cannot be what was asked for; None if it can."""
    with path.open("rb") as file:
        beginning = file.read(PAGE_BYTES)
    if not beginning:
        return "it is empty"
    if beginning.lstrip().startswith(b"<"):
        return "it is a web page"
    if path.suffix != ".gz":
        return None
    try:
        with gzip.open(path) as unpacked:
            while unpacked.read(CHUNK_BYTES):
                pass
    except (OSError, EOFError, zlib.error) as error:
        return f"it is no whole gzip file ({error})"
    return None


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
