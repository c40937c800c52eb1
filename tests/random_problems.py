"""Small contracted problems, all parts of them, and random ones; what tests of the contraction share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np

from partitioner import Devices, Evaluation, Graph, Workload, WorkloadError
from partitioner.methods.loads import value_of
from partitioner.methods.method import Part
from partitioner.methods.rules import obeys
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.problem import Problem
from tests.measures import MEASURES
from tests.random_workloads import fitted, uneven_workload

OBJECTIVES = ("throughput", "gpipe")


@dataclass(frozen=True)
class Case:
    """A random workload, what is asked for, and a generator for what is random in a test."""

    seed: int
    graph: Graph
    devices: Devices
    objective: str
    contiguous_cpus: bool
    contiguous_backward: bool
    rng: np.random.Generator

    def problem(self, split: str) -> Problem:
        """The workload contracted for a split."""
        options = (self.contiguous_cpus, self.contiguous_backward)
        graph = fitted(self.graph, self.devices)
        return contract(graph, self.devices, Goal(MEASURES[self.objective], split, (), *options))

    def contiguity(self, split: str) -> dict[str, Any]:
        """The options of `solve` on contiguity, where the split knows them."""
        given = {"contiguous_cpus": self.contiguous_cpus, "contiguous_backward": self.contiguous_backward}
        return given if split == "convex" else {}


def cases(first: int, count: int, most_nodes: int = 8, most_devices: int = 3) -> Iterator[Case]:
    """The valid ones of `count` seeds; in many of them nodes without time abound."""
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        graph, devices = uneven_workload(rng, most_nodes, most_devices)
        idle = rng.random(len(graph)) < rng.choice([0.0, 0.3, 0.6])
        graph = replace(graph, time=np.where(idle, 0.0, graph.time))
        wanted = OBJECTIVES[int(rng.integers(2))], bool(rng.random() < 0.5), bool(rng.random() < 0.5)
        try:
            Workload(graph, devices)
        except WorkloadError:
            continue
        yield Case(seed, graph, devices, *wanted, rng)


def random_parts(problem: Problem, rng: np.random.Generator) -> list[Part]:
    """Supernodes on random devices: now and then on a kind that may not run them or is used up."""
    slots = int(rng.integers(1, 4))
    place = rng.integers(slots, size=problem.n)
    if rng.random() < 0.5:
        place.sort()
    present = np.flatnonzero(problem.count) if rng.random() < 0.9 else np.arange(len(problem.count))
    kinds = rng.choice(present, slots).tolist()
    return parts_from([(kinds[p], p) for p in place.tolist()])


def parts_from(slots: Sequence[tuple[int, int]]) -> list[Part]:
    """The parts where supernode v is on device ``slots[v]``, a kind and a number, in order of numbers."""
    used = sorted(set(slots), key=lambda slot: slot[::-1])
    return [Part(slot[0], np.flatnonzero([slot == mine for mine in slots])) for slot in used]


def names_of(parts: Sequence[Part], devices: Devices) -> list[str]:
    """The device of each part: the next one of its kind."""
    return [
        devices.kinds[part.kind].device(sum(before.kind == part.kind for before in parts[:i]))
        for i, part in enumerate(parts)
    ]


def placement_of(case: Case, problem: Problem, parts: Sequence[Part]) -> dict[int | str, str]:
    """The device of every node."""
    name = {
        v: name for part, name in zip(parts, names_of(parts, case.devices), strict=True) for v in part.nodes
    }
    return {node: name[v] for node, v in zip(case.graph.ids, problem.member.tolist(), strict=True)}


def best_parts(problem: Problem) -> tuple[float, list[Part]] | None:
    """The best of all parts that obey the rules, and its value."""
    valued = [(value_of(problem, parts), parts) for parts in _all_parts(problem)]
    for value, parts in sorted(valued, key=lambda entry: entry[0]):
        if np.isfinite(value):
            orders = permutations(parts) if problem.split == "chain" else [parts]
            for order in orders:
                if obeys(problem, list(order)):
                    return value, list(order)
    return None


def _all_parts(problem: Problem) -> Iterator[list[Part]]:
    """All ways to place the supernodes; of equal devices one is used only after those before it."""
    counts = problem.count.tolist()
    slots: list[list[tuple[int, int]]] = [[]]
    for _ in range(problem.n):
        slots = [
            [*placed, (kind, index)]
            for placed in slots
            for kind, count in enumerate(counts)
            for index in range(min(count, 1 + len({slot for slot in placed if slot[0] == kind})))
        ]
    return (parts_from(placed) for placed in slots)


def has_shape(case: Case, evaluation: Evaluation, split: str) -> bool:
    """Is the placement of the split asked for, by what the evaluator says?"""
    if split != "convex":
        return split == "free" or evaluation.shape.name == "chain"
    torn = {*evaluation.shape.torn_forward}
    if case.contiguous_backward:
        torn |= {*evaluation.shape.torn_backward}
    pays = {kind.name for kind in case.devices.kinds if kind.pays_communication}
    kinds = {load.kind for load in evaluation.loads if load.name in torn}
    return not (kinds if case.contiguous_cpus else kinds & pays)
