"""The local search in a thread ends when it is told to, also where its kernels are not compiled yet."""

from __future__ import annotations

import threading

import pytest

from partitioner import Devices
from partitioner.base.clock import METER
from partitioner.methods.ip.descent import Descent
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.method import Settings
from tests.methods.ip.cases import hard_graph, problem_of


@pytest.mark.parametrize(("leaving", "compiled"), [(False, ["kernel"]), (True, [])])
def test_nothing_is_compiled_for_a_descent_that_is_to_leave(
    leaving: bool, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def compile_kernel(descent: Descent) -> None:
        try:
            METER.begin()
            done.append("kernel")
        finally:
            METER.end()

    monkeypatch.setattr(Descent, "_run", compile_kernel)
    descent = Descent(SplitSearch(problem_of(hard_graph(6), Devices.accelerated(2)), Settings(), 0.0))
    descent.leaving = leaving
    thread = threading.Thread(target=descent.run)
    thread.start()
    thread.join()
    assert done == compiled
