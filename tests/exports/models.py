"""Small models as graphs of whole modules, and plans of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from partitioner import DeviceKind, Devices, Graph, Plan, Workload, solve
from partitioner.workload.graph import Extras

EMBED, HEAD = "embed", ("norm", "head")


def line(
    names: Sequence[str],
    devices: Devices,
    *,
    training: bool = False,
    skips: Sequence[tuple[int, int]] = (),
    tied: Sequence[int] = (),
    parameters: Sequence[float] | float = 1.0,
) -> Workload:
    """A line of modules, each a node, or a forward and a backward node; `skips` are further edges."""
    n = len(names)
    edges = [*((i, i + 1) for i in range(n - 1)), *skips]
    if training:
        edges += [(2 * n - 1 - b, 2 * n - 1 - a) for a, b in edges] + [(n - 1, n)]
    count = 2 * n if training else n
    module = [min(i, 2 * n - 1 - i) for i in range(count)]
    shared = [{"sharedParameters": ["weight"]} if i in tied else {} for i in module]
    sizes = [parameters] * n if isinstance(parameters, int | float) else list(parameters)
    graph = Graph.from_arrays(
        {kind.row: [1.0] * count for kind in devices.kinds},
        edges,
        0.1,
        backward=[i >= n for i in range(count)],
        color=module if training else None,
        layer=[names[i] for i in module],
        names=[f"node {i}" for i in range(count)],
        parameters=[sizes[i] if i < n else 0.0 for i in range(count)],
        extras=Extras(nodes=shared),
    )
    return Workload(graph, devices)


def decoder(layers: int, devices: int, **options: Any) -> Workload:
    """A decoder: embedding, numbered layers, norm and head on equal GPUs."""
    names = [EMBED, *(f"layers.{i}" for i in range(layers)), *HEAD]
    return line(names, gpus(devices), **options)


def gpus(count: int, memory: float | None = None) -> Devices:
    """Equal GPUs."""
    return Devices((DeviceKind("gpu", count, memory),))


@cache
def _any_plan() -> Plan:
    graph = Graph.from_arrays({"gpu": [1.0]})
    return solve(graph, gpus(1))


def planned(
    workload: Workload,
    device_of: Mapping[str, str],
    *,
    order: Sequence[str] = (),
    replicas: Mapping[str, tuple[str, ...]] | None = None,
    **options: Any,
) -> Plan:
    """A plan that puts modules on devices as it is told, whatever it is worth."""
    graph = workload.graph
    labels = [graph.layer_labels[i] for i in graph.layer.tolist()]
    return replace(
        _any_plan(),
        placement={node: device_of[str(label)] for node, label in zip(graph.ids, labels, strict=True)},
        stages=tuple(order),
        replicas=replicas or {},
        options=options,
        workload_sha256=workload.sha256,
        hardware=workload.devices,
    )


def cuts(workload: Workload, *counts: int, devices: Sequence[str] = (), **options: Any) -> Plan:
    """A plan of stages of so many modules each, on gpu0, gpu1 and so on, or on the named devices."""
    names = list(dict.fromkeys(map(str, workload.graph.layer_labels)))
    homes = devices or [f"gpu{i}" for i in range(len(counts))]
    of = [home for home, count in zip(homes, counts, strict=True) for _ in range(count)]
    order = tuple(homes) if len(set(homes)) == len(homes) else ()
    return planned(workload, dict(zip(names, of, strict=True)), order=order, **options)


def numbered(workload: Workload, counts: Sequence[int], devices: Sequence[str], **options: Any) -> Plan:
    """A plan of stages of so many modules each, numbered, so that neighbours may share a device."""
    of = [stage for stage, count in enumerate(counts) for _ in range(count)]
    names = list(dict.fromkeys(map(str, workload.graph.layer_labels)))
    plan = planned(workload, dict(zip(names, [devices[stage] for stage in of], strict=True)), **options)
    labels = [names.index(str(workload.graph.layer_labels[i])) for i in workload.graph.layer.tolist()]
    stages = dict(zip(workload.graph.ids, [of[i] for i in labels], strict=True))
    return replace(plan, stages=tuple(devices), stage_of=stages)
