"""Makespans worked out by hand, with every number in the docstring; errors of execution orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from partitioner import DeviceKind, Devices, Evaluation, Graph, Level, OptionError, Transfers, WorkloadError
from partitioner import evaluate as evaluated

NAMES = ("gpu0", "gpu1", "gpu2", "cpu0")
FOUR = Devices((DeviceKind("gpu", 3), DeviceKind("cpu", 1, pays_communication=False)))
SHARED = Transfers(contention=True)


def network(
    time: Sequence[float], edges: Sequence[tuple[int, int]] = (), cost: float | Sequence[float] = 2.0
) -> Graph:
    return Graph.from_arrays({"gpu": time, "cpu": time}, edges, cost)


def evaluate(
    graph: Graph, home: Sequence[int], transfers: Transfers | None = None, order: Sequence[Any] | None = None
) -> Evaluation:
    """Node i on device ``NAMES[home[i]]``."""
    placement = {i: NAMES[d] for i, d in enumerate(home)}
    return evaluated(graph, FOUR, placement, "makespan", transfers=transfers, execution_order=order)


def times(found: Evaluation) -> dict[Any, tuple[float, float]]:
    """Start and finish of every node."""
    assert found.schedule is not None
    return {run.nodes[0]: (run.start, run.finish) for run in found.schedule.entries}


def critical(found: Evaluation) -> list[Any]:
    assert found.schedule is not None
    return [found.schedule.entries[i].nodes[0] for i in found.schedule.critical_path]


def test_transfers_do_not_hinder_one_another_without_contention() -> None:
    """0 (gpu0) ends at 3; both tensors leave then and take 2: 1 (gpu1) runs 5-6, 2 (gpu2) 5-9."""
    found = evaluate(network([3, 1, 4], [(0, 1), (0, 2)], [2, 2]), [0, 1, 2])
    assert times(found) == {0: (0, 3), 1: (5, 6), 2: (5, 9)}
    assert found.value == 9 and critical(found) == [0, 2]
    sent = {load.name: (sum(load.transfer_in), sum(load.transfer_out)) for load in found.loads}
    assert sent == {"gpu0": (0, 4), "gpu1": (2, 0), "gpu2": (2, 0), "cpu0": (0, 0)}


def test_the_sender_sends_one_tensor_at_a_time() -> None:
    """0 ends at 3; the first edge's tensor is on its way 3-5, the other one 5-7: 2 runs 7-11."""
    found = evaluate(network([3, 1, 4], [(0, 1), (0, 2)]), [0, 1, 2], SHARED)
    assert times(found) == {0: (0, 3), 1: (5, 6), 2: (7, 11)}
    turned = evaluate(network([3, 1, 4], [(0, 2), (0, 1)]), [0, 1, 2], SHARED)
    assert times(turned) == {0: (0, 3), 1: (7, 8), 2: (5, 9)}


def test_the_receiver_receives_one_tensor_at_a_time() -> None:
    """0 (gpu0) ends at 1, 1 (gpu1) at 2; gpu2 receives 1-3 and then, though sent at 2, 3-5: 2 runs 5-6."""
    found = evaluate(network([1, 2, 1], [(0, 2), (1, 2)]), [0, 1, 2], SHARED)
    assert times(found)[2] == (5, 6) and critical(found) == [1, 2]
    assert times(evaluate(network([1, 2, 1], [(0, 2), (1, 2)]), [0, 1, 2]))[2] == (4, 5)


def test_one_channel_serves_both_directions() -> None:
    """gpu1 receives 0's tensor 1-3; 1, its own, ended at 2 and leaves 3-5 for gpu2: 3 runs 5-6, 2 3-4."""
    found = evaluate(network([1, 2, 1, 1], [(0, 2), (1, 3)]), [0, 1, 1, 2], SHARED)
    assert times(found) == {0: (0, 1), 1: (0, 2), 2: (3, 4), 3: (5, 6)}


