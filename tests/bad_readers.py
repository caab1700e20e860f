"""Readers that do what readers of damaged files may do; `test_isolated` runs them."""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections import deque
from itertools import repeat

import numpy as np


def crash(path):
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(path):
    deque(repeat(0), maxlen=0)  # in C, where no Python handler of a signal runs


def greedy(path):
    return np.ones(1 << 45)


def leave(path):
    os._exit(7)


def fail(path):
    msg = "no\nsuch thing"
    raise KeyError(msg)


def silent(path):
    raise ValueError


def chatty(path):
    print("on standard output")
    print("on standard error", file=sys.stderr)
    warnings.warn("names are not unique", UserWarning, stacklevel=1)
    warnings.warn("for developers", DeprecationWarning, stacklevel=1)
    return {"path": path, "array": np.arange(5.0), "empty": np.empty(0), "pid": os.getpid()}


def slow(path):
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(60)


def large(path):
    return [np.arange(10**6, dtype=np.float64), np.arange(7, dtype=np.int32), np.eye(3).T]
