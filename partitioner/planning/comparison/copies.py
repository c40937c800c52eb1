"""Copies of a whole pipeline: each stage on as many devices, which take the samples in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from partitioner.evaluation.solution import Solution
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.groups import DeviceGroup
from partitioner.workload.levels import Level

MOST_REPLICAS = 8  # devices that may share a stage, where the stages of a plan may have different numbers


class Spread(NamedTuple):
    """How many copies of a whole pipeline there are, and how many devices may share a stage of each."""

    copies: int
    replicas: int = 1

    def __str__(self) -> str:
        most = self.copies * self.replicas
        return "1" if most == 1 else str(most) if self.replicas == 1 else f"1-{most}"


def spreads(devices: Devices, microbatches: int) -> Iterator[Spread]:
    """Yield as many copies as there are devices and samples for, by powers of two, down to 1, then replicas.

    Many copies come first, because it is soon known that they do not fit.
    """
    most = min(max((kind.count for kind in devices.kinds), default=1), microbatches)
    groups: tuple[Level | DeviceGroup, ...] = (*devices.levels, *devices.groups)
    for power in range(max(most, 1).bit_length() - 1, -1, -1):
        copies = 2**power
        if all(size % copies == 0 for group in groups for size in dict(group.devices).values()):
            yield Spread(copies)
    if most > 1:
        yield Spread(1, min(MOST_REPLICAS, most))


def devices_of_a_copy(devices: Devices, copies: int) -> Devices:
    """Return the devices that each copy has; of a kind whose count is no multiple some stay idle."""
    return replace(
        devices,
        kinds=tuple(replace(kind, count=kind.count // copies) for kind in devices.kinds),
        levels=tuple(replace(level, devices=_parts(level, copies)) for level in devices.levels),
        groups=tuple(replace(group, devices=_parts(group, copies)) for group in devices.groups),
    )


def graph_of_a_copy(graph: Graph, copies: int) -> Graph:
    """Return a graph whose nodes hold what they do in each copy: its part of what the copies divide."""
    _, gradients, optimizer, *_ = parts = graph.parts.copy()
    optimizer /= copies if graph.extras.zero >= 1 else 1
    gradients /= copies if graph.extras.zero >= 2 else 1
    return replace(graph, parts=parts)


def _parts(group: Level | DeviceGroup, copies: int) -> dict[str, int]:
    return {name: size // copies for name, size in dict(group.devices).items()}


def with_copies(plan: Plan, devices: Devices, copies: int) -> Solution:
    """Return a plan for the devices of a copy as a solution for all copies, on all devices.

    The devices of a copy are those whose numbers have the same remainder when divided by `copies`; copies
    take the samples in turn.
    """
    held = {
        name: [
            each for copy in (name, *plan.replicas.get(name, ())) for each in _devices(devices, copy, copies)
        ]
        for name in plan.stages
    }
    return Solution(
        {node: held[name][0] for node, name in plan.placement.items()},
        replicas={first: tuple(others) for first, *others in held.values() if others},
        order=tuple(held[name][0] for name in plan.stages),
        stage_of=plan.stage_of,
        alternatives=plan.alternatives,
    )


def _devices(devices: Devices, name: str, copies: int) -> list[str]:
    """Return the devices that hold what a device of one copy holds."""
    found = devices.kind_of(name)
    assert found is not None
    kind, index = devices.kinds[found[0]], found[1]
    return [kind.device(index * copies + i) for i in range(copies)]
