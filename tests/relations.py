"""Random workloads as plain data, and what is done to them without, or only for, the better."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from math import inf, isinf
from typing import Any

from partitioner import Devices, Graph, InfeasibleError, NoPlanFound, WorkloadError, solve

NEAR = 1e-5  # integer programs prove no closer than 1e-6
FEWER_EDGES = "an edge less"
QUICK = [("throughput", "chain"), ("batch", "chain")]
SOLVED = [("throughput", "free"), ("throughput", "convex"), ("gpipe", "free"), ("latency", "convex")]


@dataclass
class Case:
    """A workload that is easily changed; nodes are named by their position before any change of order."""

    time: list[float]
    slow: list[float]
    size: list[float]
    backward: list[bool]
    color: list[int | None]
    edges: list[tuple[int, int]]
    cost: list[float]
    accelerators: int
    cpus: int
    memory: float | None
    communication: str
    order: list[int] = field(default_factory=list)
    scale: float = 1.0

    def build(self) -> tuple[Graph, Devices]:
        """The graph with its nodes in the order, and the devices."""
        order = self.order or list(range(len(self.time)))
        graph = Graph.from_arrays(
            {row: [values[i] * self.scale for i in order] for row, values in self.rows()},
            [(f"n{u}", f"n{v}") for u, v in self.edges],
            [cost * self.scale for cost in self.cost],
            ids=[f"n{i}" for i in order],
            size=[self.size[i] for i in order],
            backward=[self.backward[i] for i in order],
            color=[self.color[i] for i in order],
        )
        devices = Devices.accelerated(
            self.accelerators, memory=self.memory, cpus=self.cpus, communication=self.communication
        )
        return graph, devices

    def rows(self) -> Iterator[tuple[str, list[float]]]:
        """The times by kind."""
        yield "accelerator", self.time
        yield "cpu", self.slow


def random_case(seed: int) -> Case:
    """Between 3 and 7 nodes, with ties, zeros, tight memory, colour classes and a backward pass at times."""
    rng = random.Random(seed)
    n = rng.randint(3, 7)
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.4]
    made = [rng.choice([0.5, 1.0, 2.0, 3.0]) for _ in range(n)]
    behind = rng.choice([0, 0, n // 2])
    size = [rng.choice([0.0, 1.0, 2.0, 3.0]) for _ in range(n)]
    return Case(
        time=[rng.choice([0.0, 1.0, 2.0, 3.0, 5.0]) for _ in range(n)],
        slow=[rng.choice([2.0, 5.0, 9.0]) for _ in range(n)],
        size=size,
        backward=[i >= n - behind for i in range(n)],
        color=[rng.randint(0, 2) if rng.random() < 0.3 else None for _ in range(n)],
        edges=edges,
        cost=[made[u] if rng.random() < 0.7 else rng.choice([0.5, 1.0, 2.0]) for u, _ in edges],
        accelerators=rng.choice([1, 2, 3]),
        cpus=rng.choice([0, 1]),
        memory=rng.choice([None, None, max(1.0, sum(size) * 0.6), max(1.0, sum(size) * 0.8)]),
        communication=rng.choice(["sequential", "sequential", "overlapped", "duplex"]),
    )


def equal_cases(case: Case, seed: int) -> Iterator[tuple[str, Case]]:
    """Changes that leave the optimum as it is, in the unit of the case's scale."""
    rng = random.Random(seed)
    n = len(case.time)
    scaled, shuffled, lone, repeated = (deepcopy(case) for _ in range(4))
    scaled.scale = 2.0 ** rng.choice([-200, -60, -3, 5, 70, 200])
    yield "another unit of time", scaled
    shuffled.order = rng.sample(range(n), n)
    yield "another order of the nodes", shuffled
    for values in (lone.time, lone.slow, lone.size):
        values.append(0.0)
    lone.backward.append(lone.backward[-1])
    lone.color.append(None)
    yield "a node without time and edges", lone
    if case.edges:
        k = rng.randrange(len(case.edges))
        repeated.edges.append(case.edges[k])
        repeated.cost.append(case.cost[k])
        yield "an edge twice at the same cost", repeated


def better_cases(case: Case, seed: int) -> Iterator[tuple[str, Case]]:
    """Changes that make the optimum no larger."""
    rng = random.Random(seed)
    k = rng.randrange(len(case.time))
    roomy, more, fewer, faster, smaller = (deepcopy(case) for _ in range(5))
    if case.memory is not None:
        roomy.memory = case.memory * 1.5
        yield "more memory", roomy
    more.accelerators += 1
    yield "one more device", more
    if case.edges:
        dropped = rng.randrange(len(case.edges))
        del fewer.edges[dropped], fewer.cost[dropped]
        yield FEWER_EDGES, fewer
    faster.time[k] /= 2
    yield "a faster node", faster
    smaller.size[k] /= 2
    yield "a smaller node", smaller


def proven(case: Case, objective: str, split: str) -> float | None:
    """The optimum in the case's own unit, infinity if there is no plan, None if nothing is proven."""
    options: dict[str, Any] = {"microbatches": 3} if objective == "batch" else {}
    try:
        plan = solve(*case.build(), objective, split=split, time_limit=30.0, **options)
    except (InfeasibleError, WorkloadError):
        return inf
    except NoPlanFound:
        return None
    return plan.value / case.scale if plan.status == "optimal" else None


def compared(seed: int, objective: str, split: str) -> Iterator[tuple[str, str]]:
    """Each relation of a random case whose optima are proven, and what is wrong with it (empty: nothing)."""
    case = random_case(seed)
    before = proven(case, objective, split)
    slack = 0.0 if before is None or isinf(before) else NEAR * before
    for equal, cases in ((True, equal_cases), (False, better_cases)):
        for what, changed in cases(case, seed) if before is not None else ():
            if objective == "gpipe" and what == FEWER_EDGES:
                continue  # a tensor that only a backward node still reads is fetched in the backward pass
            after = proven(changed, objective, split)
            if before is None or after is None:
                continue
            holds = after <= before + slack and (not equal or after >= before - slack)
            yield what, "" if holds else f"{before!r} before, {after!r} after"
