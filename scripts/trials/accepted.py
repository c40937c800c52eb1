"""Random tiny workloads, held against every plan that the evaluator accepts.

Case number i has seed S + i, so `--cases 1 --seed I` shows case I again. No value may be better than the best
accepted one, no bound may exclude it, "optimal", "infeasible" and "least" must be true of all accepted plans.
Exit code: 0, or 1 if something is wrong.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

import numpy as np

import partitioner as pt
from partitioner.methods.ip import solve as ip
from partitioner.schedule import simulate
from tests.methods.inline_worker_pool import InlineWorkerPool
from tests.oracle_accepted import accepted
from tests.oracle_makespan import least_makespan
from tests.random_pipelines import random_case
from tests.random_workloads import in_known_order
from trials.campaign import Campaign, Trial, campaign_parser
from trials.source import workload_source
from trials.worker import Lost, Worker

ROOM = 1e-6  # relative: limits of memory have a tolerance of three parts in 10^9
PATIENCE = 300.0  # seconds for a case
LIMIT = 20.0  # seconds for a solve
Rng = np.random.Generator
Found = tuple[str, str, str, str]  # row, outcome, what is wrong, what shows it again


def stages(rng: Rng) -> Found:
    """Throughput and batches: chains with replicas, groups or levels, kinds, memory by stage, constraints."""
    case, options = _pipeline(rng, ["replicas", "memory", "constraints", "batch", "kinds"])
    return _asked("stages", case.graph, case.devices, case.objective, options)


def splits(rng: Rng) -> Found:
    """Convex and free splits and GPipe's sum, with constraints and several kinds."""
    case, options = _pipeline(rng, ["constraints", "kinds"], grouping=False)
    options |= {"split": str(rng.choice(["chain", "convex", "free"])), "time_limit": 5.0, "workers": 1}
    objective = str(rng.choice(["throughput", "gpipe"]))
    return _asked("splits", case.graph, case.devices, objective, options)


def schedules(rng: Rng) -> Found:
    """Simulated makespans of pipelines: the least one, and its bound, over all accepted plans."""
    case, options = _pipeline(rng, ["replicas", "memory", "constraints", "kinds"])
    schedule = options.get("schedule") or str(rng.choice(["inference", "gpipe", "1f1b", "1f1b_async"]))
    options |= {"schedule": schedule, "microbatches": int(rng.integers(1, 6)), "time_limit": 5.0}

    def known() -> float | None:
        plans = _all(case.graph, case.devices, "throughput", options)
        return min((_simulated(case, options, plan) for plan in plans), default=None)

    return _judged("schedules", case.graph, case.devices, "makespan", options, known)


def _simulated(case: Any, options: dict[str, Any], plan: Any) -> float:
    placement = {node: plan.stages[p][0] for node, p in zip(case.graph.ids, plan.part, strict=True)}
    copies = {first: more for first, *more in plan.stages if more}
    solution = pt.Solution(placement, order=plan.order, replicas=copies)
    return simulate(case.graph, case.devices, solution, options["schedule"], options["microbatches"]).makespan


def capacities(rng: Rng) -> Found:
    """The most samples in flight, with replicas that take them in turn."""
    case, options = _pipeline(rng, ["replicas", "kinds"])
    options.pop("microbatches", None)
    graph = replace(case.graph, cache=rng.choice([0.0, 0.5, 1.0, 3.0], len(case.graph)))
    room = float(graph.size.sum()) + 4.0
    kinds = tuple(replace(kind, memory=float(rng.integers(1, 1 + int(room)))) for kind in case.devices.kinds)
    if rng.random() < 0.4:
        options["max_time_per_sample"] = float(rng.integers(1, 12))
    return _asked("capacity", graph, replace(case.devices, kinds=kinds), "capacity", options)


