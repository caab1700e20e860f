"""Files are replaced whole or not at all, and only what may be replaced."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

from interrupting import interrupted
from otgraph import _atomic
from otgraph._atomic import PREFIX, SUFFIX, replacing

CONTENT = b"new"


def write(path, content: bytes = CONTENT, **options) -> None:
    with replacing(str(path), **options) as file:
        file.write(content)


def mode_of(path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def hidden(folder) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".")]


class TestOnlyRegularFilesAreReplaced:
    def refused(self, path, match):
        before = os.lstat(path)
        with pytest.raises(OSError, match=match):
            write(path)
        after = os.lstat(path)
        assert (before.st_mode, before.st_ino) == (after.st_mode, after.st_ino)
        assert hidden(path.parent) == []

    def test_named_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        self.refused(tmp_path / "pipe", "is a named pipe")

    def test_device(self, tmp_path):
        """A device of its own: a test must not endanger those of the machine."""
        try:
            os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
        self.refused(tmp_path / "null", "is a device")
        (tmp_path / "link").symlink_to("null")
        self.refused(tmp_path / "link", "is a device")
        assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)

    def test_socket(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # names of sockets must be short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
            self.refused(tmp_path / "socket", "is a socket")

    def test_links_that_lead_in_a_circle(self, tmp_path):
        (tmp_path / "a").symlink_to(tmp_path / "b")
        (tmp_path / "b").symlink_to(tmp_path / "a")
        self.refused(tmp_path / "a", "symbolic links")

    def test_what_became_a_pipe_meanwhile(self, tmp_path):
        path = tmp_path / "file"
        with (
            pytest.raises(OSError, match="is a named pipe"),
            replacing(str(path)),
        ):
            os.mkfifo(path)
        assert stat.S_ISFIFO(path.stat().st_mode)
        assert hidden(tmp_path) == []

    def test_a_link_to_a_file_is_followed(self, tmp_path):
        (tmp_path / "file").write_bytes(b"old")
        (tmp_path / "link").symlink_to("file")
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "file").read_bytes() == CONTENT

    def test_a_link_to_nothing_yet(self, tmp_path):
        (tmp_path / "link").symlink_to("file")
        write(tmp_path / "link")
        assert (tmp_path / "file").read_bytes() == CONTENT


class TestPermissions:
    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
    def test_of_the_old_file_are_kept(self, tmp_path, mode):
        path = tmp_path / "file"
        path.write_bytes(b"old")
        path.chmod(mode)
        with replacing(str(path)) as file:
            # Nobody may read the new content who could not read the old.
            assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == mode
        assert mode_of(path) == mode

    def test_of_new_files_follow_the_umask(self, tmp_path):
        before = os.umask(0o027)
        try:
            write(tmp_path / "file")
        finally:
            os.umask(before)
        assert mode_of(tmp_path / "file") == 0o640

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_owner_is_kept(self, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(b"old")
        os.chown(path, 12345, 12346)
        write(path)
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)


class TestWithoutOverwriting:
    def test_new_file(self, tmp_path):
        write(tmp_path / "file", overwrite=False)
        assert (tmp_path / "file").read_bytes() == CONTENT
        assert os.listdir(tmp_path) == ["file"]
        assert (tmp_path / "file").stat().st_nlink == 1

    def test_existing_file(self, tmp_path):
        (tmp_path / "file").write_bytes(b"old")
        with pytest.raises(FileExistsError, match="exists already"):
            write(tmp_path / "file", overwrite=False)
        assert (tmp_path / "file").read_bytes() == b"old"

    @pytest.mark.parametrize("hard_links", [True, False])
    def test_file_that_comes_meanwhile(self, tmp_path, monkeypatch, hard_links):
        if not hard_links:
            monkeypatch.setattr(os, "link", unable)
        path = tmp_path / "file"
        with (
            pytest.raises(FileExistsError, match="exists already"),
            replacing(str(path), overwrite=False),
        ):
            path.write_bytes(b"somebody else's")
        assert path.read_bytes() == b"somebody else's"
        assert os.listdir(tmp_path) == ["file"]

    def test_file_system_without_hard_links(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "link", unable)
        write(tmp_path / "file", overwrite=False)
        assert (tmp_path / "file").read_bytes() == CONTENT
        assert os.listdir(tmp_path) == ["file"]


def unable(*_):
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("name", ["n" * 255, "ä" * 127])
def test_names_of_any_legal_length(tmp_path, name):
    for content in (b"one", b"two"):
        write(tmp_path / name, content)
        assert (tmp_path / name).read_bytes() == content


def test_name_that_is_too_long(tmp_path):
    with pytest.raises(OSError, match="too long"):
        write(tmp_path / ("n" * 256))


def test_full_disk_names_the_file(tmp_path):
    with (
        pytest.raises(OSError, match="No space") as caught,
        replacing(str(tmp_path / "file")),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "file")


class TestLeftovers:
    WRITER = """
import sys, time
from otgraph._atomic import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half"); file.flush()
    print("ready", flush=True)
    time.sleep(60)
"""

    @pytest.fixture
    def writer(self, tmp_path):
        process = subprocess.Popen(
            [sys.executable, "-c", self.WRITER, str(tmp_path / "slow")],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()
        process.wait()
        process.stdout.close()

    def test_of_a_killed_writer_are_removed_by_the_next(self, tmp_path, writer):
        assert len(hidden(tmp_path)) == 1
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert len(hidden(tmp_path)) == 1
        write(tmp_path / "other")
        assert os.listdir(tmp_path) == ["other"]

    def test_of_a_living_writer_stay(self, tmp_path, writer):
        write(tmp_path / "other")
        assert len(hidden(tmp_path)) == 1
        assert writer.poll() is None

    def test_names_of_others_stay(self, tmp_path):
        others = [".hidden.tmp", f"{PREFIX}notes.txt", "plain.tmp"]
        for name in others:
            (tmp_path / name).write_bytes(b"")
        pipe, link = f"{PREFIX}pipe{SUFFIX}", f"{PREFIX}link{SUFFIX}"
        os.mkfifo(tmp_path / pipe)
        (tmp_path / link).symlink_to("plain.tmp")
        begin = time.monotonic()
        write(tmp_path / "file")
        assert time.monotonic() - begin < 5  # the pipe is not waited for
        assert set(os.listdir(tmp_path)) == {*others, pipe, link, "file"}

    def test_a_file_removed_before_it_was_locked_is_made_again(self, tmp_path, monkeypatch):
        """Another writer swept between the creation and the lock."""
        lock, swept = fcntl.flock, []

        def sweep_first(descriptor, operation):
            if not swept:
                swept.append(True)
                for name in hidden(tmp_path):
                    os.unlink(tmp_path / name)
            lock(descriptor, operation)

        monkeypatch.setattr(_atomic.fcntl, "flock", sweep_first)
        write(tmp_path / "file")
        assert swept
        assert (tmp_path / "file").read_bytes() == CONTENT

    # What an interrupt leaves open is closed by the interpreter, which warns.
    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_of_an_interrupt_at_any_moment_are_removed(self, tmp_path):
        (tmp_path / "old").write_bytes(b"old")

        def work():
            write(tmp_path / "old")

        interrupted(sys.maxsize, work, _atomic)  # Python 3.12 traces from the second time on
        at = 0
        while interrupted(at, work, _atomic):
            assert os.listdir(tmp_path) == ["old"], at
            at += 1
        assert at > 50
