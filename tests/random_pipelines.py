"""Small random pipelines in which every extension turns up, alone or all together."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from partitioner import DeviceGroup, DeviceKind, Devices, Graph, GroupLink
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.devices import COMMUNICATION_MODELS, SYNCHRONISATIONS
from partitioner.workload.exchange import EXCHANGES
from partitioner.workload.levels import Level

FEATURES = ("kinds", "replicas", "levels", "memory", "constraints", "batch")
SCHEDULES = ("inference", "gpipe", "1f1b", "1f1b_async")
TIMES = np.array([0.0, 0.5, 1.0, 1.0, 2.0, 3.5, 7.0])
COSTS = np.array([0.0, 0.25, 0.5, 1.0, 2.0])
SIZES = np.array([0.0, 0.0, 1.0, 2.0, 3.0])


@dataclass(frozen=True)
class Case:
    """A workload and what is asked for; `replicas` is the most devices that a stage may have."""

    graph: Graph
    devices: Devices
    constraints: Constraints = NONE
    replicas: int = 1
    schedule: str | None = None
    microbatches: int | None = None
    objective: str = "throughput"


def random_case(
    rng: np.random.Generator, features: Collection[str], most_nodes: int = 9, most_devices: int = 6
) -> Case:
    """A case in which the features are at work, as far as chance lets them.

    They are out of `FEATURES`; "groups" may take the place of "levels", and "latency" be added.
    """
    graph = _graph(rng, int(rng.integers(1, most_nodes + 1)), "memory" in features)
    devices = _devices(rng, graph, features, most_devices)
    if "latency" in features:
        devices = replace(devices, link_latency=float(rng.choice([0.05, 0.5, 2.0])))
    asked: dict[str, Any] = {}
    if "constraints" in features:
        asked["constraints"] = _constraints(rng, graph, devices)
    if "replicas" in features:
        asked["replicas"] = int(rng.integers(2, most_devices + 1))
    if "memory" in features:
        asked["schedule"] = SCHEDULES[int(rng.integers(4))] if rng.random() < 0.9 else None
    if "batch" in features:
        asked["objective"] = "batch"
    if "batch" in features or asked.get("schedule") == "gpipe" or rng.random() < 0.3:
        asked["microbatches"] = int(rng.integers(1, 7))
    return Case(graph, devices, **asked)


def _graph(rng: np.random.Generator, n: int, with_parts: bool) -> Graph:
    """Forward nodes, then backward ones of which most have a forward node's colour."""
    forward = n if rng.random() < 0.4 else max(1, round(n * rng.choice([0.5, 0.5, 0.7])))
    backward = np.arange(n) >= forward
    density = rng.choice([0.2, 0.4, 0.8]) if n < 7 else 0.6
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < density]
    shared, own = rng.choice(COSTS, n), rng.random(n) < 0.15
    cost = [float(rng.choice(COSTS)) if own[u] else float(shared[u]) for u, _ in edges]
    colors: list[int | None] = [i if i < forward and rng.random() < 0.8 else None for i in range(n)]
    for i in range(forward, n):
        colors[i] = (
            min(n - 1 - i, forward - 1) if rng.random() < 0.8 else (50 if rng.random() < 0.5 else None)
        )
    columns = MEMORY_PARTS if with_parts else ()
    parts: dict[str, Any] = {part: rng.choice(SIZES, n) for part in columns if rng.random() < 0.7}
    return Graph.from_arrays(
        {kind: rng.choice(TIMES, n) for kind in ("gpu", "npu", "cpu")},
        edges,
        cost,
        size=rng.choice(SIZES, n) if rng.random() < 0.7 else 0.0,
        backward=backward,
        allowed={kind: rng.random(n) < rng.choice([0.9, 1.0, 1.0]) for kind in ("gpu", "npu", "cpu")},
        color=colors,
        layer=[int(i * rng.uniform(0.3, 1.0)) if rng.random() < 0.8 else None for i in range(n)],
        **parts,
    )


