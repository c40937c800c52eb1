"""Small pipelines to schedule."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partitioner import DeviceKind, Devices, Graph, Solution


class Line(NamedTuple):
    """What `simulate` takes first."""

    graph: Graph
    devices: Devices
    placement: dict[Any, str]


class VeeLine(NamedTuple):
    """What `simulate` takes first, where devices have two stages."""

    graph: Graph
    devices: Devices
    solution: Solution


def equal_stages(
    stages: int, chunks: int = 1, *, forward: float = 1.0, backward: float = 1.0, trains: bool = True
) -> Line:
    """A path of nodes without transfers, one a stage and pass; stage k is on device k mod `stages`."""
    count = stages * chunks
    time = [forward] * count + [backward] * count * trains
    return _path(np.array(time), count, stages, cost=0.0)


def vee_stages(devices: int, forward: float = 1.0, backward: float = 1.0) -> VeeLine:
    """As :func:`equal_stages`, with stages i and 2 p - 1 - i on device i of p."""
    ranks = [*range(devices), *reversed(range(devices))]
    graph, _, _ = equal_stages(2 * devices, forward=forward, backward=backward)
    stage_of: dict[Any, int] = {i: min(i, 4 * devices - 1 - i) for i in range(4 * devices)}
    placement: dict[Any, str] = {i: f"gpu{ranks[stage]}" for i, stage in stage_of.items()}
    order = tuple(f"gpu{rank}" for rank in ranks)
    gpus = Devices((DeviceKind("gpu", devices),))
    return VeeLine(graph, gpus, Solution(placement, order=order, stage_of=stage_of))


def random_line(rng: np.random.Generator, stages: int, trains: bool = True, **devices: Any) -> Line:
    """A path with random times, transfers and memory."""
    time = rng.uniform(0.5, 2.0, stages * (1 + trains))
    return _path(time, stages, stages, cost=rng.uniform(0.0, 0.5, len(time) - 1), rng=rng, **devices)


def _path(
    time: Any, count: int, stages: int, cost: Any, rng: np.random.Generator | None = None, **devices: Any
) -> Line:
    n = len(time)
    names = ("parameters", "gradients", "optimizer", "activations", "workspace")
    parts: dict[str, Any] = (
        {} if rng is None else {part: rng.integers(0, 9, n).astype(float) for part in names}
    )
    backward = np.arange(n) >= count
    arcs = [(i, i + 1) for i in range(n - 1)]
    graph = Graph.from_arrays({"gpu": time}, arcs, cost, backward=backward, **parts)
    place = {i: f"gpu{(i if i < count else n - 1 - i) % stages}" for i in range(n)}
    return Line(graph, Devices((DeviceKind("gpu", stages),), **devices), place)