def test_a_senders_channel_is_free_when_it_has_sent_though_the_receiver_is_late() -> None:
    """A transfer holds the two ends of a link at different times.

    gpu2 receives from gpu0 0-4 (0 takes no time). 1 (gpu1) ends at 1 and sends to gpu2 first: gpu1's
    channel is taken 1-5, gpu2 receives 4-8. Then gpu1 sends to cpu0, which takes 0.25 * 4 = 1, from 5 to 6.
    """
    graph = network([0, 1, 1, 1, 1], [(0, 2), (1, 3), (1, 4)], 4)
    found = evaluate(
        graph, [0, 1, 2, 2, 3], Transfers([[0, 1, 1, 0], [1, 0, 1, 0.25], [1, 1, 0, 0], [0] * 4], 0, True)
    )
    assert times(found) == {0: (0, 0), 1: (0, 1), 2: (4, 5), 3: (8, 9), 4: (6, 7)}


def test_two_readers_on_one_device_cost_one_transfer() -> None:
    """A tensor is sent once for each device.

    0 ends at 1, its tensor is on gpu1 at 3 for 1 (3-4) and 2 (4-5). With costs 2 and 3 it makes two
    tensors, which arrive at 3 and, after one another, at 6: 2 runs 6-7.
    """
    found = evaluate(network([1, 1, 1], [(0, 1), (0, 2)]), [0, 1, 1], SHARED)
    assert times(found) == {0: (0, 1), 1: (3, 4), 2: (4, 5)}
    assert sum(found.loads[0].transfer_out) == 2
    two = evaluate(network([1, 1, 1], [(0, 1), (0, 2)], [2, 3]), [0, 1, 1], SHARED)
    assert times(two) == {0: (0, 1), 1: (3, 4), 2: (6, 7)}
    assert sum(two.loads[0].transfer_out) == 5


def test_an_intercept_counts_once_a_transfer() -> None:
    """0 ends at 1; the tensor of 2 takes 0.5 * 2 + 3 = 4: 1 runs 5-6; on the same device it runs 1-2."""
    line = Transfers(slope=0.5, intercept=3)
    assert times(evaluate(network([1, 1], [(0, 1)]), [0, 1], line))[1] == (5, 6)
    assert times(evaluate(network([1, 1], [(0, 1)]), [0, 0], line))[1] == (1, 2)


def test_links_between_servers_are_slower() -> None:
    """0 on gpu0 ends at 1; to gpu1 in the same server the tensor takes 2, to gpu2 in the other 3 * 2 = 6."""
    devices = Devices((DeviceKind("gpu", 4),), levels=(Level("server", {"gpu": 2}, 3.0),))
    graph = network([1, 1, 1], [(0, 1), (0, 2)])
    found = evaluated(graph, devices, {0: "gpu0", 1: "gpu1", 2: "gpu2"}, "makespan")
    assert times(found) == {0: (0, 1), 1: (3, 4), 2: (7, 8)}


def test_the_dearer_end_of_a_link_sets_the_price() -> None:
    """0 on cpu0 ends at 1; to gpu0 its tensor takes 2, as the gpu pays; to cpu1 nothing."""
    devices = Devices((DeviceKind("gpu", 1), DeviceKind("cpu", 2, pays_communication=False)))
    graph = network([1, 1, 1], [(0, 1), (0, 2)])
    found = evaluated(graph, devices, {0: "cpu0", 1: "gpu0", 2: "cpu1"}, "makespan", transfers=SHARED)
    assert times(found) == {0: (0, 1), 1: (3, 4), 2: (1, 2)}


