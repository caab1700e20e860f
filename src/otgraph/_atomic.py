"""Write files that are either complete or absent."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``path`` once it is complete and on the disk."""
    with replacing_name(path) as temporary, open(temporary, "wb") as file:
        yield file


@contextlib.contextmanager
def replacing_name(path: str) -> Iterator[str]:
    """The same for libraries that want a name: an empty file for them to overwrite."""
    target = os.path.realpath(path)  # a link goes on pointing to its file
    directory = os.path.dirname(target)
    _check_target(path, target, directory)
    temporary = os.path.join(directory, f".{os.path.basename(target)}.{secrets.token_hex(8)}")
    # Opened by hand for the permissions that any new file gets, which tempfile does not give.
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        msg = f"cannot write into the directory of {path!r}: {error.strerror}"
        raise type(error)(error.errno, msg) from error
    try:
        yield temporary
        _sync(temporary, os.O_RDWR)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    # The renaming itself becomes durable, where the system lets directories be opened.
    with contextlib.suppress(OSError):
        _sync(directory, os.O_RDONLY)


def _check_target(path: str, target: str, directory: str) -> None:
    if not os.path.isdir(directory):
        msg = f"the directory of {path!r} does not exist; create it first"
        raise FileNotFoundError(errno.ENOENT, msg)
    if os.path.isdir(target):
        msg = f"{path!r} is a directory; give the name of a file"
        raise IsADirectoryError(errno.EISDIR, msg)


def _sync(path: str, mode: int) -> None:
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
