"""Families of small instances, each with a method and what it is held against: an exact one or an oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import partitioner as pt
from partitioner.schedule import simulate
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from tests.oracle_accepted import accepted
from tests.oracle_pipelines import atoms
from tests.oracle_virtual_stages import chains
from tests.random_pipelines import random_case
from tests.random_virtual_stages import random_training
from tests.random_workloads import in_known_order, uneven_workload
from trials.adversarial_changes import Instance, Rng, Room

HELD = ("schedule", "microbatches", "virtual_stages")


@dataclass(frozen=True)
class Verdict:
    """What the method found and proved, and the best that is known; infinity where there is no plan."""

    value: float
    bound: float
    best: float

    @property
    def loss(self) -> float:
        """By which fraction the value is above the best known."""
        if math.isinf(self.best) or self.best <= 0:
            return 0.0
        return min(self.value / self.best - 1, 10.0)

    @property
    def slack(self) -> float:
        """By which fraction the bound is below the best known."""
        return 0.0 if math.isinf(self.best) or self.best <= 0 else 1 - self.bound / self.best


@dataclass(frozen=True)
class Family:
    """Instances of one sort.

    Parameters
    ----------
    first
        Draws one.
    reference
        Returns the value of the best plan known.
    room
        How large instances may become.
    by_bound
        Whether the bound is to be far from the best plan, in place of the value.
    """

    first: Callable[[Rng], Instance]
    reference: Callable[[Instance], float]
    room: Room
    by_bound: bool = False

    def judge(self, instance: Instance) -> Verdict:
        """Solve an instance, and find the best plan by the reference."""
        value, bound = solved(instance)
        if math.isinf(value) and math.isinf(bound):
            return Verdict(value, bound, math.inf)
        return Verdict(value, bound, min(value, self.reference(instance)))

    def score(self, verdict: Verdict) -> float:
        """Return what the search makes large."""
        return verdict.slack if self.by_bound else verdict.loss


def asked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as `solve` takes them."""
    given = dict(options)
    if "transfers" in given:
        given["transfers"] = pt.Transfers(**given["transfers"])
    return given


def solved(instance: Instance, **other: Any) -> tuple[float, float]:
    """Return value and bound of the plan of an instance, with other options; infinity if there is none."""
    try:
        plan = pt.solve(
            instance.graph, instance.devices, instance.objective, **asked({**instance.options, **other})
        )
    except pt.InfeasibleError:
        return math.inf, math.inf
    except pt.NoPlanFound as error:
        return math.inf, float(getattr(error, "bound", 0.0) or 0.0)
    return plan.value, plan.bound_on_any_devices


def by(**other: Any) -> Callable[[Instance], float]:
    """Return a reference that asks the same of another method."""

    def reference(instance: Instance) -> float:
        return solved(instance, **other)[0]

    return reference


def loads(split: str, method: str, **features: Any) -> Callable[[Rng], Instance]:
    """Return a source of instances of throughput."""

    def first(rng: Rng) -> Instance:
        graph, devices = uneven_workload(rng, 10, 3)
        total = float(graph.size.sum())
        if features.get("tight") and total:
            kinds = (replace(kind, memory=np.ceil(0.45 * total)) for kind in devices.kinds)
            devices = replace(devices, kinds=tuple(kinds))
        options = {"split": split, "method": method, **features.get("options", {})}
        return Instance(graph, devices, features.get("objective", "throughput"), options)

    return first


def operators(method: str) -> Callable[[Rng], Instance]:
    """Return a source of instances of makespans of operators."""

    def first(rng: Rng) -> Instance:
        graph, devices = uneven_workload(rng, 12, 3)
        lines: list[dict[str, Any]] = [{}, {"slope": 0.5, "intercept": 0.25}, {"intercept": 1.0}]
        forms = [*lines, {"contention": True}]
        options = {"method": method, "transfers": forms[int(rng.integers(4))], "time_limit": 1.0}
        return Instance(in_known_order(graph), devices, "makespan", options)

    return first


def samples(method: str) -> Callable[[Rng], Instance]:
    """Return a source of instances of latency."""

    def first(rng: Rng) -> Instance:
        graph, devices = uneven_workload(rng, 7, 3)
        return Instance(graph, devices, "latency", {"method": method, "time_limit": 1.0})

    return first


def dealt(grouping: str, *features: str, objective: str = "throughput") -> Callable[[Rng], Instance]:
    """Return a source of pipelines over groups or levels."""

    def first(rng: Rng) -> Instance:
        case = random_case(rng, [grouping, *features], 4, 5)
        options: dict[str, Any] = {"replicas": case.replicas} if case.replicas > 1 else {}
        if objective == "batch":
            options["microbatches"] = int(rng.integers(1, 6))
        return Instance(case.graph, case.devices, objective, options)

    return first


def best_accepted(instance: Instance) -> float:
    """Return the best value of all plans that the evaluator accepts."""
    given = {name: value for name, value in instance.options.items() if name in HELD}
    replicas = instance.options.get("replicas", 1)
    plans = accepted(instance.graph, instance.devices, instance.objective, replicas=replicas, **given)
    return min((plan.found.value for plan in plans), default=math.inf)


