"""The latency is that of the paper's Appendix A, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from partitioner import Devices, Graph, OptionError, evaluate
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.schedule import Run, Schedule
from tests.instances import chain, two_tensors

ACCELERATORS = Devices.accelerated(3, cpus=2)


def graph_of(edges: str, time: Mapping[str, float], cost: Any = 1.0, **options: Any) -> Graph:
    """A graph from edges like ``"ab bc"`` whose nodes take as long on a CPU as on an accelerator."""
    times = list(time.values())
    pairs = [(edge[0], edge[1]) for edge in edges.split()]
    return Graph.from_arrays({"accelerator": times, "cpu": times}, pairs, cost, ids=list(time), **options)


def on(graph: Graph, devices: Devices = ACCELERATORS, /, **places: Any) -> Evaluation:
    """The latency where ``accelerator0="ab"`` has nodes a and b; other words are options."""
    parts = {name: places.pop(name) for name in devices.names if name in places}
    placement = {node: name for name, nodes in parts.items() for node in nodes}
    return evaluate(graph, devices, placement, "latency", **places)


def schedule_of(evaluation: Evaluation) -> Schedule:
    """The schedule, which must be there."""
    assert evaluation.schedule is not None
    return evaluation.schedule


def times(evaluation: Evaluation) -> dict[str, tuple[float, float]]:
    """Start and finish of every entry by its nodes."""
    entries = schedule_of(evaluation).entries
    return {"".join(map(str, run.nodes)): (run.start, run.finish) for run in entries}


def test_outputs_are_there_at_the_end_of_the_subgraph_and_not_earlier() -> None:
    """Nodes a (1) and b (10) run together; c (2) needs a alone, yet starts after a, b and one transfer."""
    found = on(graph_of("ac", {"a": 1, "b": 10, "c": 2}), accelerator0="ab", accelerator1="c")
    assert times(found) == {"ab": (0, 12), "c": (12, 15)}
    assert found.value == 15 and found.feasible


def test_a_subgraph_starts_with_its_last_input() -> None:
    """Node x needs nothing, but y in the same subgraph waits for z (5 on a CPU)."""
    found = on(graph_of("zy", {"x": 3, "y": 1, "z": 5}), accelerator0="xy", cpu0="z")
    assert times(found) == {"z": (0, 5), "xy": (5, 10)}


def test_a_tensor_is_fetched_once_and_sent_once() -> None:
    """Output s (cost 2) goes to a, b on one accelerator and c on another: sent once, fetched once by each."""
    graph = graph_of("sa sb sc", {"s": 1, "a": 1, "b": 1, "c": 1}, 2.0)
    found = on(graph, accelerator0="s", accelerator1="ab", accelerator2="c")
    assert times(found) == {"s": (0, 3), "ab": (3, 7), "c": (3, 6)}


def test_tensors_of_different_cost_are_sent_apart() -> None:
    """Node u (1) sends 1 to v (4) and 5 to w (4), which is on another accelerator or not."""
    graph, devices = two_tensors().graph, Devices.accelerated(3)
    places = {"u": "accelerator0", "v": "accelerator1", "w": "accelerator2"}
    assert evaluate(graph, devices, places, "latency").value == 7 + 9
    assert evaluate(graph, devices, places | {"w": "accelerator0"}, "latency").value == 1 + 4 + 1 + 5


def test_subgraphs_of_one_accelerator_keep_no_state() -> None:
    """Nodes a and d on one accelerator around c on the CPU: a's output goes out once and comes back once."""
    graph = graph_of("ac cd ad", {"a": 1, "c": 2, "d": 3}, [4, 5, 4])
    found = on(graph, accelerator0="ad", cpu0="c", subgraphs_per_accelerator=2)
    assert times(found) == {"a": (0, 5), "c": (5, 7), "d": (7, 7 + 4 + 5 + 3)}
    first = found.loads[0]
    assert (first.load, first.transfer_in, first.transfer_out) == (17, (9, 0), (4, 0))
    assert found.feasible


