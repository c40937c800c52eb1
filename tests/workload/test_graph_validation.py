"""A graph and devices that do not fit together are told apart from those that do, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner import DeviceKind, Devices, Graph, InfeasibleError, Workload, WorkloadError, solve
from partitioner.workload.device_validation import number_rule
from partitioner.workload.graph_validation import device_flaws, graph_flaws, size_flaws
from tests.instances import INFEASIBLE, SOLVABLE, Instance


@pytest.mark.parametrize("make", [*SOLVABLE, *INFEASIBLE])
def test_sound_workloads_have_no_flaw(make: Any) -> None:
    """To pack badly is no flaw: only what no single device can take is."""
    instance: Instance = make()
    assert graph_flaws(instance.graph) == []
    assert (
        device_flaws(instance.graph, instance.devices) == size_flaws(instance.graph, instance.devices) == []
    )


def one_flaw(graph: Graph, devices: Devices) -> str:
    """The only flaw of the pair as text."""
    flaws = device_flaws(graph, devices) or size_flaws(graph, devices)
    assert len(flaws) == 1
    return str(flaws[0])


def test_a_kind_without_times_is_a_flaw() -> None:
    graph = Graph.from_arrays({"gpu": [1.0], "npu": [1.0]})
    text = (
        "devices: kind = 'tpu': the graph has times only for gpu, npu; "
        '"times" of the kind can name one of these'
    )
    assert one_flaw(graph, Devices((DeviceKind("tpu", 1),))) == text


def test_a_kind_without_times_and_without_devices_is_none() -> None:
    graph = Graph.from_arrays({"gpu": [1.0]})
    assert device_flaws(graph, Devices((DeviceKind("gpu", 1), DeviceKind("tpu", 0)))) == []


def test_a_node_that_no_present_device_may_run_is_a_flaw() -> None:
    graph = Graph.from_arrays(
        {"gpu": [1.0, 1.0], "cpu": [1.0, 1.0]}, ids="ab", allowed={"gpu": [True, False]}
    )
    devices = Devices((DeviceKind("gpu", 2), DeviceKind("cpu", 0)))
    assert one_flaw(graph, devices) == "node 'b': allowed = ['cpu']: no device that may run it is present"


def test_a_node_larger_than_every_device_is_a_flaw() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0, 1.0]}, size=[5.0, 5.1])
    expected = "node 1: size = 5.1: larger than the memory of every device that may run it"
    assert one_flaw(graph, Devices.accelerated(2, memory=5.0)) == expected


def test_a_colour_class_larger_than_every_device_is_a_flaw() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 3}, size=2.0, color=["w", "w", "w"])
    expected = "colour class 'w': total size = 6.0: larger than the memory of every device that may run it"
    assert one_flaw(graph, Devices.accelerated(2, memory=5.0)) == expected


def test_a_colour_class_with_no_common_kind_is_a_flaw() -> None:
    allowed = {"gpu": [True, False], "npu": [False, True]}
    graph = Graph.from_arrays({"gpu": [1.0] * 2, "npu": [1.0] * 2}, color=[7, 7], allowed=allowed)
    devices = Devices((DeviceKind("gpu", 1), DeviceKind("npu", 1)))
    assert one_flaw(graph, devices) == "colour class 7: no device that is present may run all its nodes"


def test_memory_that_only_a_kind_that_may_not_run_it_has_does_not_help() -> None:
    """The roomy kind is not allowed, the allowed kind is not roomy."""
    graph = Graph.from_arrays({"gpu": [1.0], "cpu": [1.0]}, size=9.0, allowed={"cpu": False})
    devices = Devices((DeviceKind("gpu", 1, 5.0), DeviceKind("cpu", 1)))
    assert one_flaw(graph, devices).startswith("node 0: size = 9.0: larger than")


def test_a_size_at_the_limit_fits() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 3}, size=0.1, color=[1, 1, 1])
    assert (
        device_flaws(graph, Devices.accelerated(1, memory=0.3))
        == size_flaws(graph, Devices.accelerated(1, memory=0.3))
        == []
    )


def test_every_part_of_the_memory_counts_once() -> None:
    """Of two nodes that share a device 1 + 2 + 1 + 2 stay, and 3 is the larger workspace: 9."""
    graph = Graph.from_arrays(
        {"accelerator": [1.0] * 2}, size=1.0, parameters=2.0, workspace=[3.0, 2.0], color=["a", "a"]
    )
    assert (
        device_flaws(graph, Devices.accelerated(1, memory=9.0))
        == size_flaws(graph, Devices.accelerated(1, memory=9.0))
        == []
    )
    said = one_flaw(graph, Devices.accelerated(1, memory=8.0))
    assert said.startswith("colour class 'a': total memory = 9.0: larger than")


def test_classes_of_one_size_are_told_together() -> None:
    """As the many equal layers of a language model that a device cannot hold."""
    graph = Graph.from_arrays({"accelerator": [1.0] * 4}, size=[5, 5, 5, 9], color=list("abcd"))
    said = list(map(str, size_flaws(graph, Devices.accelerated(2, memory=3.0))))
    assert said[0].startswith("colour class 'a' and 2 more of this size: total size = 5.0: larger than")
    assert said[1].startswith("colour class 'd': total size = 9.0: larger than") and len(said) == 2


def test_a_workload_is_checked_when_made() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0]}, size=2.0)
    with pytest.raises(WorkloadError, match="larger than the memory"):
        Workload(graph, Devices.accelerated(1, memory=1.0))


@pytest.mark.parametrize(
    ("value", "rule"),
    [(-1.0, "of at least 0"), (float("inf"), "finite"), (float("nan"), "finite"), (1e150, "to 1e+100")],
)
def test_the_rule_fits_the_value(value: float, rule: str) -> None:
    assert rule in number_rule(value)


def test_what_fits_no_device_is_infeasible_too() -> None:
    """One node that is too large, and a sum that is, are one kind of error for who catches it."""
    large = Graph.from_arrays({"gpu": [1.0, 1.0]}, size=[5.0, 1.0])
    many = Graph.from_arrays({"gpu": [1.0, 1.0, 1.0]}, size=3.0)
    devices = Devices((DeviceKind("gpu", 2, memory=4.0),))
    for graph in (large, many):
        with pytest.raises(InfeasibleError):
            solve(graph, devices)
    with pytest.raises(WorkloadError, match="larger than the memory of every device"):
        Workload(large, devices)