def scheduled(schedule: str, chunks: int = 1) -> Callable[[Rng], Instance]:
    """Return a source of makespans of pipelines, of training graphs on equal devices."""

    def first(rng: Rng) -> Instance:
        count = int(rng.integers(2, 4)) if chunks == 1 else 2
        graph = random_training(rng, int(rng.integers(count * chunks, 8)), bool(rng.random() < 0.5), False)
        devices = pt.Devices((pt.DeviceKind("gpu", count),))
        options = {"schedule": schedule, "microbatches": count * int(rng.integers(1, 4))}
        if chunks > 1:
            options["virtual_stages"] = chunks
        return Instance(graph, devices, "makespan", options)

    return first


def best_simulated(instance: Instance) -> float:
    """Return the least simulated makespan of all chains of stages."""
    graph, devices, options = instance.graph, instance.devices, instance.options
    schedule, batch, chunks = options["schedule"], options["microbatches"], options.get("virtual_stages", 1)
    names, best, atom = devices.names, math.inf, atoms(graph, pt.Constraints())
    for count in range(1, len(names) + 1):
        if chunks > 1 and VIRTUAL[schedule].rule(count, batch):
            continue
        ranks = VIRTUAL[schedule].ranks(count, chunks) if chunks > 1 else tuple(range(count))
        for stage in chains(graph, atom, count * chunks):
            order = [names[rank] for rank in ranks]
            placement = {node: order[s] for node, s in zip(graph.ids, stage.tolist(), strict=True)}
            numbers = dict(zip(graph.ids, stage.tolist(), strict=True)) if chunks > 1 else None
            plan = pt.Solution(placement, order=tuple(order), stage_of=numbers)
            best = min(best, simulate(graph, devices, plan, schedule, batch).makespan)
    return best


QUICK = {"time_limit": 0.3, "workers": 1}
EXACT = {"workers": 1, "time_limit": 20.0}
SMALL = Room(12, 4)
PIPELINE = Room(14, 3, ("kind", "links", "size", "fewer_nodes", "more_nodes"))
DEALT = Room(4, 5, ("device_count", "more_nodes"))
FAMILIES: dict[str, Family] = {
    "linear-orders": Family(loads("chain", "dpl"), by(method="dp"), SMALL),
    "free-search": Family(loads("free", "local_search", options=QUICK), by(method="ip", **EXACT), SMALL),
    "free-tight": Family(
        loads("free", "local_search", options=QUICK, tight=True), by(method="ip", **EXACT), SMALL
    ),
    "convex-search": Family(loads("convex", "local_search", options=QUICK), by(method="ip", **EXACT), SMALL),
    "gpipe-free": Family(
        loads("free", "local_search", options=QUICK, objective="gpipe"), by(method="ip", **EXACT), SMALL
    ),
    "free-bound": Family(loads("free", "local_search", options=QUICK), by(method="ip", **EXACT), SMALL, True),
    "latency-search": Family(samples("latency_search"), by(method="latency_ip", **EXACT), Room(7, 3)),
    "latency-sequence": Family(samples("latency_dp"), by(method="latency_ip", **EXACT), Room(7, 3)),
    "latency-bound": Family(samples("latency_dp"), by(method="latency_ip", **EXACT), Room(7, 3), True),
    "placers": Family(operators("portfolio"), by(method="exact", time_limit=20.0), SMALL),
    "placers-bound": Family(operators("portfolio"), by(method="exact", time_limit=20.0), SMALL, True),
    "1f1b": Family(scheduled("1f1b"), best_simulated, PIPELINE),
    "1f1b-bound": Family(scheduled("1f1b"), best_simulated, PIPELINE, True),
    "gpipe": Family(scheduled("gpipe"), best_simulated, PIPELINE),
    "gpipe-bound": Family(scheduled("gpipe"), best_simulated, PIPELINE, True),
    "zero-bubble": Family(scheduled("zb_h1"), best_simulated, PIPELINE),
    "zero-bubble-bound": Family(scheduled("zb_h1"), best_simulated, PIPELINE, True),
    "interleaved": Family(scheduled("interleaved_1f1b", 2), best_simulated, PIPELINE),
    "interleaved-bound": Family(scheduled("interleaved_1f1b", 2), best_simulated, PIPELINE, True),
    "zbv": Family(scheduled("zbv", 2), best_simulated, PIPELINE),
    "zbv-bound": Family(scheduled("zbv", 2), best_simulated, PIPELINE, True),
    "groups": Family(dealt("groups", "replicas"), best_accepted, DEALT),
    "groups-bound": Family(dealt("groups", "replicas"), best_accepted, DEALT, True),
    "groups-alone-bound": Family(dealt("groups"), best_accepted, DEALT, True),
    "levels": Family(dealt("levels", "replicas"), best_accepted, DEALT),
    "levels-bound": Family(dealt("levels", "replicas"), best_accepted, DEALT, True),
    "levels-alone-bound": Family(dealt("levels"), best_accepted, DEALT, True),
    "batch-groups": Family(dealt("groups", "replicas", objective="batch"), best_accepted, DEALT),
    "batch-bound": Family(dealt("groups", "replicas", objective="batch"), best_accepted, DEALT, True),
}
