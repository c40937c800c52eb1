"""Random problems of latency, random layouts on them, and the evaluator's word on a layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from partitioner import Devices, Evaluation, Graph, WorkloadError, evaluate
from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.methods.places import device_kinds
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import SampleProblem
from tests.contracted import contract_to
from tests.random_workloads import random_workload


def latency_problem(graph: Graph, devices: Devices, subgraphs: int = 1) -> SampleProblem:
    """The problem of latency of a workload."""
    return contract_to(SampleProblem, graph, devices, Goal(Measure.ONE_SAMPLE, "convex", subgraphs=subgraphs))


def random_problems(
    first: int, count: int, most_nodes: int = 12, most_devices: int = 5
) -> Iterator[tuple[int, Graph, Devices, SampleProblem]]:
    """Workloads with one to three subgraphs an accelerator, by seed; unsound ones are left out."""
    for seed in range(first, first + count):
        graph, devices = random_workload(np.random.default_rng(seed), most_nodes, most_devices)
        try:
            yield seed, graph, devices, latency_problem(graph, devices, 1 + seed % 3)
        except WorkloadError:
            continue


def random_layout(problem: SampleProblem, rng: np.random.Generator) -> SubgraphLayout:
    """Anything from runs of the order to any devices and slots at all, groups together or not."""
    devices = len(device_kinds(problem))
    slots = problem.subgraphs + int(rng.random() < 0.2)
    if rng.random() < 0.5:
        cuts = np.sort(rng.integers(0, problem.n + 1, devices * slots - 1))
        run = np.searchsorted(cuts, np.arange(problem.n), side="right")
        run = np.where(problem.backward & (rng.random() < 0.7), run[::-1], run)
        place, slot = rng.permutation(devices)[run % devices], run // devices
    else:
        place, slot = rng.integers(devices, size=problem.n), rng.integers(slots, size=problem.n)
    if rng.random() < 0.6:
        place = place[np.unique(problem.group, return_index=True)[1]][problem.group]
    return SubgraphLayout(place, slot)


def judged(graph: Graph, devices: Devices, problem: SampleProblem, layout: SubgraphLayout) -> Evaluation:
    """What the evaluator says of a layout."""
    capped = replace(devices, kinds=tuple(
        replace(kind, count=int(count)) for kind, count in zip(devices.kinds, problem.count, strict=True)
    ))  # fmt: skip
    place = [capped.names[d] for d in layout.place[problem.member].tolist()]
    slot = layout.slot[problem.member].tolist()
    return evaluate(
        graph,
        devices,
        dict(zip(graph.ids, place, strict=True)),
        "latency",
        subgraphs_per_accelerator=problem.subgraphs,
        subgraphs=dict(zip(graph.ids, slot, strict=True)),
    )
