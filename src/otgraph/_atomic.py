"""Write files that are either complete or absent.

A file is written under a hidden name in the folder of its target, flushed to the disk and then
renamed. The writer holds a lock on it as long as it lives. The next write into the same folder
removes hidden files that are not locked: their writers were killed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import TYPE_CHECKING, BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator

# Short, whatever the target is called: a name may have 255 bytes, and the target may need them.
PREFIX, SUFFIX = ".otgraph-", ".tmp"
KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextlib.contextmanager
def replacing(path: str, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``path`` once it is complete and on the disk.

    Only regular files are replaced, and their permissions are kept. A link goes on pointing to
    its file. Without `overwrite`, an existing file is an error, even if it was created during the
    work.
    """
    check_replaceable(path, overwrite=overwrite)
    target = os.path.realpath(path)
    directory = os.path.dirname(target)
    remove_leftovers(directory)
    # The name is known before the file exists, so that an interrupt at any moment can remove it.
    temporary = os.path.join(directory, f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
    try:
        with _new_file(temporary, path) as file:
            _take_over_permissions(file.fileno(), target)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "posix":  # still locked, so no other writer removes it
                _rename(path, temporary, target, overwrite=overwrite)
        if os.name != "posix":  # Windows does not rename an open file
            _rename(path, temporary, target, overwrite=overwrite)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename in (None, temporary):
            error.filename = path  # a full disk, say
        raise
    # The renaming itself becomes durable, where the system lets directories be opened.
    with contextlib.suppress(OSError):
        _sync_directory(directory)


def check_replaceable(path: str, *, overwrite: bool = True) -> None:
    """Raise an error unless `path` is a regular file or the name of a new one."""
    directory = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(directory):
        msg = f"the directory {directory} does not exist; create it first"
        raise FileNotFoundError(errno.ENOENT, msg, path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:  # a link that leads back to itself, a name that is too long, ...
        msg = f"cannot be written: {error.strerror}"
        raise type(error)(error.errno, msg, path) from error
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "not a regular file")
        msg = f"is {kind}; give the name of a file"
        raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, msg, path)
    if not overwrite:
        raise _exists_already(path)


def remove_leftovers(directory: str) -> None:
    """Remove the hidden files of writers that were killed; those of living ones are locked."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.name.endswith(SUFFIX):
                with contextlib.suppress(OSError):
                    _remove_if_unlocked(entry.path)


def _remove_if_unlocked(path: str) -> None:
    with open(path, "rb", buffering=0, opener=_open_safely) as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_name_of(file.fileno(), path):
                os.unlink(path)


def _open_safely(path: str, flags: int) -> int:
    """Neither follow a link nor wait for a pipe: a name of ours that is one is not ours."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _new_file(temporary: str, path: str) -> BinaryIO:
    """A new, empty, locked file with the permissions that any new file gets."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        try:
            # Without a name of its own: pandas would open that name again.
            file = os.fdopen(os.open(temporary, flags, 0o666), "wb")
        except OSError as error:
            msg = f"cannot write into the directory {os.path.dirname(temporary)}: {error.strerror}"
            raise type(error)(error.errno, msg, path) from error
        if fcntl is None:
            return file
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        # Another writer may have taken it for a leftover before it was locked.
        if _is_name_of(file.fileno(), temporary):
            return file
        file.close()


def _is_name_of(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _take_over_permissions(descriptor: int, target: str) -> None:
    """Owner, if that is possible, and permissions of the file that will be replaced."""
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return
    if not hasattr(os, "fchown"):  # Windows
        return
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _rename(path: str, temporary: str, target: str, *, overwrite: bool) -> None:
    if overwrite:
        # It may have become something else since it was checked.
        check_replaceable(path)
        os.replace(temporary, target)
        return
    try:
        os.link(temporary, target)  # fails if there is a file, in one step
    except FileExistsError as error:
        raise _exists_already(path) from error
    except (OSError, NotImplementedError) as error:  # file systems without hard links
        if os.path.lexists(target):
            raise _exists_already(path) from error
        os.rename(temporary, target)
        return
    os.unlink(temporary)


def _exists_already(path: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, "exists already, and may not be replaced", path)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
