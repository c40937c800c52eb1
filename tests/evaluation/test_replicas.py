"""Copies of a stage share its samples and exchange its weights; what cannot be a copy is refused."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner import DeviceKind, Devices, Graph, OptionError, WorkloadError, evaluate
from partitioner.evaluation.result import Evaluation
from partitioner.workload.levels import Level


def pair() -> Graph:
    """Node a (12, size 6) feeds b (2, size 1) at a cost of 3."""
    return Graph.from_arrays({"gpu": [12.0, 2.0]}, [("a", "b")], 3.0, ids="ab", size=[6.0, 1.0])


def on_gpus(replicas: Any, communication: str = "sequential", synchronisation: str = "added") -> Evaluation:
    kinds = (DeviceKind("gpu", 4, bandwidth=2.0), DeviceKind("cpu", 1, pays_communication=False))
    devices = Devices(kinds, communication, synchronisation=synchronisation)
    return evaluate(pair(), devices, {"a": "gpu0", "b": "gpu1"}, replicas=replicas)


@pytest.mark.parametrize(
    ("communication", "synchronisation", "load"),
    [
        ("sequential", "added", (12 + 3) / 3 + 2),
        ("sequential", "overlapped", max((12 + 3) / 3, 2)),
        ("overlapped", "added", 12 / 3 + 2),
        ("duplex", "overlapped", max(12 / 3, 2)),
    ],
)
def test_a_stage_on_three_devices(communication: str, synchronisation: str, load: float) -> None:
    """Its weights take (3 - 1) * 6 / (3 * 2) = 2 to exchange (Appendix H.2)."""
    found = on_gpus({"gpu0": ["gpu2", "gpu3"]}, communication, synchronisation)
    entries = {entry.name: entry for entry in found.loads}
    for name in ("gpu0", "gpu2", "gpu3"):
        entry = entries[name]
        assert (entry.load, entry.sync, entry.memory, entry.nodes) == (load, 2, 6, 1)
        assert (entry.compute, entry.transfer_out) == ((4, 0), (1, 0))
    assert [entries[name].replica_of for name in entries] == [None, None, "gpu0", "gpu0", None]
    assert entries["gpu1"].load == (5 if communication == "sequential" else 3)
    assert found.value == max(load, entries["gpu1"].load) and found.feasible
    assert found.shape.order == ("gpu0", "gpu1")


def test_without_replicas_nothing_is_exchanged() -> None:
    assert on_gpus({}).value == on_gpus(None).value == on_gpus({"gpu0": []}).value == 15


def test_parameters_are_what_is_exchanged_where_they_are_known() -> None:
    graph = Graph.from_arrays({"gpu": [1.0]}, size=9.0, parameters=4.0, gradients=4.0)
    devices = Devices((DeviceKind("gpu", 2, bandwidth=1.0),))
    found = evaluate(graph, devices, {0: "gpu0"}, replicas={"gpu0": ["gpu1"]})
    assert found.loads[0].sync == 4 / 2 and found.loads[1].memory == 17


def test_links_between_servers_are_slow() -> None:
    """Servers of two, racks of two servers: 1, 3 and 8 times the cost (Appendix H.3)."""
    levels = (Level("server", {"gpu": 2}, 3.0), Level("rack", {"gpu": 4}, 8.0))
    devices = Devices((DeviceKind("gpu", 8, bandwidth=1.0),), levels=levels)
    for other, slow in (("gpu1", 1), ("gpu2", 3), ("gpu3", 3), ("gpu4", 8), ("gpu7", 8)):
        found = evaluate(pair(), devices, {"a": "gpu0", "b": other})
        assert [entry.load for entry in found.loads if entry.nodes] == [12 + 3 * slow, 2 + 3 * slow]
    spread = evaluate(pair(), devices, {"a": "gpu0", "b": "gpu1"}, replicas={"gpu0": ["gpu3"]})
    assert [entry.load for entry in spread.loads[:2]] == [(12 + 9) / 2 + 6 / 2 * 3, 2 + 9]


def test_a_tensor_leaves_once_at_the_speed_of_its_slowest_link() -> None:
    graph = Graph.from_arrays({"gpu": [0.0] * 3}, [(0, 1), (0, 2)], 1.0)
    devices = Devices((DeviceKind("gpu", 4),), levels=(Level("server", {"gpu": 2}, 5.0),))
    found = evaluate(graph, devices, {0: "gpu0", 1: "gpu1", 2: "gpu2"})
    assert [entry.load for entry in found.loads] == [5, 1, 5, 0]


@pytest.mark.parametrize(
    ("replicas", "text"),
    [
        ([], "replicas: []: must be a mapping from device name"),
        ({"gpu0": "gpu2"}, "must be a mapping from device name"),
        ({"gpu0": ["tpu1"]}, "replicas: device = 'tpu1': must be a kind (gpu, cpu) and a number"),
        ({"gpu0": [2]}, "replicas: device = 2: must be a kind"),
        ({"gpu2": ["gpu3"]}, "replicas: 'gpu2': must be a device that a node is placed on"),
        ({"gpu0": ["cpu0"]}, "replicas of gpu0: 'cpu0': must be of the same kind"),
        ({"gpu0": ["gpu1"]}, "replicas of gpu0: 'gpu1': is in use already"),
        ({"gpu0": ["gpu0"]}, "replicas of gpu0: 'gpu0': is in use already"),
        ({"gpu0": ["gpu2", "gpu2"]}, "replicas of gpu0: 'gpu2': is in use already"),
        ({"gpu0": ["gpu2"], "gpu1": ["gpu2"]}, "replicas of gpu1: 'gpu2': is in use already"),
    ],
)
def test_what_is_no_replica_is_refused(replicas: Any, text: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        on_gpus(replicas)
    assert text in str(caught.value)


def test_a_replica_that_does_not_exist_breaks_a_rule() -> None:
    violations = on_gpus({"gpu0": ["gpu9"]}).violations
    assert violations == ("gpu9 does not exist: there are 4 of kind gpu, 1 of kind cpu",)


@pytest.mark.parametrize("objective", ["gpipe", "latency"])
@pytest.mark.parametrize(
    "options",
    [{"replicas": {"gpu0": ["gpu1"]}}, {"order": ["gpu0"]}, {"schedule": "1f1b"}, {"microbatches": 2}],
)
def test_gpipe_and_latency_know_no_pipelines(objective: str, options: Any) -> None:
    devices = Devices((DeviceKind("gpu", 2),))
    text = f"{next(iter(options))}: must not be given for objective '{objective}'"
    with pytest.raises(OptionError, match=text):
        evaluate(pair(), devices, {"a": "gpu0", "b": "gpu0"}, objective, **options)


@pytest.mark.parametrize("objective", ["gpipe", "latency"])
def test_gpipe_and_latency_know_no_levels(objective: str) -> None:
    devices = Devices((DeviceKind("gpu", 2),), levels=(Level("server", {"gpu": 1}, 2.0),))
    with pytest.raises(OptionError, match="levels: must not be given"):
        evaluate(pair(), devices, {"a": "gpu0", "b": "gpu0"}, objective)
