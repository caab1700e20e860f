"""Calls raced from threads and processes: the same bits as alone, and BLAS as it was before.

One case is a batch of calls in one setting.
"""

from __future__ import annotations

import functools
import logging
import os
import pickle
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor

from .calls import CALLS, blas_threads, call, limited_blas, quietly
from .patience import watched

BATCH = 300  # calls of one case, which starts processes of its own
THREADS = 4
PROCESSES = 2
SIZES = (150, 250, 250, 900)  # few, because each is also computed alone; the last takes cells
N_JOBS = (1, 1, 2, None)
SECONDS = 300.0  # of processor time; then a forked process hangs
RACED = sorted(set(CALLS) - {"command"})  # a command has its process to itself


def judge_race(seed):
    """One verdict for each call."""
    chance = random.Random(seed)
    setting = list(SETTINGS)[seed % len(SETTINGS)]
    tasks = [
        (chance.choice(RACED), chance.choice(SIZES), chance.choice(N_JOBS)) for _ in range(BATCH)
    ]
    quietly()
    with limited_blas():
        expected = [alone(name, n) for name, n, _ in tasks]
        try:
            found = SETTINGS[setting](tasks)
        except TimeoutError as error:
            return [(f"raced in {setting}: HUNG", f"race seed {seed}: {error}")]
    verdicts = []
    for task, bits, wanted in zip(tasks, found, expected, strict=True):
        same = bits == wanted
        told = "" if same else f"race seed {seed}: {task}: {bits}"
        verdicts.append((f"raced in {setting}: {'same' if same else 'OTHER'} bits", told))
    return verdicts


@functools.cache
def alone(name, n):
    return call(name, n)


def raced(tasks):
    """Digests of calls that threads of this process take in turns; a word where one failed."""
    quietly()
    with limited_blas():
        before = blas_threads()
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(_told, tasks))
        after = blas_threads()
    if after != before:
        return [f"BLAS has {after} threads and had {before}"] * len(tasks)
    return found


def _told(task):
    try:
        return call(*task)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _shares(tasks):
    return [tasks[i::PROCESSES] for i in range(PROCESSES)]


def _merged(shares):
    found = [None] * sum(map(len, shares))
    for i, share in enumerate(shares):
        found[i::PROCESSES] = share
    return found


def _in_threads_of_joblib(tasks):
    before = blas_threads()
    found = Parallel(THREADS, backend="threading")(delayed(_told)(task) for task in tasks)
    if blas_threads() != before:
        return [f"BLAS has {blas_threads()} threads and had {before}"] * len(tasks)
    return found


def _in_processes_of_joblib(tasks):
    found = Parallel(PROCESSES)(delayed(raced)(share) for share in _shares(tasks))
    get_reusable_executor().shutdown()  # else this process would wait for them when it ends
    return _merged(found)


def _in_spawned_processes(tasks):
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        return _merged(list(pool.map(raced, _shares(tasks))))


def _in_forked_processes(tasks):
    """Processes are forked while threads of this one are in the middle of calls."""
    own, *rest = [tasks[i :: 1 + PROCESSES] for i in range(1 + PROCESSES)]
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(raced, own)
        found = [_forked(share) for share in rest]
        mine = begun.result()
    merged = [None] * len(tasks)
    for i, share in enumerate([mine, *found]):
        merged[i :: 1 + PROCESSES] = share
    return merged


def _forked(tasks):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(raced(tasks), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with watched(pid, SECONDS) as hung, os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    os.waitpid(pid, 0)
    if hung.is_set():
        msg = "a forked process hangs"
        raise TimeoutError(msg)
    return pickle.loads(content)


def _in_a_dask_worker(tasks):
    from distributed import Client, LocalCluster

    quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        LocalCluster(n_workers=1, threads_per_worker=THREADS, **quiet) as cluster,
        Client(cluster) as client,
    ):
        client.run(_two_blas_threads)
        before = client.run(blas_threads)
        found = client.gather(client.map(_told, tasks, pure=False))
        after = client.run(blas_threads)
    if after != before:
        return [f"BLAS has {after} threads and had {before}"] * len(tasks)
    return found


def _two_blas_threads():
    quietly()
    limited_blas()


SETTINGS = {
    "threads": raced,
    "threads of joblib": _in_threads_of_joblib,
    "processes of joblib": _in_processes_of_joblib,
    "spawned processes": _in_spawned_processes,
    "forked processes": _in_forked_processes,
    "a Dask worker": _in_a_dask_worker,
}
