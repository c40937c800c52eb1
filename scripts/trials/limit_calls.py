"""A random call with a time limit, made from its seed alone, and what is true of its answer."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

import partitioner as pt
from partitioner.methods.catalogue import USERS_OWN
from partitioner.methods.registry import METHODS
from trials.limit_graphs import MOST, SHAPES, filled_chain, some_devices, some_graph

OBJECTIVES = ("throughput", "gpipe", "batch", "latency", "makespan", "makespan, scheduled")
SHORTEST, LONGEST = 0.05, 3.0
GRACE = 1.0
SPIN = 0.02  # seconds of the processor
UNASKED = (USERS_OWN, "simulated")  # without parts of one's own, without a schedule
HEEDLESS = (  # methods that are documented to look at less than all rules, or at one device
    *("single_device", "metis", "scotch", "pipedream", "pipedream_path", "greedy", "max_load"),
    *("local_search_baseline",),
)
COMPILED = re.compile(r"compil\D*([\d.,]*\d) ?s", re.IGNORECASE)


@dataclass(frozen=True)
class Call:
    """A call of `solve` with a limit; `title` says in a few words what it is."""

    title: str
    graph: pt.Graph
    devices: pt.Devices
    objective: str
    options: Mapping[str, Any]
    memory: str

    @property
    def limit(self) -> float:
        """Seconds that it may take."""
        return float(self.options["time_limit"])


def call_of(seed: int, most: int = MOST) -> Call:
    """The call of a seed; graphs have at most so many nodes."""
    rng = np.random.default_rng(seed)
    objective, shape = str(rng.choice(OBJECTIVES)), str(rng.choice(list(SHAPES)))
    memory = str(rng.choice(["loose", "loose", "tight", "infeasible"]))
    n = round(math.exp(rng.uniform(0, math.log(most))))
    graph = some_graph(shape, n, rng)
    devices = some_devices(graph, memory, rng)
    limit = round(math.exp(rng.uniform(math.log(SHORTEST), math.log(LONGEST))), 2)
    options = {"time_limit": limit, **_extension(objective, graph, rng)}
    name = objective.split(",")[0]
    options |= _method(name, options, rng)
    words = ", ".join(f"{key}={value}" for key, value in options.items())
    title = f"{shape} of {len(graph):,} nodes on {devices.kinds[0].count}+{devices.kinds[1].count}, {memory}"
    return Call(f"{name}, {title}, {words}", graph, devices, name, options, memory)


def _extension(objective: str, graph: pt.Graph, rng: np.random.Generator) -> dict[str, Any]:
    if objective == "batch":
        return {"microbatches": int(rng.choice([1, 8, 64]))}
    if objective == "makespan, scheduled":
        training = bool(graph.backward.any())
        schedule = str(rng.choice(["gpipe", "1f1b"])) if training else "inference"
        return {"schedule": schedule, "microbatches": int(rng.choice([1, 8, 64]))}
    return {}


def _method(objective: str, extension: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A method and split that suit; half of the calls name none."""
    if objective == "gpipe":
        free = {"split": str(rng.choice(["free", "convex"]))}
    else:
        free = {"split": str(rng.choice(["chain", "convex", "free"]))} if objective == "throughput" else {}
    if rng.random() < 0.5 or "schedule" in extension or objective == "batch":
        return free
    able = [
        m for m in METHODS.values() if objective in m.objectives and m.name not in (USERS_OWN, "simulated")
    ]
    info = able[int(rng.integers(len(able)))]
    return {"method": info.name, "split": str(rng.choice(list(info.splits_for(objective))))}


def warm_up() -> None:
    """Call every method once, so that all of them are loaded and compiled."""
    graph, devices = some_graph("training", 6, np.random.default_rng(0)), pt.Devices.accelerated(2, cpus=1)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("makespan", {"method": "simulated", "schedule": "1f1b", "microbatches": 2}),
        ("batch", {"microbatches": 2}),
        *((objective, {"method": info.name}) for info in METHODS.values() for objective in info.objectives),
    ]
    for objective, options in calls:
        with suppress(pt.PartitionerError):
            pt.solve(graph, devices, objective, time_limit=0.1, **options)


def answer(seed: int | None, most: int) -> dict[str, Any]:
    """The record of the call of a seed, for :mod:`trials.worker`; None: load and compile everything."""
    if seed is None:
        warm_up()
        return {}
    return answered(call_of(seed, most))


def answered(call: Call) -> dict[str, Any]:
    """Run the call: how it ended, its seconds, those of the processor, of compiling, and what is untrue."""
    wall, processor = time.perf_counter(), time.process_time()
    try:
        plan: pt.Plan | None = pt.solve(call.graph, call.devices, call.objective, **call.options)
        error: Exception | None = None
    except Exception as raised:  # whatever escapes is what these trials look for
        plan, error = None, raised
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    said = " ".join(plan.notes) if plan is not None else str(error)
    outcome = "plan" if plan is not None else type(error).__name__
    untrue = wrong_plan(call, plan) if plan is not None else wrong_error(call, error)
    record = {"outcome": outcome, "wall": wall, "processor": processor, "untrue": untrue}
    return record | {"compiling": _compiling(said), "speed": _speed()}


def _speed() -> float:
    """The share of a core that this process is given at the moment."""
    wall, processor = time.perf_counter(), time.process_time()
    while time.process_time() - processor < SPIN:
        pass
    return SPIN / (time.perf_counter() - wall)


def _compiling(said: str) -> float:
    """Seconds of compiling that the notes state."""
    return sum(float(found.replace(",", "")) for found in COMPILED.findall(said))


def wrong_plan(call: Call, plan: pt.Plan) -> str:
    """What is untrue of a plan: it breaks a rule, or is worse than a chain that is known at once."""
    wanted: dict[str, Any] = {
        name: call.options[name] for name in ("schedule", "microbatches") if name in call.options
    }
    objective = "throughput" if "schedule" in wanted else call.objective
    wanted |= {"subgraphs": plan.subgraphs} if call.objective == "latency" else {}
    found = pt.evaluate(call.graph, call.devices, plan.placement, objective, **wanted)
    if not found.feasible:
        return f"the plan breaks a rule: {found.violations[0]}"
    if plan.bound > plan.value * (1 + 1e-9):
        return f"the bound {plan.bound!r} exceeds the value {plan.value!r}"
    simple = filled_chain(call.graph, call.devices) if call.options.get("method") is None else None
    if simple is None or call.objective not in ("throughput", "gpipe"):
        return ""
    known = pt.evaluate(call.graph, call.devices, simple, call.objective)
    poor = known.feasible and plan.value > known.value * (1 + 1e-9)
    return f"the plan takes {plan.value:.6g}, a chain of {known.value:.6g} is known at once" if poor else ""


def wrong_error(call: Call, error: Exception | None) -> str:
    """What is untrue of an error: it is none of ours, or a plan is known."""
    if isinstance(error, pt.ContradictionError) or not isinstance(error, pt.PartitionerError):
        return f"{type(error).__name__}: {error}"
    if isinstance(error, pt.BackendUnavailable | pt.OptionError) or call.options.get("method") in HEEDLESS:
        return ""
    if "schedule" in call.options or filled_chain(call.graph, call.devices) is None:
        return ""
    return f"a plan is known, yet: {type(error).__name__}: {error}"