def _devices(rng: np.random.Generator, graph: Graph, features: Collection[str], most: int) -> Devices:
    names = ["gpu", *(("npu", "old") if "kinds" in features else ()), "cpu"]
    chosen = [str(name) for name in rng.permutation(names)[: int(rng.integers(1, min(len(names), 3) + 1))]]
    levels, groups = _groups(rng, most) if "levels" in features else ((), 1)
    sizes = dict.fromkeys(chosen[: max(1, most // groups)], 1)
    for _ in range(int(rng.integers(0, most // groups))):
        if sum(sizes.values()) * groups + groups <= most:
            sizes[str(rng.choice(list(sizes)))] += 1
    wired = tuple(
        Level(f"level{i}", {name: size * inner for name, size in sizes.items()}, slow)
        for i, (inner, slow) in enumerate(levels)
    )
    kinds = tuple(_kind(rng, graph, name, size * groups, features) for name, size in sizes.items())
    models = str(rng.choice(COMMUNICATION_MODELS)), str(rng.choice(SYNCHRONISATIONS))
    apart, links = _apart(rng, kinds) if "groups" in features else ((), ())
    way = EXCHANGES[len(graph) % 3 == 0]
    linked = len(graph) % 4 < 2 and all(kind.pays_communication for kind in kinds)
    return Devices(kinds, models[0], wired, models[1], apart, links, way, "direct" if linked else "host")


def _apart(
    rng: np.random.Generator, kinds: tuple[DeviceKind, ...]
) -> tuple[tuple[DeviceGroup, ...], tuple[GroupLink, ...]]:
    """One to four groups that the devices are dealt to by chance, and links by pair or for the rest."""
    home = {kind.name: rng.integers(4, size=kind.count) for kind in kinds}
    used = sorted({int(g) for groups in home.values() for g in groups})
    held = [{name: int((groups == g).sum()) for name, groups in home.items()} for g in used]
    slow = [1.0, 1.0, 1.5, 3.0, 7.0]
    groups = tuple(
        DeviceGroup(
            f"group {i}", {name: count for name, count in each.items() if count}, float(rng.choice(slow))
        )
        for i, each in enumerate(held)
    )
    pairs = list(combinations([group.name for group in groups], 2))
    named = [pair for pair in pairs if rng.random() < 0.7]
    links = [GroupLink(float(rng.choice(slow)), pair) for pair in named]
    rest = [GroupLink(float(rng.choice(slow)))] if len(named) < len(pairs) else []
    return groups, (*links, *rest)


def _groups(rng: np.random.Generator, most: int) -> tuple[list[tuple[int, float]], int]:
    """Smallest groups in a group of each level and its slowdown; the number of smallest groups."""
    if most >= 4 and rng.random() < 0.4:
        groups = 4 if most < 6 or rng.random() < 0.5 else 6
        return [(1, float(rng.choice([1, 2, 3]))), (2, float(rng.choice([3, 5, 8])))], groups
    return [(1, float(rng.choice([1.5, 4.0])))], int(rng.integers(2, max(2, most // 2) + 1))


def _kind(
    rng: np.random.Generator, graph: Graph, name: str, count: int, features: Collection[str]
) -> DeviceKind:
    given: dict[str, Any] = {"times": "gpu"} if name == "old" else {}
    if "kinds" in features:
        factors = rng.choice([0.5, 1.0, 2.0, 3.0], 2)
        given |= {"time_factor": float(factors[0]), "transfer_factor": float(factors[1])}
    if "replicas" in features and rng.random() < 0.7:
        given["bandwidth"] = float(rng.choice([1.0, 4.0, 20.0]))
    total = float(graph.size.sum() + graph.parts.sum())
    if rng.random() < (0.8 if "memory" in features else 0.3):
        given["memory"] = float(np.ceil(total * rng.uniform(0.3, 1.3)))
    return DeviceKind(name, count, pays_communication=name != "cpu", **given)


def _constraints(rng: np.random.Generator, graph: Graph, devices: Devices) -> Constraints:
    """Each sort of demand now and then, so that mostly some plan obeys all of them."""
    kinds = [kind.name for kind in devices.kinds]
    demands: dict[str, Any] = {}
    if rng.random() < 0.4:
        nodes = rng.choice(len(graph), int(rng.integers(1, 3)))
        demands["pin"] = {int(node): str(rng.choice([*kinds, *devices.names])) for node in nodes}
    if rng.random() < 0.3:
        demands["forbid"] = {int(rng.integers(len(graph))): [str(rng.choice(kinds))]}
    if rng.random() < 0.3:
        demands["together"] = [[int(node) for node in rng.choice(len(graph), 2)]]
    for name in ("nodes_per_stage", "layers_per_stage"):
        if rng.random() < 0.3:
            low = int(rng.integers(1, 3))
            limits = [(low, None), (None, low + 2), (low, low + 2)]
            demands[name] = limits[int(rng.integers(3))]
    if rng.random() < 0.3:
        demands["stages"] = int(rng.integers(1, 4))
    for name in ("use_all_devices", "neighbours_only"):
        demands[name] = bool(rng.random() < 0.25)
    return Constraints(**demands)
