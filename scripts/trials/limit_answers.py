"""Calls with a time limit, made and measured."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import Any

import numpy as np

import partitioner as pt
from partitioner.methods.registry import METHODS
from trials.limit_calls import Call, call_of
from trials.limit_graphs import some_graph
from trials.limit_verdicts import wrong_error, wrong_plan

SPIN = 0.02  # seconds of the processor
COMPILED = re.compile(r"compil\D*([\d.,]*\d) ?s", re.IGNORECASE)


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