def operators(rng: Rng) -> Found:
    """Makespans of operators: groups, levels, matrices of transfers, more devices than operators."""
    case = random_case(rng, ["kinds", _grouping(rng)], 3, 5)
    graph, devices = in_known_order(case.graph), case.devices
    count, form = len(devices.names), rng.random()
    shape = (count, count) if form < 0.4 else ()
    given = {"slope": rng.choice([0.0, 0.5, 1.0, 2.0], shape).tolist()} if form < 0.6 else {}
    given["intercept"] = rng.choice([0.0, 0.0, 0.25, 1.0], shape).tolist()
    transfers = pt.Transfers(contention=bool(rng.random() < 0.5), **given)
    options = {"transfers": transfers, "time_limit": 5.0, "workers": 1}
    return _judged(
        "operators", graph, devices, "makespan", options, lambda: least_makespan(graph, devices, transfers)
    )


def sizes(rng: Rng) -> Found:
    """The least memory and the fewest devices, over all accepted plans."""
    case, options = _pipeline(rng, ["replicas", "memory"])
    kind = case.devices.kinds[0].name
    limit = float(rng.integers(1, 15)) if rng.random() < 0.6 else None
    free = replace(case.devices, kinds=tuple(_without_limit(each, kind) for each in case.devices.kinds))
    row, paste = "least memory", _paste(case.graph, case.devices, f"least_memory, {limit}, {kind}, {options}")
    try:
        found = pt.least_memory(case.graph, case.devices, limit, case.objective, kind=kind, **options)
    except pt.InfeasibleError:
        known = _least_held(case.graph, free, case.objective, kind, limit, options)
        return row, "infeasible", f"a plan with {known} is known" if known < math.inf else "", paste
    except (pt.NoPlanFound, pt.OptionError, pt.WorkloadError) as error:
        return row, type(error).__name__, "", paste
    known = _least_held(case.graph, free, case.objective, kind, limit, options)
    if found.memory < known * (1 - ROOM) - ROOM or found.bound > known * (1 + ROOM) + ROOM:
        return row, "found", f"memory {found.memory}, bound {found.bound}, the least is {known}", paste
    return row, "proven" if found.proven else "found", "", paste


