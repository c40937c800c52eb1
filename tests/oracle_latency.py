"""An exhaustive oracle for latency: every placement and every choice of subgraphs, by the evaluator."""

from __future__ import annotations

import itertools

import numpy as np

from partitioner import Devices, Graph, evaluate
from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.problem.variants import SampleProblem
from tests.oracle_placements import feasible_placements


def best_latency(graph: Graph, devices: Devices, subgraphs: int) -> float:
    """The least latency of all placements and subgraphs; infinity if none obeys the rules."""
    names = devices.names
    best = np.inf
    for device in feasible_placements(graph, devices).device:
        placement = {node: names[d] for node, d in zip(graph.ids, device.tolist(), strict=True)}
        pays = [_pays(devices, placement[node]) for node in graph.ids]
        held = [node for node, paid in zip(graph.ids, pays, strict=True) if paid]
        for slots in itertools.product(range(subgraphs), repeat=len(held)):
            found = evaluate(
                graph,
                devices,
                placement,
                "latency",
                subgraphs_per_accelerator=subgraphs,
                subgraphs=dict(zip(held, slots, strict=True)),
            )
            best = min(best, np.inf if found.violations else found.value)
    return best


def latency(graph: Graph, devices: Devices, problem: SampleProblem, layout: SubgraphLayout) -> float:
    """What the evaluator says of a layout; infinity if it breaks a rule."""
    names = [
        f"{kind.name}{i}"
        for kind, count in zip(devices.kinds, problem.count, strict=True)
        for i in range(count)
    ]
    place, slot = layout.place[problem.member], layout.slot[problem.member]
    found = evaluate(
        graph,
        devices,
        {node: names[d] for node, d in zip(graph.ids, place.tolist(), strict=True)},
        "latency",
        subgraphs_per_accelerator=problem.subgraphs,
        subgraphs=dict(zip(graph.ids, slot.tolist(), strict=True)),
    )
    return np.inf if found.violations else found.value


def _pays(devices: Devices, name: str) -> bool:
    found = devices.kind_of(name)
    return found is not None and devices.kinds[found[0]].pays_communication
