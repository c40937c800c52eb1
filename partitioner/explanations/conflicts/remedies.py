"""How much memory, or how many devices, would leave a plan where there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from partitioner.base.clock import Clock
from partitioner.base.errors import PartitionerError
from partitioner.base.interruption import Interruption
from partitioner.explanations.conflicts.demands import MEMORY, NUMBER, Demanded, NamedDemand
from partitioner.explanations.wording import memory
from partitioner.planning.sizing.fewest_devices import fewest_devices
from partitioner.planning.sizing.least_memory import least_memory
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
        if demand.what not in (MEMORY, NUMBER) or interruption.asked:
            continue
        seconds = None if math.isinf(clock.left) else max(LEAST, clock.left / len(demands))
        answer = _more_memory if demand.what == MEMORY else _more_devices
        try:
            yield answer(graph, objective, asked, demand, seconds, interruption)
        except PartitionerError:
            continue


def _more_memory(
    graph: Graph,
    objective: str,
    asked: Demanded,
    demand: NamedDemand,
    seconds: float | None,
    stop: Interruption,
) -> str:
    found = least_memory(
        graph,
        asked.devices,
        None,
        objective,
        kind=demand.kind,
        time_limit=seconds,
        stop=stop,
        **asked.options,
    )
    held = next(kind.memory for kind in asked.devices.kinds if kind.name == demand.kind)
    proof = "less is proven not to suffice" if found.proven else f"at least {memory(found.bound)} are needed"
    return (
        f"With {memory(found.memory)} of memory for each device of kind {demand.kind} in place of "
        f"{memory(held or 0.0)} there is a plan; {proof}."
    )


def _more_devices(
    graph: Graph,
    objective: str,
    asked: Demanded,
    demand: NamedDemand,
    seconds: float | None,
    stop: Interruption,
) -> str:
    many = demand.drop(asked)
    found = fewest_devices(
        graph, many.devices, None, objective, kind=demand.kind, time_limit=seconds, stop=stop, **many.options
    )
    given = next(kind.count for kind in asked.devices.kinds if kind.name == demand.kind)
    proof = "fewer are proven not to suffice" if found.proven else f"at least {found.bound} are needed"
    return f"With {found.count} devices of kind {demand.kind} in place of {given} there is a plan; {proof}."
