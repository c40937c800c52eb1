"""Small random graphs whose nodes have alternatives, on equal devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from partitioner import Alternative, Alternatives, DeviceKind, Devices, Graph
from partitioner.workload.array_input import MEMORY_PARTS
from tests.oracle_alternatives import Case

SCHEDULES = (None, "inference", "gpipe", "1f1b", "1f1b", "1f1b", "1f1b_async")
DEGREES = np.array([1, 1, 1, 2, 2, 3, 4])
ROUND = np.array([0.0, 0.5, 1.0, 1.0, 2.0, 3.5, 7.0])


def random_case(rng: np.random.Generator, most_classes: int = 4) -> Case:
    """A case in which memory binds often; every field of an alternative turns up."""
    count, training = int(rng.integers(1, most_classes + 1)), bool(rng.random() < 0.5)
    graph = _graph(rng, count, training)
    graph = replace(graph, alternatives=_alternatives(rng, graph, count))
    piper = bool(rng.random() < 0.5)
    schedule = SCHEDULES[int(rng.integers(len(SCHEDULES)))]
    batch = int(rng.choice([1, 4, 6, 8, 12, 24]))
    return Case(
        graph,
        devices=int(rng.integers(1, 7)),
        memory=float(_least_memory(graph, schedule) * rng.uniform(0.2, 1.8)),
        bandwidth=None if rng.random() < 0.2 else float(rng.choice([1.0, 4.0, 20.0])),
        copies=int(rng.integers(1, 6)),
        schedule=schedule,
        microbatches=batch if piper or schedule == "gpipe" or rng.random() < 0.3 else None,
        piper=piper,
    )


def batch_case(rng: np.random.Generator, most_classes: int = 4) -> Case:
    """A case in which the time of a batch is asked for."""
    case = random_case(rng, most_classes)
    return replace(case, piper=False, batch=True, microbatches=int(rng.choice([1, 2, 3, 5, 9, 40])))


def devices_of(case: Case) -> Devices:
    """The devices of a case."""
    return Devices((DeviceKind("gpu", case.devices, memory=case.memory, bandwidth=case.bandwidth),))


def options_of(case: Case) -> dict[str, Any]:
    """What `solve` is asked for a case."""
    return {
        "objective": "piper" if case.piper else "batch" if case.batch else "throughput",
        "replicas": case.copies,
        "schedule": case.schedule,
        "microbatches": case.microbatches,
    }


def _draw(rng: np.random.Generator, size: int | None = None) -> Any:
    """Round numbers, so that sums tie, or any."""
    return rng.choice(ROUND, size) if rng.random() < 0.5 else rng.uniform(0, 5, size)


def _graph(rng: np.random.Generator, count: int, training: bool) -> Graph:
    forward = [(u, v) for v in range(count) for u in range(v) if rng.random() < (0.8 if v == u + 1 else 0.3)]
    edges = list(forward)
    if training:
        edges += [(v + count, u + count) for u, v in forward] + [(v, v + count) for v in range(count)]
    nodes = count * (1 + training)
    parts = {part: _draw(rng, nodes) for part in MEMORY_PARTS if rng.random() < 0.6}
    return Graph.from_arrays(
        {"gpu": _draw(rng, nodes)},
        edges,
        _draw(rng) if rng.random() < 0.3 else _draw(rng, len(edges)),
        size=_draw(rng, nodes),
        backward=[i >= count for i in range(nodes)],
        color=[i % count for i in range(nodes)] if training else None,
        **parts,
    )


def _alternatives(rng: np.random.Generator, graph: Graph, count: int) -> Alternatives:
    found: dict[int, list[Alternative]] = {}
    usual = rng.choice(DEGREES, 3)
    for c in range(count):
        degrees = usual if rng.random() < 0.8 else rng.choice(DEGREES, int(rng.integers(0, 4)))
        for number, degree in enumerate(degrees.tolist()):
            for node in range(c, len(graph), count):
                found.setdefault(node, []).append(_alternative(rng, graph, node, number, int(degree)))
    return Alternatives(found)


def _alternative(rng: np.random.Generator, graph: Graph, node: int, number: int, degree: int) -> Alternative:
    """A way that takes less memory and more time than the node's own, or other figures altogether."""
    own, less = rng.random() < 0.7, rng.uniform(0, 1)
    figures = graph.parts[:, node] * less if own else _draw(rng, 5)
    time = graph.time[0, node] * (1 + rng.uniform(0, 1)) / degree if own else _draw(rng)
    sides: list[dict[int, float]] = [{}, {}]
    for u, v in graph.edges.tolist() if rng.random() < 0.4 else ():
        for side, (here, there) in zip(sides, ((v, u), (u, v)), strict=True):
            if here == node and rng.random() < 0.7:
                side[there] = float(_draw(rng))
    size = float(graph.size[node] * less if own else _draw(rng))
    parts: dict[str, Any] = dict(zip(MEMORY_PARTS, map(float, figures), strict=True))
    return Alternative(
        f"way {number}", {"gpu": float(time)}, degree, size, inputs=sides[0], outputs=sides[1], **parts
    )


def _least_memory(graph: Graph, schedule: str | None) -> float:
    """What a device needs for the whole graph and two samples."""
    samples = 1 if schedule in (None, "inference") else 2
    return float(graph.size.sum() + graph.parts.sum() + (samples - 1) * graph.parts[3].sum()) or 1.0
