"""Ctrl-C at any moment of a call: it comes soon, and leaves nothing behind.

A child process computes and is sent SIGINT at a random moment. Delays are measured in its own
processor time, so that a busy machine does not count.
"""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import tempfile
import time
import warnings

import psutil

from otgraph._atomic import PREFIX

from .calls import CALLS, blas_threads, call, limited_blas, quietly
from .patience import LOOK, watched

ROUNDS = 4  # interrupts of one process
SIZE = 3000  # points: most calls take a tenth of a second to a second
N_JOBS = (1, 2)
LATE = 1.5  # seconds of processor time, of two threads together
SECONDS = 300.0  # of processor time; then the child hangs


def judge_interrupt(seed):
    """One verdict for each interrupt."""
    chance = random.Random(seed)
    name, n_jobs = sorted(CALLS)[seed % len(CALLS)], chance.choice(N_JOBS)
    told = f"interrupt seed {seed}: {name}, n_jobs={n_jobs}"
    quietly()
    bits, seconds = _alone(name)
    with tempfile.TemporaryDirectory() as folder:
        pid, reading, writing = _child(name, n_jobs, folder)
        with watched(pid, SECONDS):
            try:
                return [
                    _judged(pid, reading, writing, chance.uniform(0.0, seconds), bits, told)
                    for _ in range(ROUNDS)
                ]
            except EOFError:
                return [("interrupted process HUNG or CRASHED", told)]
            finally:
                for file in (reading, writing):
                    file.close()
                os.waitpid(pid, 0)


@functools.cache
def _alone(name):
    """Digest and duration of a call that nobody disturbs; kernels are compiled by then."""
    bits = call(name, SIZE)
    begin = time.monotonic()
    call(name, SIZE)
    return bits, time.monotonic() - begin


def _judged(pid, reading, writing, moment, bits, told):
    writing.write("go\n")
    if not reading.readline():
        raise EOFError
    time.sleep(moment)
    spent = sum(psutil.Process(pid).cpu_times()[:2])
    os.kill(pid, signal.SIGINT)
    answer = reading.readline()
    if not answer:
        raise EOFError
    after = json.loads(answer)
    told += f" after {moment:.3f} s: {after}"
    if not after["came"]:
        return "interrupt LOST", told
    if after["spent"] - spent > LATE:
        return "interrupt LATE", f"{told}, {after['spent'] - spent:.2f} s"
    if after["bits"] != bits:
        return "OTHER bits after an interrupt", told
    if after["blas"] != after["blas_before"]:
        return "BLAS threads LOST after an interrupt", told
    if after["hidden"]:
        return "LEFTOVERS after an interrupt", told
    return ("interrupted" if after["inside"] else "interrupted after the call"), ""


# Child ----------------------------------------------------------------------------------


def _child(name, n_jobs, folder):
    down, up = os.pipe(), os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        try:
            os.close(down[1])
            os.close(up[0])
            _compute(name, n_jobs, folder, os.fdopen(down[0]), os.fdopen(up[1], "w", buffering=1))
        finally:
            os._exit(1)
    os.close(down[0])
    os.close(up[1])
    return pid, os.fdopen(up[0]), os.fdopen(down[1], "w", buffering=1)


def _compute(name, n_jobs, folder, orders, answers):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    limited_blas()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a command says that it was interrupted
    before = blas_threads()
    while orders.readline():
        came, inside = True, True
        try:
            print("begun", file=answers)
            call(name, SIZE, n_jobs, folder)
            inside = False
            _wait()  # the interrupt comes after the call
            came = False
        except KeyboardInterrupt:
            spent = sum(os.times()[:2])
        found = {
            "came": came,
            "inside": inside,
            "spent": spent if came else 0.0,
            "blas": blas_threads(),
            "blas_before": before,
            "hidden": [file for file in os.listdir(folder) if file.startswith(PREFIX)],
            "bits": call(name, SIZE, n_jobs, folder),
        }
        print(json.dumps(found), file=answers)
    os._exit(0)


def _wait():
    """Short sleeps: a signal just before a sleep is seen only after it."""
    begin = time.monotonic()
    while time.monotonic() - begin < SECONDS:
        time.sleep(LOOK)
