"""An exception that a signal handler raises while a kernel fills large arrays comes out of the call."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph, solve
from partitioner.methods.dp import lattice as ideals
from partitioner.problem.contract import contract

BRANCHES = 17  # side by side, so that there are 2**17 ideals
SOON = 0.01  # seconds after a kernel was called


class FromHandlerError(Exception):
    """What the user's signal handler raises."""


def raises(number: int, frame: FrameType | None) -> None:
    raise FromHandlerError


@pytest.fixture
def alarm(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """A list of the calls of the kernel that enumerates, in the first of which the alarm goes off."""
    ideals.ideal_lattice(contract(parallel(2), Devices.accelerated(2)), 100, 100)  # loads the kernel
    kernel = ideals._enumerate
    calls: list[bool] = []

    def timed(*words: Any) -> Any:
        if not calls:
            signal.setitimer(signal.ITIMER_REAL, SOON)
        calls.append(True)
        return kernel(*words)

    monkeypatch.setattr(ideals, "_enumerate", timed)
    before = signal.signal(signal.SIGALRM, raises)
    yield calls
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def parallel(count: int) -> Graph:
    """A source, nodes that nothing orders, and a sink; each tensor has a cost."""
    inner = range(1, count + 1)
    edges = [*((0, v) for v in inner), *((v, count + 1) for v in inner)]
    rng = np.random.default_rng(0)
    return Graph.from_arrays(
        {"accelerator": rng.uniform(1, 2, count + 2)}, edges, rng.uniform(0.1, 1, 2 * count)
    )


def test_enumerating_ideals(alarm: list[bool]) -> None:
    with pytest.raises(FromHandlerError):
        solve(parallel(BRANCHES), Devices.accelerated(3))
    assert alarm


def test_ideals_grow_beyond_the_first_room() -> None:
    """2**11 subsets of the inner nodes, with the sink or before the source."""
    problem = contract(parallel(11), Devices.accelerated(3))
    lattice = ideals.ideal_lattice(problem, 10**6, 10**6)
    assert lattice is not None and problem.n == 13
    assert lattice.size == 2**11 + 2 > ideals.ROOM
    assert ideals.ideal_lattice(problem, 2**11 + 1, 10**6) is None
    assert ideals.ideal_lattice(problem, 2**11 + 2, 10**6) is not None
    assert ideals.ideal_lattice(problem, 10**6, len(lattice.node) - 1) is None
