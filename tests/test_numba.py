"""Who waits for a compiler is told so, once, and nobody else is."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from otgraph import _numba
from otgraph._text import COMPILING


class Compiler:
    """Tells a listener what numba would tell it, with a clock of its own."""

    def __init__(self, listener, monkeypatch):
        self.listener, self.now = listener, 0.0
        monkeypatch.setattr(_numba.time, "perf_counter", lambda: self.now)

    def compile(self, seconds, module="otgraph._kernels.pairs", *, calls=()):
        function = SimpleNamespace(__module__=module)
        event = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})
        self.listener.on_start(event)
        for called in calls:
            self.compile(called)
        self.now += seconds
        self.listener.on_end(event)


@pytest.fixture
def heard():
    return []


@pytest.fixture
def compiler(heard, monkeypatch):
    listener = _numba._Compilation(lambda: heard.append(1), after=0.5, modules="otgraph.")
    return Compiler(listener, monkeypatch)


def test_a_short_wait_is_not_announced(compiler, heard):
    for _ in range(4):
        compiler.compile(0.1)
    assert not heard


def test_a_long_wait_is_announced_once(compiler, heard):
    for _ in range(20):
        compiler.compile(0.2)
    assert heard == [1]


def test_time_of_inner_kernels_counts_once(compiler, heard):
    compiler.compile(0.1, calls=[0.1, 0.1, 0.1])
    compiler.compile(0.1)
    assert not heard


def test_kernels_of_others_are_none_of_our_business(compiler, heard):
    for _ in range(20):
        compiler.compile(0.2, "somebody.kernels")
    assert not heard


def test_the_line_is_logged_unless_somebody_else_announces_it(caplog, monkeypatch):
    monkeypatch.setattr(_numba._to_everyone, "_spent", 1.0)
    monkeypatch.setattr(_numba._to_everyone, "announce", lambda: _numba.logger.warning(COMPILING))
    compiler = Compiler(_numba._to_everyone, monkeypatch)
    with _numba.announced_compilation(lambda: None):
        compiler.compile(1.0)
    assert not caplog.messages
    compiler.compile(1.0)
    compiler.compile(1.0)
    assert caplog.messages == [COMPILING]


def test_place_of_the_lowest_bit():
    trailing_zeros = _numba.trailing_zeros
    place = numba.njit(lambda mask: trailing_zeros(mask))
    for bit in range(64):
        assert place(np.uint64(2**63 + 2**bit if bit < 63 else 2**63)) == bit


def _compilation(module):
    """What numba tells a listener about a function of a module."""
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


@pytest.mark.parametrize("before", [True, False])
def test_nothing_is_collected_while_kernels_are_compiled(before, monkeypatch):
    calls = []
    monkeypatch.setattr(
        _numba, "gc",
        SimpleNamespace(
            isenabled=lambda: before,
            disable=lambda: calls.append("off"),
            enable=lambda: calls.append("on"),
        ),
    )  # fmt: skip
    listener, ours = _numba._NoCollection(), _compilation("otgraph._kernels.pairs")
    listener.on_start(ours)
    listener.on_start(_compilation("numba.np.arrayobj"))  # compiled for ours
    listener.on_end(ours)
    assert calls == (["off"] if before else [])
    listener.on_end(ours)
    assert calls == (["off", "on"] if before else [])


def test_compiling_a_kernel_leaves_the_collector_as_it_was():
    seen = []

    class Watch(numba.core.event.Listener):
        def on_start(self, event):
            seen.append(gc.isenabled())

        def on_end(self, event):
            pass

    def kernel(x):
        return x + 1

    kernel.__module__ = "otgraph._kernels.pairs"
    with numba.core.event.install_listener("numba:compile", Watch()):
        assert numba.njit(kernel)(1) == 2
        assert numba.njit(lambda x: x + 2)(1) == 3
    assert seen == [False, True]  # only kernels of this package
    assert gc.isenabled()


def test_a_kernel_that_makes_no_arrays_does_not_count_references():
    def makes(n):
        return np.empty(n)

    with pytest.raises(numba.core.errors.NumbaError, match="Only accept returning of array"):
        numba.njit(**_numba.BORROWING)(makes)(3)
    assert len(numba.njit(**_numba.COUNTING)(makes)(3)) == 3


def test_number_of_bits():
    count_ones = _numba.count_ones
    number = numba.njit(lambda mask: count_ones(mask))
    for bits in range(65):
        mask = np.uint64((1 << bits) - 1)
        assert number(mask) == count_ones(mask) == bits
