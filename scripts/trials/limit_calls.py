"""A random call with a time limit, made from its seed alone, and what is true of its answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import partitioner as pt
from partitioner.methods.catalogue import USERS_OWN
from partitioner.methods.registry import METHODS
from trials.limit_graphs import MOST, SHAPES, some_devices, some_graph

OBJECTIVES = ("throughput", "gpipe", "batch", "latency", "makespan", "makespan, scheduled")
SHORTEST, LONGEST = 0.05, 3.0
GRACE = 1.0
UNASKED = (USERS_OWN, "simulated")  # without parts of one's own, without a schedule


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
    any_split = objective in ("throughput", "gpipe")
    free = {"split": str(rng.choice(["chain", "convex", "free"]))} if any_split else {}
    if rng.random() < 0.5 or "schedule" in extension or objective == "batch":
        return free
    able = [
        m for m in METHODS.values() if objective in m.objectives and m.name not in (USERS_OWN, "simulated")
    ]
    info = able[int(rng.integers(len(able)))]
    return {"method": info.name, "split": str(rng.choice(list(info.splits_for(objective))))}
