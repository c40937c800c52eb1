"""How much memory, or how many devices, would leave a plan where there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from partitioner.base.clock import Clock
from partitioner.base.errors import PartitionerError
from partitioner.base.interruption import Interruption
from partitioner.explanations.conflicts.demands import MEMORY, NUMBER, Demanded, NamedDemand
from partitioner.explanations.wording import memory
from partitioner.planning.request import ANY_PLAN
from partitioner.planning.sizing.fewest_devices import fewest_devices
from partitioner.planning.sizing.least_memory import least_memory
from partitioner.planning.sizing.pool import kind_in_question, with_count
from partitioner.planning.solve import solve
from partitioner.workload.graph import Graph

LEAST = 0.5  # seconds for an answer


def remedies_of(
    graph: Graph,
    objective: str,
    asked: Demanded,
    demands: Sequence[NamedDemand],
    clock: Clock,
    interruption: Interruption,
) -> Iterator[str]:
    """Yield a sentence for each of the demands that says how much of it would leave a plan.

    Nothing is said of a demand for which no amount suffices, or none was found.
    """
    for demand in demands:
        if demand.what not in ANSWERS or interruption.asked:
            continue
        seconds = None if math.isinf(clock.left) else max(LEAST, clock.left / len(demands))
        given = {"kind": demand.kind, "objective": objective, "time_limit": seconds, "stop": interruption}
        with suppress(PartitionerError):
            yield ANSWERS[demand.what](graph, asked, demand, given)


def _more_memory(graph: Graph, asked: Demanded, demand: NamedDemand, given: Mapping[str, Any]) -> str:
    found = least_memory(graph, asked.devices, **given, **asked.options)
    held = kind_in_question(asked.devices, demand.kind).memory or 0.0
    proof = "less is proven not to suffice" if found.proven else f"at least {memory(found.bound)} are needed"
    return (
        f"With {memory(found.memory)} of memory for each device of kind {demand.kind} in place of "
        f"{memory(held)} there is a plan; {proof}."
    )


def _more_devices(graph: Graph, asked: Demanded, demand: NamedDemand, given: Mapping[str, Any]) -> str:
    """Return the fewest devices with a plan; raise if all must be used and that number has none."""
    many = demand.drop(asked)
    found = fewest_devices(graph, many.devices, None, **given, **many.options)
    had = kind_in_question(asked.devices, demand.kind).count
    if asked.constraints.use_all_devices:  # the pool above need not be used up
        exact = with_count(asked.devices, demand.kind, found.count)
        limits = {name: given[name] for name in ("objective", "time_limit", "stop")}
        solve(graph, exact, gap=ANY_PLAN, **limits, **asked.options)
    proof = "fewer are proven not to suffice" if found.proven else f"at least {found.bound} are needed"
    return f"With {found.count} devices of kind {demand.kind} in place of {had} there is a plan; {proof}."


ANSWERS = {MEMORY: _more_memory, NUMBER: _more_devices}