def test_a_device_runs_its_subgraphs_one_after_another() -> None:
    """Both a and b could start at once; b has index 0 and goes first, or index 1 and waits."""
    graph = graph_of("", {"a": 2, "b": 3})
    first = on(graph, accelerator0="ab", subgraphs={"a": 1, "b": 0}, subgraphs_per_accelerator=2)
    assert times(first) == {"b": (0, 3), "a": (3, 5)}
    assert [run.index for run in schedule_of(first).entries] == [0, 1]
    second = on(graph, accelerator0="ab", subgraphs={"a": 0, "b": 1}, subgraphs_per_accelerator=2)
    assert times(second) == {"a": (0, 2), "b": (2, 5)}


def test_the_next_subgraph_waits_for_the_device_even_if_its_input_is_there() -> None:
    """Index 0 on the first accelerator waits for z (9); index 1 could run at once but comes after it."""
    graph = graph_of("zy", {"z": 9, "y": 1, "x": 1})
    subgraphs = {"y": 0, "x": 1}
    found = on(graph, accelerator0="xy", cpu0="z", subgraphs=subgraphs, subgraphs_per_accelerator=2)
    assert times(found) == {"z": (0, 9), "y": (9, 11), "x": (11, 12)}


def test_the_forward_subgraphs_of_a_device_come_before_its_backward_ones() -> None:
    """Backward b needs nothing, but runs after forward f, which waits for z; each pays for itself."""
    graph = graph_of("zf zb", {"z": 4, "f": 2, "b": 1}, backward=[False, False, True])
    found = on(graph, accelerator0="fb", cpu0="z")
    assert times(found) == {"z": (0, 4), "f": (4, 7), "b": (7, 9)}
    assert found.feasible and found.loads[0].transfer_in == (1, 1)
    assert [run.backward for run in schedule_of(found).entries] == [False, False, True]


def test_cpus_have_as_many_cores_as_needed_and_pay_nothing() -> None:
    """Nodes a (2), b (3) and c (4) at once on one CPU, then d (1); it is busy for 5."""
    found = on(graph_of("ad bd cd", {"a": 2, "b": 3, "c": 4, "d": 1}), cpu0="abcd")
    assert times(found) == {"a": (0, 2), "b": (0, 3), "c": (0, 4), "d": (4, 5)}
    cpu = next(entry for entry in found.loads if entry.name == "cpu0")
    assert (cpu.load, cpu.compute, cpu.transfer_in) == (5, (10, 0), (0, 0))


def test_limited_cpus_run_one_node_each_on_any_of_their_kind() -> None:
    """On two cores: the long path c (1), d (5) first, then b (4), then a (3) when c is done with its core."""
    graph = graph_of("cd", {"a": 3, "b": 4, "c": 1, "d": 5})
    found = on(graph, cpu0="abcd", limited_cpus=True)
    assert times(found) == {"c": (0, 1), "b": (0, 4), "d": (1, 6), "a": (4, 7)}
    assert {run.nodes: run.device for run in schedule_of(found).entries} == {
        ("c",): "cpu0",
        ("d",): "cpu0",
        ("b",): "cpu1",
        ("a",): "cpu1",
    }
    assert [entry.load for entry in found.loads[3:]] == [6, 7]
    assert on(graph, cpu0="ac", cpu1="bd", limited_cpus=True).schedule == found.schedule


def test_cores_are_given_out_when_all_that_ends_at_a_moment_is_known() -> None:
    """Nodes a, b (1) end together; d, f (5) after b have longer paths than c (2) after a."""
    graph = graph_of("ac bd bf", {"a": 1, "b": 1, "c": 2, "d": 5, "f": 5})
    found = on(graph, cpu0="abcdf", limited_cpus=True)
    assert times(found) == {"a": (0, 1), "b": (0, 1), "d": (1, 6), "f": (1, 6), "c": (6, 8)}


def test_a_cpu_that_does_not_exist_is_no_core() -> None:
    """Of two CPUs one is real; where none is, the value is that of those that were named."""
    graph, places = graph_of("", {"a": 2, "b": 3}), {"a": "cpu0", "b": "cpu1"}
    one = evaluate(graph, Devices.accelerated(1, cpus=1), places, "latency", limited_cpus=True)
    none = evaluate(graph, Devices.accelerated(1), places, "latency", limited_cpus=True)
    assert (one.value, none.value) == (5, 3)
    assert "cpu1 does not exist: there are 1 of kind accelerator, 1 of kind cpu" in one.violations
    assert len(none.violations) == 2