def test_without_an_order_what_is_ready_first_runs_first() -> None:
    """On gpu1: 1 is ready at 1 + 2 = 3, 2 at 0. 2 runs 0-5, 1 5-6, though 1 stands first in the file."""
    graph = network([1, 1, 5], [(0, 1)])
    assert times(evaluate(graph, [0, 1, 1])) == {0: (0, 1), 1: (5, 6), 2: (0, 5)}
    given = evaluate(graph, [0, 1, 1], order=[0, 1, 2])
    assert times(given) == {0: (0, 1), 1: (3, 4), 2: (4, 9)} and critical(given) == [0, 1, 2]


def test_equally_ready_ones_run_in_the_order_of_the_file() -> None:
    """On cpu0 links are free: 3 and 4 are ready when 0 and 1 end, both at 1; 2 holds cpu0 until 1 as well.

    3, which reads of 1, stands first and runs 1-2, though 0, whose reader 4 is, ends first by the file.
    """
    free = Transfers(0.0)
    graph = network([1, 1, 1, 1, 1], [(1, 3), (0, 4)])
    assert times(evaluate(graph, [0, 1, 3, 3, 3], free)) == {
        0: (0, 1), 1: (0, 1), 2: (0, 1), 3: (1, 2), 4: (2, 3),
    }  # fmt: skip


def test_a_node_without_time_comes_before_what_waits_for_it_in_the_schedule() -> None:
    """On gpu0: 0 runs 0-5; 2, ready at 4 and 0 long, then 1, ready at 5, though 1 stands first."""
    graph = network([5, 1, 0, 3, 4], [(3, 1), (4, 2)], [2, 0])
    found = evaluate(graph, [0, 0, 0, 1, 2])
    assert times(found) == {0: (0, 5), 1: (5, 6), 2: (5, 5), 3: (0, 3), 4: (0, 4)}
    assert found.schedule is not None
    waits = [run.waits_for for run in found.schedule.entries]
    assert all(before is None or before < i for i, before in enumerate(waits))
    assert critical(found) == [0, 2, 1]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1], "execution order: node = 2: is missing"),
        ([0, 1, 2, 3], "execution order: node = 3: is not the id of a node of the graph"),
        ([0, 1, 2, 1], "execution order: node = 1: is listed more than once"),
        ([0, 1, [2]], "execution order: node = [2]: is not the id of a node of the graph"),
        (7, "execution order: 7: must be a sequence of node ids"),
        ([1, 0, 2], "execution order: node = 1: must come after 0"),
    ],
)
def test_bad_execution_orders_are_told(order: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        evaluate(network([1, 1, 1], [(0, 1)]), [0, 0, 0], order=order)
    assert message in str(caught.value)


def test_pipelines_mean_nothing_for_makespans() -> None:
    with pytest.raises(OptionError, match="microbatches: must not be given for objective 'makespan'"):
        evaluated(network([1]), FOUR, {0: "gpu0"}, "makespan", microbatches=2)


def test_memory_is_held_from_the_start() -> None:
    """Two nodes of 3 on a device of 5 break its limit, whenever they run."""
    graph = Graph.from_arrays({"gpu": [1, 1]}, size=3.0)
    small = Devices((DeviceKind("gpu", 2, memory=5.0),))
    assert evaluated(graph, small, {0: "gpu0", 1: "gpu0"}, "makespan").violations
    assert not evaluated(graph, small, {0: "gpu0", 1: "gpu1"}, "makespan").violations


@pytest.mark.parametrize(
    ("objective", "options", "message"),
    [
        ("throughput", {"transfers": SHARED}, "must not be given for objective 'throughput'"),
        ("latency", {"execution_order": [0, 1]}, "must not be given for objective 'latency'"),
        ("makespan", {"transfers": "fast"}, "transfers = 'fast': must be a partitioner.Transfers"),
        ("makespan", {"schedule": "1f1b"}, "schedule: must not be given for objective 'makespan'"),
    ],
)
def test_options_without_a_meaning_are_refused(objective: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        evaluated(network([1, 1], [(0, 1)]), FOUR, dict.fromkeys(range(2), "gpu0"), objective, **options)
