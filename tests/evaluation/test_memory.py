"""Memory under schedules, worked out by hand, and the time of a batch."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner import DeviceKind, Devices, Graph, OptionError, WorkloadError, evaluate

PARTS: dict[str, Any] = {
    "parameters": 2.0,
    "gradients": 3.0,
    "optimizer": 5.0,
    "activations": 7.0,
    "workspace": [11.0, 4.0] * 2,
}
SPLIT = {"a": "gpu1", "b": "gpu1", "c": "gpu0", "d": "gpu0"}


def line(memory: float | None = None) -> tuple[Graph, Devices]:
    """Nodes a to d in a row, each of size 1."""
    graph = Graph.from_arrays(
        {"gpu": [1.0, 2.0, 3.0, 4.0]}, [("a", "b"), ("b", "c"), ("c", "d")], ids="abcd", size=1.0, **PARTS
    )
    return graph, Devices((DeviceKind("gpu", 5, memory),))


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        ({}, 2 * 18 + 15, 2 * 18 + 15),
        ({"schedule": "inference"}, 18 + 4 + 14 + 11, 18 + 4 + 14 + 11),
        ({"schedule": "gpipe", "microbatches": 4}, 18 + 4 + 14 * 4 + 11, 18 + 4 + 14 * 4 + 11),
        ({"schedule": "1f1b"}, 18 + 4 + 14 * 2 + 11, 18 + 4 + 14 + 11),
        ({"schedule": "1f1b", "microbatches": 1}, 18 + 4 + 14 + 11, 18 + 4 + 14 + 11),
        ({"schedule": "1f1b_async"}, 18 + 4 * 2 + 14 * 2 + 11, 18 + 4 + 14 + 11),
        ({"schedule": "1f1b_async", "microbatches": 1}, 18 + 4 * 2 + 14 * 2 + 11, 18 + 4 + 14 + 11),
        ({"schedule": "1f1b", "replicas": {"gpu0": ["gpu2"]}}, 18 + 4 + 14 * 3 + 11, 18 + 4 + 14 + 11),
        ({"schedule": "1f1b", "replicas": {"gpu1": ["gpu2"]}}, 18 + 4 + 14 * 2 + 11, 18 + 4 + 14 + 11),
        (
            {"schedule": "gpipe", "microbatches": 5, "replicas": {"gpu1": ["gpu2"]}},
            18 + 4 + 14 * 3 + 11,
            18 + 4 + 14 * 5 + 11,
        ),
    ],
)
def test_memory_by_schedule(options: Any, first: float, last: float) -> None:
    """Two nodes a stage: 18 that count once, parameters 4, activations 14, workspace 11 or else 15.

    Without a schedule parameters and activations count once as well: 18 + 4 + 14 = 36 in all.
    """
    found = {entry.name: entry for entry in evaluate(*line(), SPLIT, **options).loads}
    assert (found["gpu1"].memory, found["gpu0"].memory) == (first, last)
    assert found["gpu2"].memory == {"gpu1": first, "gpu0": last, None: 0}[found["gpu2"].replica_of]


def test_what_does_not_fit_is_said_with_what_is_held() -> None:
    """Once for a stage and its copies."""
    graph, devices = line(memory=60)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"schedule": "1f1b"}, "gpu1 holds 61 (2 samples in flight), its memory is 60"),
        (
            {"schedule": "1f1b_async"},
            "gpu1 holds 65 (2 samples in flight, 2 versions of the weights), its memory is 60",
        ),
        (
            {"schedule": "1f1b", "replicas": {"gpu1": ["gpu2"]}},
            "gpu1 holds 61 (2 samples in flight), its memory is 60",
        ),
    ]
    for options, text in cases:
        assert evaluate(graph, devices, SPLIT, **options).violations == (text,)
    tight = evaluate(graph, Devices((DeviceKind("gpu", 2, 46.0),)), SPLIT, schedule="inference")
    assert tight.violations[0] == "gpu0 holds 47 (1 sample in flight), its memory is 46"
    assert evaluate(graph, devices, SPLIT).feasible


def test_all_parts_count_without_a_schedule() -> None:
    graph, devices = line(memory=50)
    assert evaluate(graph, devices, SPLIT).violations[0] == "gpu0 holds 51, its memory is 50"
    assert evaluate(graph, devices, SPLIT, "latency").violations[0] == "gpu0 holds 51, its memory is 50"


def test_a_batch_fills_and_drains_the_pipeline() -> None:
    """Stages of loads 3 and 7, five samples; with two devices for the last one 3, 3.5."""
    graph, devices = line()
    assert evaluate(graph, devices, SPLIT, "batch", microbatches=5).value == 3 + 7 + 4 * 7
    replicas = {"gpu0": ["gpu4"]}
    found = evaluate(graph, devices, SPLIT, "batch", microbatches=5, replicas=replicas)
    assert found.value == 3 + 3.5 + 4 * 3.5


@pytest.mark.parametrize(
    ("objective", "options", "text"),
    [
        ("batch", {}, "microbatches = None: objective 'batch' needs"),
        ("throughput", {"schedule": "gpipe"}, "microbatches = None: schedule 'gpipe' needs it"),
        ("throughput", {"schedule": "zb-h1"}, "schedule = 'zb-h1': must be one of inference, gpipe, 1f1b,"),
        ("throughput", {"schedule": ""}, "schedule = '': must be one of"),
        ("batch", {"microbatches": 0}, "microbatches = 0: must be an integer of at least 1"),
        ("throughput", {"microbatches": 2.5}, "microbatches = 2.5"),
        (
            "throughput",
            {"constraints": {"stages": 2}},
            "constraints = {'stages': 2}: must be a partitioner.Constraints",
        ),
    ],
)
def test_options_that_mean_nothing_are_refused(objective: str, options: Any, text: str) -> None:
    with pytest.raises(OptionError) as caught:
        evaluate(*line(), SPLIT, objective, **options)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "order", [["gpu0"], ["gpu0", "gpu1", "gpu2"], ["gpu0", "gpu0"], "gpu0", [0, 1], 7, ["gpu0", "gpu2"]]
)
def test_an_order_that_does_not_list_the_stages_is_refused(order: Any) -> None:
    with pytest.raises(WorkloadError, match=r"order: .*: must name the devices of the stages, gpu0, gpu1"):
        evaluate(*line(), SPLIT, order=order)


def test_an_order_against_the_edges_breaks_a_rule() -> None:
    found = evaluate(*line(), SPLIT, order=["gpu0", "gpu1"])
    assert found.violations == ("gpu1 comes after gpu0 in the order, but sends tensors to it",)
    assert evaluate(*line(), SPLIT, order=["gpu1", "gpu0"]).feasible


@pytest.mark.parametrize(
    "options",
    [{"schedule": "1f1b"}, {"objective": "batch", "microbatches": 2}, {"replicas": {"gpu0": ["gpu2"]}}],
)
def test_what_is_no_chain_is_no_pipeline(options: Any) -> None:
    torn = SPLIT | {"d": "gpu1"}
    found = evaluate(*line(), torn, **options)
    assert found.violations == ("the split is not a chain, so that its stages do not form a pipeline",)
    assert evaluate(*line(), torn).feasible


def test_the_order_decides_what_independent_stages_hold() -> None:
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, activations=1.0)
    devices = Devices((DeviceKind("gpu", 2),))
    for order, memory in ((["gpu0", "gpu1"], [2, 1]), (["gpu1", "gpu0"], [1, 2])):
        found = evaluate(graph, devices, {0: "gpu0", 1: "gpu1"}, order=order, schedule="1f1b")
        assert [entry.memory for entry in found.loads] == memory
        assert found.shape.order == tuple(order)
