"""What single arguments must be, and what is said of those that are not."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from tests.robustness.test_broken_arguments import line


def test_no_more_workers_than_cores() -> None:
    """A worker may be a process."""
    with pytest.raises(
        pt.OptionError, match="workers = 1025: must be an integer of at least 1 and at most 1,024"
    ):
        pt.solve(line(), pt.Devices.accelerated(2), workers=1025)
    plan = pt.solve(line(), pt.Devices.accelerated(2), workers=1024)
    assert any(note.startswith("workers = 1,024: only ") for note in plan.notes)


@pytest.mark.parametrize("stop", [object(), np.zeros(2), "stop", type(threading.Event())])
def test_a_stop_that_cannot_be_asked(stop: Any) -> None:
    for verb in (pt.solve, pt.compare_methods):
        with pytest.raises(
            pt.OptionError, match=r"stop = .*must be a threading\.Event, or have a method is_set"
        ):
            verb(line(), pt.Devices.accelerated(2), stop=stop)


@pytest.mark.parametrize("cost", [None, 1.0, float("nan")])
def test_a_graph_whose_costs_have_no_shape(cost: Any) -> None:
    graph = line()
    with pytest.raises(pt.WorkloadError, match="cost"):
        dataclasses.replace(graph, cost=cost)


def test_edges_of_different_lengths() -> None:
    with pytest.raises(pt.WorkloadError, match="edges"):
        dataclasses.replace(line(), edges=[[1.0, 2.0], [3.0]])  # type: ignore[arg-type]


@pytest.mark.parametrize("transfers", [np.zeros(0), np.zeros(2)])
def test_transfers_that_are_an_array(transfers: Any) -> None:
    with pytest.raises(pt.WorkloadError, match="transfers"):
        pt.split_operations(line(), pt.Devices.accelerated(2), {}, transfers=transfers)


@pytest.mark.parametrize("constraints", [5, "stages", {}, np.zeros(2)])
def test_constraints_of_a_plan_that_are_none(constraints: Any) -> None:
    graph, devices = line(), pt.Devices.accelerated(2)
    plan = pt.solve(graph, devices)
    for verb in (pt.evaluate, pt.certify):
        with pytest.raises(pt.OptionError, match=r"constraints = .*: must be a partitioner.Constraints"):
            verb(graph, devices, plan, constraints=constraints)


def test_numbers_that_python_cannot_print() -> None:
    with pytest.raises(
        pt.WorkloadError, match="stages = a very large integer: must be an integer of at least 1"
    ):
        pt.Constraints(stages=10**5000)
    with pytest.raises(pt.WorkloadError, match="name = a very large integer: must be a text"):
        pt.Devices((pt.DeviceKind(10**5000, 1),))  # type: ignore[arg-type]
