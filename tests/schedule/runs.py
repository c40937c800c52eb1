"""Small simulated pipelines: every schedule on splits that suit it."""

from __future__ import annotations

from partitioner import DeviceKind, Devices, Graph
from partitioner.schedule import Table, Timeline, simulate

INFERENCE = ("single_stream", "inference")
TRAINING = ("single_stream", "gpipe", "1f1b", "1f1b_async", "zb-h1", "interleaved")


def line(nodes: int, backward: bool = True) -> Graph:
    """A path of nodes with times 1, 2, 3, ..., and as many backward nodes the other way round."""
    count = 2 * nodes if backward else nodes
    return Graph.from_arrays(
        {"gpu": [1.0 + i % 3 for i in range(count)]},
        [(i, i + 1) for i in range(count - 1)],
        cost=0.25,
        size=1.0,
        activations=2.0,
        backward=[i >= nodes for i in range(count)],
    )


def pipeline(schedule: str, devices: int = 3, microbatches: int = 6, backward: bool = True) -> Timeline:
    """A schedule on a path of six nodes and their backward nodes over up to six devices."""
    graph, gpus = line(6, backward), Devices((DeviceKind("gpu", devices, memory=30.0),), "overlapped")
    return simulate(graph, gpus, placement(schedule, devices, backward), schedule, microbatches)


def placement(schedule: str, devices: int, backward: bool = True) -> dict[int, str]:
    """Stages of equally many nodes, or for interleaved schedules nodes dealt in turn."""
    nodes = range(12 if backward else 6)
    number = [min(i, 11 - i) for i in nodes]
    if schedule == "interleaved":
        return {i: f"gpu{number[i] % devices}" for i in nodes}
    return {i: f"gpu{number[i] * devices // 6}" for i in nodes}


def every_run() -> dict[str, Timeline]:
    """Every schedule for training and for inference."""
    training = {f"{name}, training": pipeline(name) for name in TRAINING}
    return training | {f"{name}, inference": pipeline(name, backward=False) for name in INFERENCE}


def same_passes(one: Table, other: Table) -> bool:
    """Do the same devices run the same passes in the same order?"""
    return one.rows() == other.rows()
