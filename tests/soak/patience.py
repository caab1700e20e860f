"""How long a process may take on a machine that is busy with something else.

On the clock, a process that waits for a core looks like one that hangs. So only two things count:
processor time that it has used, and time in which it neither used any nor waited for a core.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import psutil

IDLE_SECONDS = 60.0  # asleep, and nobody wakes it
LOOK = 0.25  # seconds between two looks at a process


class Patience:
    """Tells when a process, with its children, hangs."""

    def __init__(self, pid, seconds):
        self._pid, self._seconds = pid, seconds
        self._spent, self._idle, self._looked = 0.0, 0.0, time.monotonic()

    def ended(self):
        """Whether it has used up its time, or slept for too long."""
        now = time.monotonic()
        # A pause of this process itself, frozen or without a core, says nothing about the other.
        passed, self._looked = min(now - self._looked, 2 * LOOK), now
        spent, awake = _activity(self._pid)
        self._idle = 0.0 if awake or spent > self._spent else self._idle + passed
        self._spent = max(spent, self._spent)
        return self._spent > self._seconds or self._idle > IDLE_SECONDS


def _activity(pid):
    """Processor time of a process and its children, and whether one of them could run."""
    spent, awake = 0.0, False
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = one.cpu_times()
                spent += times.user + times.system
                awake |= one.status() not in {psutil.STATUS_SLEEPING, psutil.STATUS_ZOMBIE}
        spent += sum(process.cpu_times()[2:4])  # children that have ended
    return spent, awake


def waited(pid, seconds):
    """Exit code of a child process; one that hangs is killed, and has none."""
    patience, looked = Patience(pid, seconds), time.monotonic()
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - looked > LOOK:
            looked = time.monotonic()
            if patience.ended():
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return None
        time.sleep(0.005)


@contextlib.contextmanager
def watched(pid, seconds):
    """Kill a child process that hangs; the event that is given tells whether that was so."""
    hung, over = threading.Event(), threading.Event()

    def watch():
        patience = Patience(pid, seconds)
        while not over.wait(LOOK):
            if patience.ended():
                hung.set()
                os.kill(pid, signal.SIGKILL)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield hung
    finally:
        over.set()
        thread.join()
