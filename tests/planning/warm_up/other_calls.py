"""Random calls of every method and objective; ``main`` prints the kernels that they compile, one a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numba.core import event

import partitioner as pt
from partitioner.methods.info import MethodInfo
from partitioner.methods.registry import METHODS
from partitioner.schedule.kinds.registry import KINDS
from tests.random_pipelines import FEATURES, random_case
from tests.random_workloads import uneven_workload

Call = tuple[pt.Graph, pt.Devices, str, dict[str, Any]]
BUDGETS = (1000, 2**32)  # bytes: hardly a state, or every lattice
SECONDS = 0.2
Rng = np.random.Generator


class Compiled(event.Listener):
    """The kernels of the package that are compiled while it listens."""

    def __init__(self) -> None:
        self.kernels: list[str] = []

    def on_start(self, event: event.Event) -> None:
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("partitioner."):
            self.kernels.append(f"{function.__module__}.{function.__name__} {event.data['args']}")

    def on_end(self, event: event.Event) -> None: ...


def calls(rng: Rng, seed: int) -> Iterator[Call]:
    """Every method once, for any of its objectives, and three pipelines for two objectives."""
    graph, devices = uneven_workload(rng, 12, 4)
    for info in METHODS.values():
        if "numba" in info.backends or seed % 10 == 0:  # starting solvers takes long
            yield graph, devices, *_asked(rng, info)
    for _ in range(3):
        case = random_case(rng, [name for name in FEATURES if rng.random() < 0.4])
        limits = {"constraints": case.constraints, "replicas": case.replicas, "schedule": case.schedule}
        limits |= {"memory_budget": int(rng.choice(BUDGETS))}
        yield case.graph, case.devices, case.objective, limits | {"microbatches": case.microbatches}
        schedule = case.schedule or "inference"
        yield case.graph, case.devices, "makespan", limits | {"schedule": schedule, "microbatches": 3}


def _asked(rng: Rng, info: MethodInfo) -> tuple[str, dict[str, Any]]:
    objective = str(rng.choice(info.objectives))
    split = str(rng.choice(info.splits_for(objective)))
    options: dict[str, Any] = {"method": info.name, "split": split, "seed": int(rng.integers(100))}
    if objective == "makespan" and info.places_operators and rng.random() < 0.5:
        options |= {"transfers": pt.Transfers(contention=True, intercept=0.1)}
    return objective, options | {"memory_budget": int(rng.choice(BUDGETS))}


def simulate_all(rng: Rng) -> None:
    """Run all schedules with a plan."""
    graph, devices = uneven_workload(rng, 12, 3)
    plan = pt.solve(graph, devices, time_limit=SECONDS)
    for kind in KINDS:
        with suppress(pt.PartitionerError):
            pt.schedule.simulate(graph, devices, plan, kind, microbatches=4)
    pt.compare_schedules(graph, devices, plan, 4)


def main(first: int, count: int) -> None:
    """Make the calls of some seeds."""
    compiled = Compiled()
    event.register("numba:compile", compiled)  # type: ignore[no-untyped-call]
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        for graph, devices, objective, options in calls(rng, seed):
            with suppress(pt.PartitionerError):
                pt.solve(graph, devices, objective, time_limit=SECONDS, **options)
        with suppress(pt.PartitionerError):
            simulate_all(rng)
    print(*compiled.kernels, sep="\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
