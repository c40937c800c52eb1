"""The reason why a workload has no plan: which limits or demands rule out every one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.problem.problem import Problem
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.pipeline_settings import Regime

SECONDS = 10.0  # for all attempts together
LEAST = 0.1  # seconds for one attempt
ROUNDING = 1 + 1e-9  # of sums that are compared with limits


def why_infeasible(
    graph: Graph, devices: Devices, problem: Problem, conflicting_constraints: tuple[str, ...] = ()
) -> str:
    """Return a clause that names what rules out every plan: demands, or a limit found by adding up memory.

    Parameters
    ----------
    graph, devices
        The workload, fitted to the devices (:func:`partitioner.problem.fit.fit`).
    problem
        The contracted workload, for the requested split.
    conflicting_constraints
        Constraints each of which, when left out, leaves a plan; see :func:`conflicting_constraints_of`.
    """
    what = "no chain of stages" if problem.ordered else f"no {problem.split} split"
    if conflicting_constraints:
        return f"{what} obeys the limits; without {' or without '.join(conflicting_constraints)} there is one"
    together = memory_conflict(graph, devices)
    if together:
        return together
    for kind in devices.kinds:
        only = _only_on(graph, devices, kind.name)
        need = 0.0 if graph.alternatives else float(graph.size[only].sum())
        if kind.count and need > kind.count * kind.memory_limit:
            hold = kind.count * kind.memory_limit
            return f"memory: nodes that run on {kind.name} only take {need:,.6g}, these hold {hold:,.6g}"
    if problem.ordered:
        return (
            f"{what} obeys the limits: each device takes at most one stage, within its memory "
            "and with nodes that it may run, and a colour class or a cycle of classes stays together"
        )
    return (
        f"{what} obeys the limits: each device takes nodes that it may run within its memory, "
        "and a colour class stays together"
    )


def memory_conflict(graph: Graph, devices: Devices) -> str:
    """Return why the nodes exceed the memory of all devices together; empty if they do not.

    Sizes are the same or larger without a constraint or a schedule, so leaving one out cannot help.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [1.0, 1.0]}, size=3.0)
    >>> memory_conflict(graph, Devices.accelerated(1, memory=4.0))
    'memory: the nodes take 6 together, all devices hold 4'
    """
    limit = sum(kind.count * kind.memory_limit for kind in devices.kinds if kind.count)
    total = float(graph.size.sum())
    if graph.alternatives:
        return ""  # other ways to run nodes may take less
    if total <= limit * ROUNDING:
        return ""
    return f"memory: the nodes take {total:,.6g} together, all devices hold {limit:,.6g}"


def conflicting_constraints_of(
    regime: Regime, has_plan: Callable[[Regime, float], bool], seconds: float = SECONDS
) -> tuple[str, ...]:
    """Return a text for each constraint, or schedule, that leaves a plan when it alone is left out.

    If leaving out a single one is not enough, but leaving out all is, the text says that.

    Parameters
    ----------
    regime
        Constraints and a schedule that no plan obeys.
    has_plan
        Function that says whether a plan is found under another regime within a number of seconds.
    seconds
        Limit for all attempts together.

    Examples
    --------
    >>> regime = Regime(constraints=Constraints(pin={"head": "gpu"}, stages=5))
    >>> conflicting_constraints_of(regime, lambda fewer, seconds: fewer.constraints.stages is None)
    ('stages = 5',)
    """
    attempts = [
        (words, replace(regime, constraints=fewer)) for words, fewer in without_one(regime.constraints)
    ]
    if regime.schedule is not None:
        attempts.append((f"schedule = {regime.schedule!r}", replace(regime, schedule=None)))
    everything = Regime(regime.replicas, microbatches=regime.microbatches)
    if len(attempts) > 1:
        attempts.append(("all that is demanded", everything))
    end = time.perf_counter() + seconds
    found: list[str] = []
    for number, (words, fewer) in enumerate(attempts):
        left = end - time.perf_counter()
        if left <= 0 or (found and fewer is everything):
            break
        if has_plan(fewer, max(left / (len(attempts) - number), LEAST)):
            found.append(words)
    return tuple(found)


def without_one(constraints: Constraints) -> Iterator[tuple[str, Constraints]]:
    """Yield every constraint as a text, with the constraints that remain without it.

    Examples
    --------
    >>> [words for words, _ in without_one(Constraints(pin={"head": "gpu"}, stages=5))]
    ["pin of 'head': 'gpu'", 'stages = 5']
    """
    for name, value in constraints.as_dict().items():
        if name in ("pin", "forbid"):
            for pattern, target in value.items():
                rest = {key: other for key, other in value.items() if key != pattern}
                yield f"{name} of {pattern!r}: {target!r}", _changed(constraints, name, rest)
        elif name == "together":
            for i, group in enumerate(value):
                yield (
                    f"together: {list(group)!r}",
                    _changed(constraints, name, [*value[:i], *value[i + 1 :]]),
                )
        else:
            yield f"{name} = {value!r}", _changed(constraints, name, getattr(NONE, name))


def _changed(constraints: Constraints, name: str, value: Any) -> Constraints:
    return replace(constraints, **{name: value})


def _only_on(graph: Graph, devices: Devices, name: str) -> np.ndarray:
    """Return which nodes may run on the kind of that name, and on no other kind with devices."""
    present = {kind.name for kind in devices.kinds if kind.count}
    rows = [graph.kinds.index(kind) for kind in graph.kinds if kind in present and kind != name]
    elsewhere = graph.allowed[rows].any(axis=0)
    return np.asarray(~elsewhere)