FAMILIES: dict[str, tuple[Callable[[Rng], Found], float]] = {
    "stages": (stages, 40),
    "splits": (splits, 10),
    "schedules": (schedules, 10),
    "capacities": (capacities, 15),
    "operators": (operators, 15),
    "sizes": (sizes, 10),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = campaign_parser(__doc__, 5_000)
    parser.add_argument("--only", choices=FAMILIES, help="cases of one sort (all sorts, in fixed shares)")
    options = parser.parse_args(arguments)
    return Campaign(options.cases).run(trials(options.seed, options.cases, options.only))


def trials(first: int, count: int, only: str | None = None) -> Iterator[Trial]:
    """One trial a seed, in a process of its own, so that one that never ends is one trial."""
    worker = Worker("trials.accepted:answer", PATIENCE)
    shares = np.array([share for _, share in FAMILIES.values()])
    try:
        for seed in range(first, first + count):
            drawn = np.random.default_rng([seed, 1]).choice(list(FAMILIES), p=shares / shares.sum())
            name = str(drawn) if only is None else only
            try:
                row, outcome, wrong, paste, seconds = worker.ask(name, seed)
                yield Trial(row, outcome, wrong, f"{_command(name, seed)}\n{paste}", seconds)
            except Lost as error:
                yield Trial(name, "lost", str(error), _command(name, seed))
    finally:
        worker.close()


def answer(name: str, seed: int) -> tuple[str, str, str, str, tuple[float, float]]:
    """The fields of a trial, for :mod:`trials.worker`."""
    clocks = time.perf_counter(), time.process_time()
    with patch.object(ip, "WorkerPool", InlineWorkerPool):
        found = FAMILIES[name][0](np.random.default_rng(seed))
    return *found, (time.perf_counter() - clocks[0], time.process_time() - clocks[1])


def _command(name: str, seed: int) -> str:
    return f"# python scripts/trials/accepted.py --only {name} --cases 1 --seed {seed}"


def _grouping(rng: Rng) -> str:
    return str(rng.choice(["levels", "groups", "groups", "none"]))


def _pipeline(rng: Rng, some: Sequence[str], grouping: bool = True) -> tuple[Any, dict[str, Any]]:
    """A random pipeline, and the options of `solve` that ask for it."""
    features = [name for name in some if rng.random() < 0.6]
    case = random_case(rng, [_grouping(rng) if grouping else "none", *features], 3, 5)
    given = {"replicas": case.replicas, "schedule": case.schedule, "microbatches": case.microbatches}
    options: dict[str, Any] = {name: value for name, value in given.items() if value not in (None, 1)}
    options |= {} if case.constraints.empty else {"constraints": case.constraints}
    if case.objective == "batch" or case.schedule == "gpipe":
        options["microbatches"] = case.microbatches
    elif case.schedule is None:
        options.pop("microbatches", None)
    return case, options


def _asked(row: str, graph: pt.Graph, devices: pt.Devices, objective: str, options: dict[str, Any]) -> Found:
    """Solve, and compare with every accepted plan of the same terms."""

    def known() -> float | None:
        values = [plan.found.value for plan in _all(graph, devices, objective, options)]
        better = max if objective == "capacity" else min
        return better(values, default=None)

    return _judged(row, graph, devices, objective, options, known)


def _all(graph: pt.Graph, devices: pt.Devices, objective: str, options: dict[str, Any]) -> Iterator[Any]:
    constraints = options.get("constraints", pt.Constraints())
    terms = {
        name: value
        for name, value in options.items()
        if name in ("schedule", "microbatches", "constraints", "max_time_per_sample")
    }
    steps = options.get("schedule") is not None or constraints.neighbours_only
    ordered = options.get("split", "chain") == "chain" and objective != "gpipe" and steps
    apart = [target for target in constraints.pin.values() if target in devices.names]
    given = {"split": options.get("split", "chain"), "replicas": options.get("replicas", 1)}
    return accepted(graph, devices, objective, ordered=ordered, apart=apart, **given, **terms)


def _judged(
    row: str,
    graph: pt.Graph,
    devices: pt.Devices,
    objective: str,
    options: dict[str, Any],
    known: Callable[[], float | None],
) -> Found:
    """How the call ended, and what is wrong with that."""
    paste = _paste(graph, devices, f"solve, {objective}, {options}")
    sign = -1.0 if objective == "capacity" else 1.0
    try:
        plan = pt.solve(graph, devices, objective, **options)
    except pt.InfeasibleError as error:
        best = known()
        return row, "infeasible", "" if best is None else f"{error}; a plan of {best!r} is known", paste
    except pt.ContradictionError as error:
        return row, "contradiction", str(error), paste
    except (pt.NoPlanFound, pt.OptionError, pt.WorkloadError) as error:
        return row, type(error).__name__, "", paste
    best = known()
    if best is None:
        return row, plan.status, f"a plan of {plan.value!r} where none is accepted: {plan.placement}", paste
    if plan.value == best == math.inf:
        return row, plan.status, "", paste
    room = ROOM * abs(best) + 1e-9
    if sign * (plan.value - best) < -room:
        return row, plan.status, f"{plan.value!r} is better than the best accepted, {best!r}", paste
    bound = plan.bound if objective == "capacity" else plan.bound_on_any_devices
    if sign * (bound - best) > room:
        return (
            row,
            plan.status,
            f"{plan.status} {plan.value!r}, bound {bound!r}; {best!r} is accepted",
            paste,
        )
    return row, plan.status, "", paste


def _least_held(
    graph: pt.Graph,
    devices: pt.Devices,
    objective: str,
    kind: str,
    limit: float | None,
    options: dict[str, Any],
) -> float:
    """The least of the largest memory of a device of the kind, over all accepted plans within the limit."""
    least = math.inf
    for plan in _all(graph, devices, objective, options):
        if limit is None or plan.found.value <= limit * (1 + ROOM):
            held = [load.memory for load in plan.found.loads if load.kind == kind]
            least = min(least, max(held, default=0.0))
    return least


def _without_limit(kind: pt.DeviceKind, name: str) -> pt.DeviceKind:
    return replace(kind, memory=None) if kind.name == name else kind


def _paste(graph: pt.Graph, devices: pt.Devices, call: str) -> str:
    return f"{workload_source(graph, devices)}\n# {call}"


if __name__ == "__main__":
    sys.exit(main())
