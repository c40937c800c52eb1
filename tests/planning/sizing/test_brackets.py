"""What a search leaves open is a bracket, and what it has no meaning for is refused."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import partitioner as pt
from partitioner.planning.sizing import trial
from partitioner.planning.solve import solve


def line() -> pt.Graph:
    """Eight nodes of time and size 1 in a row."""
    return pt.Graph.from_arrays({"gpu": [1.0] * 8}, [(i, i + 1) for i in range(7)], size=1.0)


def gpus(count: int, **fields: Any) -> pt.Devices:
    return pt.Devices((pt.DeviceKind("gpu", count),), **fields)


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> list[pt.Devices]:
    """Searches on 4 devices, and for memory of 1.5 to 2, find nothing; returns the pools that were tried."""
    tried: list[pt.Devices] = []

    def finds(graph: pt.Graph, devices: pt.Devices, objective: str, **given: Any) -> pt.Plan:
        tried.append(devices)
        (kind,) = devices.kinds
        if kind.count == 4 or (kind.memory is not None and 1.5 <= kind.memory < 2):
            raise pt.NoPlanFound("no plan found (time_limit)")
        return solve(graph, devices, objective, **given)

    monkeypatch.setattr(trial, "solve", finds)
    return tried


def test_a_number_without_an_answer_is_not_proven_too_small(undecided: list[pt.Devices]) -> None:
    """On 8 devices 1.0, on 6 and 5 devices 2.0; 4 is open, and numbers below it are not tried."""
    found = pt.fewest_devices(line(), gpus(8), 2.0)
    assert (found.count, found.bound, found.proven) == (5, 1, False)
    assert "at least 1 are needed" in found.summary(200) and "4 devices: left open" in found.summary(200)
    assert [devices.kinds[0].count for devices in undecided] == [8, 4, 6, 5]


def test_memory_without_an_answer_leaves_a_bracket(undecided: list[pt.Devices]) -> None:
    """Seven devices hold 2 and less than that is open; half of it is excluded."""
    found = pt.least_memory(line(), gpus(7))
    assert found.memory == 2.0 and 1.0 <= found.bound < 1.5 and not found.proven
    assert "are needed" in found.summary(200)


def test_a_stopped_search_returns_what_it_has() -> None:
    stop = threading.Event()
    found = pt.fewest_devices(line(), gpus(8), 2.0, on_progress=lambda _: stop.set(), stop=stop)
    assert found.count <= 8 and found.plan.value <= 2.0


def test_memory_within_a_gap() -> None:
    found = pt.least_memory(line(), gpus(3), gap=0.5)
    assert found.bound >= 0.5 * found.memory and found.memory >= 3.0


def test_other_kinds_are_all_there_and_the_kind_must_be_clear() -> None:
    graph = pt.Graph.from_arrays({"a": [1.0] * 4, "b": [1.0] * 4}, [(i, i + 1) for i in range(3)], size=1.0)
    devices = pt.Devices((pt.DeviceKind("a", 3, 1.0), pt.DeviceKind("b", 2, 1.0)))
    with pytest.raises(pt.OptionError, match="kind = None: must be one of a, b"):
        pt.fewest_devices(graph, devices, 2.0)
    found = pt.fewest_devices(graph, devices, 2.0, kind="a")
    assert (found.kind, found.count, found.plan.hardware.kinds[1].count) == ("a", 2, 2)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_time_per_sample": -1.0}, "max_time_per_sample = -1.0: must be a positive number"),
        ({"objective": "capacity"}, "objective = 'capacity': must be one whose value is a time"),
        ({"constraints": pt.Constraints(use_all_devices=True)}, "use_all_devices = True: must be False"),
        (
            {"devices": gpus(4, levels=(pt.Level("host", {"gpu": 2}, 2.0),))},
            "levels of devices: must be empty",
        ),
        ({"max_time_per_sample": 0.5}, "the least time per sample on 4 devices of kind gpu is 2"),
    ],
)
def test_what_has_no_answer_is_refused(given: dict[str, Any], words: str) -> None:
    call: dict[str, Any] = {"graph": line(), "devices": gpus(4), "max_time_per_sample": 2.0} | given
    with pytest.raises(pt.PartitionerError, match=words):
        pt.fewest_devices(**call)
