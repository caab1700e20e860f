"""Files to write: checked before the work, replaced in one step after it."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from otgraph._atomic import replacing, replacing_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from contextlib import AbstractContextManager

    from otgraph.cli.options import RunOptions

STDOUT = "-"
# Formats that are text, for which a compressed variant is customary.
COMPRESSIBLE = (".csv", ".tsv", ".mtx")


def suffix_of(path: str, known: Collection[str], *, what: str) -> str:
    """The known suffix that a path has, ``.gz`` included, or an error that lists them."""
    name = os.path.basename(path).lower()
    suffixes = [suffix for suffix in known if name.endswith(suffix)]
    if not suffixes:
        msg = f"{path}: unknown kind of {what}; the name must end in {', '.join(known)}."
        raise ValueError(msg)
    return max(suffixes, key=len)


def with_compressed(suffixes: Collection[str]) -> tuple[str, ...]:
    """The suffixes, and their compressed variants where these are customary."""
    return (*suffixes, *(f"{suffix}.gz" for suffix in suffixes if suffix in COMPRESSIBLE))


@dataclass(frozen=True)
class Target:
    """A file that will be written, of a kind that its name tells."""

    path: str
    suffix: str  # without .gz
    compressed: bool = False

    @property
    def streamed(self) -> bool:
        """Whether it is standard output."""
        return self.path == STDOUT

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The file to write to; it appears when it is complete, or not at all."""
        if self.streamed:
            yield sys.stdout.buffer
            return
        with replacing(self.path) as file:
            if not self.compressed:
                yield file
                return
            # No name and no time inside: the same result gives the same bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                yield packed  # type: ignore[misc]

    def name(self) -> AbstractContextManager[str]:
        """A name to write to instead, for libraries that take no open file."""
        return replacing_name(self.path)


def target(path: str, known: Collection[str], *, what: str, run: RunOptions) -> Target:
    """Check now what would otherwise fail after hours of work.

    Parameters
    ----------
    path
        The file, or ``-`` for CSV on standard output, where `known` has ``.csv``.
    known
        Suffixes that the command can write.
    what
        What the file will hold, for error messages.
    run
        Whether an existing file may be replaced, and who else writes to standard output.
    """
    if path == STDOUT and run.json:
        msg = "--json and -o - cannot both have standard output; write to a file."
        raise ValueError(msg)
    if path == STDOUT:
        if ".csv" not in known:
            msg = f"standard output takes CSV only; {what} needs a file: {', '.join(known)}."
            raise ValueError(msg)
        return Target(path, ".csv")
    suffix = suffix_of(path, with_compressed(known), what=what)
    check_place(path, force=run.force)
    return Target(path, suffix.removesuffix(".gz"), suffix.endswith(".gz"))


def check_place(path: str, *, force: bool) -> None:
    """Raise unless a file of this name may and can be written."""
    if os.path.isdir(path):
        msg = f"{path}: is a directory; give the name of a file."
        raise ValueError(msg)
    if os.path.lexists(path) and not force:
        msg = f"{path}: exists already; --force replaces it."
        raise ValueError(msg)
    directory = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(directory):
        msg = f"{path}: the directory {directory} does not exist; create it first."
        raise ValueError(msg)
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass  # permissions alone do not tell: disks are full or read-only
    except OSError as error:
        msg = f"{path}: cannot write into {directory}: {error.strerror}."
        raise ValueError(msg) from error
