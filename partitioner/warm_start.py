"""A plan to start from, as a method reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from partitioner.devices import Devices
from partitioner.evaluate import evaluate
from partitioner.evaluation.schedule import Schedule
from partitioner.evaluation.verdict import Evaluation
from partitioner.graph import Graph
from partitioner.methods.expand import parts_of
from partitioner.methods.method import Part
from partitioner.plan import Plan
from partitioner.preprocess.arrays import Ints
from partitioner.preprocess.problem import Problem
from partitioner.regime import Regime

WarmStart = Plan | Mapping[Any, str]
USUAL = Regime()


def start_from(
    problem: Problem, graph: Graph, devices: Devices, warm_start: WarmStart | None, regime: Regime = USUAL
) -> tuple[list[Part] | None, Ints | None]:
    """The parts of a warm start, and for latency the subgraph of every supernode, shape (n,).

    Both are None unless it is feasible and of the shape asked for. Where devices are wired in levels,
    none is used.
    """
    if warm_start is None or devices.levels or _widest(warm_start) > regime.replicas:
        return None, None
    evaluation = _evaluated(problem, graph, devices, warm_start, regime)
    if not evaluation.feasible or (problem.split == "chain" and evaluation.shape.name != "chain"):
        return None, None
    order = evaluation.shape.order or [load.name for load in evaluation.loads if load.nodes]
    parts = parts_of(problem, graph, devices, _placement(warm_start), order, _replicas(warm_start))
    return parts, subgraphs_of(problem, graph, evaluation.schedule)


def unused_start(
    devices: Devices, split: str, warm_start: WarmStart | None, parts: list[Part] | None
) -> tuple[str, ...]:
    """Return a note if a warm start was given and :func:`start_from` made no parts of it."""
    if warm_start is None or parts is not None:
        return ()
    if devices.levels:
        return ("the warm start is not used: none is where devices are in levels",)
    return (f"the warm start is not used: it breaks a rule, or it is no {split} split as asked for",)


def subgraphs_of(problem: Problem, graph: Graph, schedule: Schedule | None) -> Ints | None:
    """Shape (n,): the index of every supernode's subgraph; None without a schedule."""
    if schedule is None:
        return None
    slot = np.zeros(problem.n, dtype=np.int64)
    for run in schedule.entries:
        slot[[problem.member[graph.position[node]] for node in run.nodes]] = run.index or 0
    return slot


def _placement(warm_start: WarmStart) -> Mapping[Any, str]:
    return warm_start.placement if isinstance(warm_start, Plan) else warm_start


def _replicas(warm_start: WarmStart) -> Mapping[str, tuple[str, ...]]:
    return warm_start.replicas if isinstance(warm_start, Plan) else {}


def _widest(warm_start: WarmStart) -> int:
    """The most devices that share a stage."""
    return 1 + max((len(others) for others in _replicas(warm_start).values()), default=0)


def _evaluated(
    problem: Problem, graph: Graph, devices: Devices, warm_start: WarmStart, regime: Regime
) -> Evaluation:
    """What the warm start is worth; only for latency does that depend on the objective."""
    if problem.objective != "latency":
        stages = warm_start.stages if isinstance(warm_start, Plan) and problem.pipeline else ()
        return evaluate(
            graph,
            devices,
            _placement(warm_start),
            replicas=_replicas(warm_start) or None,
            order=stages or None,
            schedule=regime.schedule,
            microbatches=regime.microbatches,
            constraints=regime.constraints,
            split=problem.split,
        )
    subgraphs = warm_start.subgraphs if isinstance(warm_start, Plan) else None
    return evaluate(
        graph,
        devices,
        _placement(warm_start),
        "latency",
        subgraphs_per_accelerator=problem.subgraphs,
        subgraphs=subgraphs,
        constraints=regime.constraints,
    )
