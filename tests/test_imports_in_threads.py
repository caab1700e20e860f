"""Imports that happen when they are needed, in several threads and beside a fork."""

from __future__ import annotations

import os
import threading

import pytest

from otgraph._optional import importing, require


def test_one_thread_imports_at_a_time():
    """Modules that import each other are seen half loaded by a second thread otherwise."""
    done = threading.Event()
    other = threading.Thread(target=lambda: (require("json"), done.set()))
    with importing():
        require("json")  # the same thread may import while it imports
        other.start()
        assert not done.wait(0.2)
    other.join()
    assert done.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_waits_for_imports_of_other_threads():
    """The new process does not have the thread that imports, and would wait for it for ever."""
    begun, ended = threading.Event(), threading.Event()

    def long_import():
        with importing():
            begun.set()
            ended.wait(0.3)
            ended.set()

    thread = threading.Thread(target=long_import)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        with importing():
            os._exit(0 if ended.is_set() else 1)
    _, status = os.waitpid(child, 0)
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
    with importing():
        pass
