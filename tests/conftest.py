"""Settings and fixtures of the whole suite."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from hypothesis import settings

# Pictures go to files: no test needs, or may open, a window.
os.environ["MPLBACKEND"] = "Agg"

# A shell without job control starts `make test &` with interrupts ignored, and processes that tests
# start and interrupt would inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the first example of a property pays for compiling the kernels.
# Derandomized: a run either passes for everybody or fails for everybody.
settings.register_profile("otgraph", deadline=None, derandomize=True)
settings.load_profile("otgraph")


@pytest.fixture
def rng() -> np.random.Generator:
    """The one source of randomness in tests."""
    return np.random.default_rng(20220801)


@pytest.fixture
def interrupt():
    """Call a function again and again until an interrupt comes after some seconds.

    Returns the interrupt, or None if it came inside of a destructor, which Python does not let
    out: the collector may run destructors of other tests' objects at any moment.
    """
    if not hasattr(signal, "setitimer"):
        pytest.skip("no timers on this system")
    came = []

    def come(*_):
        came.append(True)
        raise KeyboardInterrupt

    def until_it_came(function):
        # By itself: on Python 3.13 an interrupt between two rounds of a ``while`` loop escapes the
        # ``try`` around it.
        while not came:
            function()

    def again_and_again(function, seconds):
        came.clear()
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            until_it_came(function)
        except KeyboardInterrupt as error:
            return error
        return None

    before = signal.signal(signal.SIGALRM, come)
    yield again_and_again
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)
