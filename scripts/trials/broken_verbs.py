"""Every function that answers something, with arguments with which it works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import partitioner as pt
from partitioner.schedule import simulate
from partitioner.schedule.stash import stash
from trials.broken_files import some_workload

QUICK: dict[str, Any] = {"time_limit": 3.0}
CHAIN: dict[str, Any] = {"replicas": 2, "schedule": "1f1b", "microbatches": 4}
PLACING: dict[str, Any] = {
    "refine": True,
    "grouper": "coplace",
    "fuse": True,
    "imbalance": 0.1,
    "sct_threshold": 0.2,
    "fusion_range": 5,
    "fusion_memory": 0.5,
    "uniform": True,
}
SEARCH: dict[str, Any] = {"memory_budget": 10**6, "step_limit": 10**6, "orders": 3, "granularity": "layer"}


class Entry(NamedTuple):
    """A public function, and arguments with which it works."""

    name: str
    call: Callable[..., Any]
    given: Mapping[str, Any]


@cache
def verbs() -> list[Entry]:
    """All of them."""
    graph, devices = some_workload()
    plan = pt.solve(graph, devices)
    both = {"graph": graph, "devices": devices}
    return [*_solving(both, plan), *_evaluating(both, plan), *_others(both, plan)]


def _solving(both: Mapping[str, Any], plan: pt.Plan) -> list[Entry]:
    def entry(title: str, /, **given: Any) -> Entry:
        return Entry(f"solve, {title}", pt.solve, {**both, **QUICK, **given})

    simple = {"method": "auto", "backend": "auto", "gap": 0.1, "seed": 1, "on_progress": None}
    limited = pt.Constraints(stages=2)
    return [
        entry("chain", **simple, split=None, workers=1, warm_start=dict(plan.placement), **SEARCH),
        entry("split", split="free", workers=1, contiguous_cpus=True, contiguous_backward=False),
        entry("pipeline", **CHAIN, constraints=limited),
        entry("batch", objective="batch", microbatches=4),
        entry("makespan", objective="makespan", method="m-sct", transfers=pt.Transfers(1.0), **PLACING),
        entry("scheduled", objective="makespan", **CHAIN),
        entry("latency", objective="latency", method="latency_dp", subgraphs_per_accelerator=2),
    ]


def _evaluating(both: Mapping[str, Any], plan: pt.Plan) -> list[Entry]:
    graph: pt.Graph = both["graph"]

    def entry(title: str, /, **given: Any) -> Entry:
        return Entry(f"evaluate, {title}", pt.evaluate, {**both, "placement": dict(plan.placement), **given})

    slots = {"subgraphs": dict.fromkeys(graph.ids, 0), "subgraphs_per_accelerator": 2}
    chain = CHAIN | {"replicas": {}}
    return [
        entry("plain", objective="throughput", split="chain", constraints=pt.Constraints(stages=2)),
        entry("pipeline", order=list(plan.stages), **chain),
        entry("latency", objective="latency", limited_cpus=True, **slots),
        entry("makespan", objective="makespan", transfers=pt.Transfers(1.0), execution_order=list(graph.ids)),
    ]


def _others(both: Mapping[str, Any], plan: pt.Plan) -> list[Entry]:
    def entry(call: Callable[..., Any], /, **given: Any) -> Entry:
        return Entry(call.__name__, call, given)

    split = {"dimensions": {2: [pt.Dimension("batch")]}, "largest_split": 2, "split_time": 0.1}
    return [
        entry(pt.certify, **both, placement=plan, objective="throughput", gap=0.0, **QUICK),
        entry(simulate, **both, plan=plan, schedule="1f1b", microbatches=3, links="host", input_share=0.5),
        entry(pt.compare_schedules, **both, plan=plan, microbatches=3, memory=None, links="host"),
        entry(pt.compare_methods, **both, methods=["dp", "heft"], objective="throughput", seed=0, **QUICK),
        entry(pt.data_parallel, graph=both["graph"], replicas=2, gradient_cost=0.5),
        entry(pt.split_operations, **both, **split, **QUICK),
        entry(stash, schedule="1f1b", stage=0, stages=3, microbatches=4, replicas=2),
        entry(plan.save, path="saved.json"),
    ]
