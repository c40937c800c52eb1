"""Without an execution order operators run as in Baechi's simulator: transfers leave as soon as they can."""

from __future__ import annotations

from collections.abc import Mapping

import partitioner as pt


def spans(
    time: Mapping[str, float], edges: Mapping[str, float], place: str, devices: int
) -> dict[str, tuple[float, float]]:
    """When each operator runs; `place` is the number of each one's device, links take their costs."""
    names = list(time)
    graph = pt.Graph.from_arrays(
        {"accelerator": list(time.values())},
        [(names.index(e[0]), names.index(e[1])) for e in edges],
        list(edges.values()),
    )
    cluster = pt.Devices.accelerated(devices)
    evaluation = pt.evaluate(
        graph,
        cluster,
        {v: cluster.names[int(d)] for v, d in enumerate(place)},
        "makespan",
        transfers=pt.Transfers(slope=1.0, contention=True),
    )
    assert evaluation.schedule is not None
    runs = {names[int(run.nodes[0])]: (run.start, run.finish) for run in evaluation.schedule.entries}
    assert evaluation.value == max(end for _, end in runs.values())
    return runs


def test_a_tensor_is_pushed_once_to_a_device_and_senders_queue() -> None:
    """A and b on device 0, their readers on device 1.

    a runs to 1; its one tensor (c and d read it) is sent from 1 to 3. b runs to 2; its tensor waits for the
    channels until 3 and arrives at 4. c and d are ready at 3: c first, by the order of the file, 3 to 4,
    then d, ready before e, 4 to 5; e from 5 to 6.
    """
    time = dict.fromkeys("abcde", 1.0)
    runs = spans(time, {"ac": 2.0, "ad": 2.0, "be": 1.0}, "00111", 2)
    assert runs == {"a": (0, 1), "b": (1, 2), "c": (3, 4), "d": (4, 5), "e": (5, 6)}


def test_receivers_queue_and_senders_are_free_before() -> None:
    """A on device 0 and b on device 1 end at 1; both send to device 2, b also to device 3.

    a's tensor takes channels 0 and 2 from 1 to 4. b's leaves at 1, is received from 4 to 6, and takes its
    sender's channel to 3 only: the other one leaves then and is on device 3 at 4. c runs from 6 to 7, d from
    4 to 5.
    """
    time = dict.fromkeys("abcd", 1.0)
    runs = spans(time, {"ac": 3.0, "bc": 2.0, "bd": 1.0}, "0123", 4)
    assert runs == {"a": (0, 1), "b": (0, 1), "c": (6, 7), "d": (4, 5)}


def test_what_is_ready_first_runs_first() -> None:
    """On device 1 d's input, from c, is there at 0.5 + 0.5 = 1; b's, from a, at 2 + 1 = 3.

    e, ready from the start, runs to 2; then d, ready at 1, to 5; then b, ready at 3, though b comes first in
    the file.
    """
    time = {"a": 2.0, "b": 1.0, "c": 0.5, "d": 3.0, "e": 2.0}
    runs = spans(time, {"ab": 1.0, "cd": 0.5}, "01211", 3)
    assert runs == {"a": (0, 2), "c": (0, 0.5), "e": (0, 2), "d": (2, 5), "b": (5, 6)}


def test_tensors_are_pushed_though_their_reader_waits_for_others() -> None:
    """Eagerly: a's tensor to c leaves at 1, long before c's other input, b, ends at 5; c starts at 5.

    Sent only when c is at its turn it could not be there before 5 + 3.
    """
    runs = spans({"a": 1.0, "b": 5.0, "c": 1.0}, {"ac": 3.0, "bc": 1.0}, "011", 2)
    assert runs["c"] == (5, 6)
