"""A sample of the parts of the soak that need processes of their own, and planted faults."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import otgraph
from soak import calls, laws, races
from soak.__main__ import FAULTS
from soak.patience import waited
from soak.problems import random_problem
from soak.solving import judge

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the soak forks")

# Part, number of cases, first seed, and the verdicts that this gives.
SAMPLES = {
    "one damaged file of every format": ("files", 11, 0, 11),
    "five killed writers for each of four formats": ("kills", 4, 0, 4),
    "calls raced in threads": ("races", 1, 0, races.BATCH),
    "calls raced in processes that are forked meanwhile": ("races", 1, 4, races.BATCH),
    "plans between two clouds": ("clouds", 12, 0, 12),
    "interrupts of a graph and of a file": ("interrupts", 2, 17, 8),
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_sample_of_the_soak(sample):
    part, count, seed, verdicts = SAMPLES[sample]
    options = ["--count", str(count), "--seed", str(seed), "--processes", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "soak", part, *options],
        cwd=Path(__file__).parent, capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{verdicts} verdicts, 0 faults" in done.stdout


@pytest.mark.parametrize("seed", range(len(laws.KINDS)))
def test_sample_of_the_laws(seed):
    found = laws.judge_laws(seed)
    assert len(found) > 10
    assert not [(verdict, told) for verdict, told in found if "BROKEN" in verdict]


def is_fault(verdict):
    return any(word in verdict for word in FAULTS)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(9640821, id="the certified plan lacks faint edges of the trial"),
        pytest.param(9672441, id="the same, nine points"),
        pytest.param(9632110, id="the degree is lower at large eps"),
        pytest.param(9635063, id="the same, five points"),
        pytest.param(9635816, id="mass held back at a high price"),
        pytest.param(9645489, id="the same, from a poor start"),
        pytest.param(9814351, id="two sets of active pairs take turns"),
        pytest.param(9654262, id="the same, clouds far apart"),
        pytest.param(9656442, id="the same, one heavy point"),
        pytest.param(9820260, id="the same, mass held back"),
    ],
)
def test_problems_that_were_faults(seed):
    verdicts = [verdict for verdict, _ in judge(random_problem(seed))]
    assert not [v for v in verdicts if any(word in v for word in FAULTS)], verdicts


def test_a_law_that_does_not_hold_is_found(monkeypatch):
    real = otgraph.gaussian_graph

    def first_point_is_special(X, *arguments, **options):
        graph = real(X, *arguments, **options)
        weights = graph.weights.copy()
        weights[0] *= 1 + 1e-12
        weights[:, 0] = weights[0].T
        return otgraph.Graph(weights.tocsr(), graph.params, graph.points)

    monkeypatch.setattr("otgraph.gaussian_graph", first_point_is_special)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {verdict for verdict, _ in laws.judge_laws(2) if is_fault(verdict)}
    assert "gaussian: permutation BROKEN" in found


def test_calls_that_differ_are_found(monkeypatch):
    monkeypatch.setattr(races, "BATCH", 4)
    monkeypatch.setattr(races, "RACED", ["random"])
    monkeypatch.setitem(calls.CALLS, "random", lambda given: random.randbytes(8))
    with warnings.catch_warnings():
        found = races.judge_race(0)
    assert [is_fault(verdict) for verdict, _ in found] == [True] * 4


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
class TestPatience:
    """Processes that hang are told from those that wait for a core."""

    def started(self, work):
        pid = os.fork()
        if pid == 0:
            work()
            os._exit(3)
        return pid

    def test_one_that_ends(self):
        assert waited(self.started(lambda: time.sleep(0.5)), 0.3) == 3

    def test_one_that_sleeps_for_ever(self, monkeypatch):
        monkeypatch.setattr("soak.patience.IDLE_SECONDS", 0.5)
        assert waited(self.started(lambda: time.sleep(1000.0)), 1000.0) is None

    def test_one_that_loops_for_ever(self):
        assert waited(self.started(lambda: any(iter(int, 1))), 0.5) is None

    def test_one_that_is_stopped_for_a_while(self, monkeypatch):
        monkeypatch.setattr("soak.patience.IDLE_SECONDS", 0.5)
        pid = self.started(lambda: time.sleep(0.1))
        os.kill(pid, signal.SIGSTOP)
        timer = threading.Timer(1.5, os.kill, (pid, signal.SIGCONT))
        timer.start()
        assert waited(pid, 1000.0) == 3
        timer.join()