def test_a_node_that_waited_for_a_core_names_who_had_it() -> None:
    found = on(graph_of("", {"a": 2, "b": 1}), Devices.accelerated(0, cpus=1), cpu0="ab", limited_cpus=True)
    assert [run.waits_for for run in schedule_of(found).entries] == [None, 0]
    assert schedule_of(found).critical_path == (0, 1)


@pytest.mark.parametrize(("communication", "length"), [("sequential", 9), ("overlapped", 5), ("duplex", 4)])
def test_transfers_and_processing_add_up_as_for_loads(communication: str, length: float) -> None:
    """Node b takes 4, fetches 2 and sends 3 between two CPU nodes of 1."""
    devices = Devices.accelerated(1, cpus=1, communication=communication)
    found = on(graph_of("ab bc", {"a": 1, "b": 4, "c": 1}, [2, 3]), devices, accelerator0="b", cpu0="ac")
    assert found.value == 1 + length + 1
    assert found.loads[0].load == length


def test_an_entry_says_all_of_a_subgraph() -> None:
    found = on(graph_of("ab bc", {"a": 1, "b": 4, "c": 1}, [2, 3]), accelerator0="b", cpu0="a", cpu1="c")
    assert schedule_of(found) == Schedule(
        entries=(
            Run("cpu0", None, 0, 1, 0, 1, 0, ("a",)),
            Run("accelerator0", 0, 1, 10, 2, 4, 3, ("b",), waits_for=0),
            Run("cpu1", None, 10, 11, 0, 1, 0, ("c",), waits_for=1),
        ),
        critical_path=(0, 1, 2),
    )


def test_the_critical_path_goes_through_devices_too() -> None:
    """Subgraphs a (5) and b (1) share a device, b feeds c (1); d (3) is beside the path."""
    graph = graph_of("bc", {"a": 5, "b": 1, "c": 1, "d": 3})
    subgraphs = {"a": 0, "b": 1, "c": 0}
    found = on(graph, accelerator0="ab", accelerator1="c", cpu0="d", subgraphs=subgraphs)
    schedule = schedule_of(found)
    assert [schedule.entries[place].nodes for place in schedule.critical_path] == [("a",), ("b",), ("c",)]


def test_without_an_order_there_is_no_schedule() -> None:
    """With a -> b, c -> d each accelerator waits for the other; what each would take is still said."""
    graph = graph_of("ab cd", {"a": 1, "b": 2, "c": 3, "d": 4})
    found = on(graph, accelerator0="ad", accelerator1="bc")
    assert found.value == math.inf and found.schedule is None
    assert [entry.load for entry in found.loads[:2]] == [1 + 4 + 2, 2 + 3 + 2]
    assert not found.feasible


def test_the_other_rules_hold_as_well() -> None:
    graph = graph_of("ab", {"a": 1, "b": 2}, size=[3.0, 3.0], color=["x", "x"])
    found = on(graph, Devices.accelerated(2, memory=2.0), accelerator0="a", accelerator1="b")
    assert found.value == 5
    assert found.violations == (
        "accelerator0 holds 3, its memory is 2",
        "accelerator1 holds 3, its memory is 2",
        "colour class 'x' is on two devices: node 'a' on accelerator0, node 'b' on accelerator1",
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"subgraphs_per_accelerator": 0}, "subgraphs_per_accelerator = 0: must be an integer of at least 1"),
        ({"subgraphs_per_accelerator": True}, "subgraphs_per_accelerator = True"),
        ({"subgraphs_per_accelerator": 1.0}, "subgraphs_per_accelerator = 1.0"),
        ({"limited_cpus": 1}, "limited_cpus = 1: must be True or False"),
        ({"objective": "gpipe", "limited_cpus": True}, "must not be given for objective 'gpipe'"),
        ({"objective": "throughput", "subgraphs": {}}, "must not be given for objective 'throughput'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], text: str) -> None:
    placement = dict.fromkeys(range(3), "accelerator0")
    with pytest.raises(OptionError, match=text):
        evaluate(chain().graph, chain().devices, placement, **{"objective": "latency", **options})
