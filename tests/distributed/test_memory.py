"""What a task of a search gets fits into a worker, however many groups near cells lie in."""

from __future__ import annotations

from collections import defaultdict
from importlib.metadata import version

import numpy as np
import pytest
from distributed import WorkerPlugin

import otgraph
from otgraph.distributed import _checks
from otgraph.distributed._checks import WorkerFacts
from otgraph.distributed._cluster import Pace

N, DIM = 12_000, 80
# Workers that can share these points, but with little to spare; see `_checks`.
SMALL = int((_checks.KERNEL_BYTES + 15_000_000) / _checks.USABLE_SHARE)


class Watch(WorkerPlugin):
    """Bytes of points that each task gets, by the name of the task."""

    name = "watch"

    def setup(self, worker):
        self.tasks = worker.state.tasks
        self.inputs = defaultdict(list)

    def transition(self, key, start, finish, **_):
        if finish == "executing":
            needs = [need for need in self.tasks[key].dependencies if _are_points(need.key)]
            self.inputs[_name(key)].append(sum(need.nbytes for need in needs))


def _name(key):
    return str(key).split("-")[1]


def _are_points(key):
    return _name(key) in ("group", "cells")


@pytest.fixture
def inputs(client):
    """Ask for the bytes of points that tasks got on all workers, by name."""

    def ask():
        found = defaultdict(list)
        for inputs in client.run(lambda dask_worker: dask_worker.plugins["watch"].inputs).values():
            for name, sizes in inputs.items():
                found[name] += sizes
        return found

    client.register_plugin(Watch())
    yield ask
    client.unregister_worker_plugin("watch")


@pytest.fixture
def X():
    """Points whose near cells lie in all groups."""
    return np.random.default_rng(0).normal(size=(N, DIM)).astype(np.float32)


@pytest.mark.parametrize("search", ["approximate", "exact"])
def test_the_largest_task_of_small_workers(assert_same, build, inputs, X, monkeypatch, search):
    facts = WorkerFacts(version("otgraph"), 1, SMALL)
    monkeypatch.setattr(_checks, "_facts", lambda dask_worker: facts)
    options = {"mean_degree": 6, "search": search, "connect": False}
    there = build(X, block_rows=4000, **options)
    room = _checks.check_memory({"a": facts, "b": facts}, X.nbytes, 4000, shared=True)
    largest = {name: max(sizes) for name, sizes in inputs().items()}
    group = max(inputs()["rows"])
    assert room.input < X.nbytes  # otherwise there is nothing to bound
    assert _checks.INPUTS_OF_THREAD * room.input < facts.usable
    assert group < room.input / _checks.GROUPS_OF_INPUT
    for name in ("search", "screen"):
        assert 1.5 * group < largest[name] <= 1.02 * room.input  # some bytes for cells
    assert_same(there, otgraph.quadratic_ot_graph(X, **options))


class Counted:
    """A cluster without workers: tasks end when they are waited for."""

    ahead_bytes = 10

    def __init__(self):
        self.waited, self.sent = [], 0

    def wait(self, future):
        self.waited.append(future)

    def flush(self):
        self.sent += 1


def test_tasks_wait_for_room_for_what_they_get():
    cluster = Counted()
    pace = Pace(cluster)
    for task, size in enumerate([4, 6, 1, 9, 30, 1]):
        pace.make_room(size)
        pace.add(task, size)
    # A task that is larger than all room waits until it is alone.
    assert cluster.waited == [0, 1, 2, 3, 4]
    assert cluster.sent == 6  # each at once, so that workers need not wait for the last one
