"""The rules for plans whose nodes run by alternatives: which tool can say so, and of which modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, shown
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.exports.target import Target
from partitioner.workload.modules import Modules

OWN = "its own figures"


def divided(placed: Placed, copies: Replicas, order: Sequence[int]) -> Iterator[Flaw]:
    """Yield a flaw for each stage that several devices run together; `order` has the stages' devices."""
    for number, stage in enumerate(order):
        together = int(placed.degree[placed.device == stage].max(initial=1))
        if together > 1:
            each = f", in each of {copies.count[stage]} copies" if copies.count[stage] > 1 else ""
            where = f"is run by {together} devices together{each}"
            rule = "tensor-parallel stages cannot be expressed"
            yield Flaw(f"stage {number} (of {placed.names[stage]})", "", where, rule)


def unsaid(placed: Placed, order: Sequence[int], chosen: Mapping[Any, str], target: Target) -> Iterator[Flaw]:
    """Yield a flaw for each stage that has chosen ways if the target has no words for them."""
    if target.ways:
        return
    for number, stage in enumerate(order):
        nodes = (placed.graph.ids[i] for i in np.flatnonzero(placed.device == stage).tolist())
        counts = Counter(chosen[node] for node in nodes if node in chosen)
        if counts:
            where = f"runs {', '.join(f'{count} nodes by {shown(way)}' for way, count in counts.items())}"
            yield Flaw(
                f"stage {number} (of {placed.names[stage]})",
                "",
                where,
                "must run all nodes by their own figures",
            )


def torn_ways(placed: Placed, modules: Modules, chosen: Mapping[Any, str]) -> Iterator[Flaw]:
    """Yield a flaw for each module whose nodes do not all run in one way."""
    ways = _ways_by_module(placed, modules, chosen)
    for name, found in ways.items() if chosen else ():
        if len(found) > 1:
            words = " and ".join(OWN if way is None else shown(way) for way in found)
            yield Flaw(f"module {name}", "", f"runs by {words}", "all nodes of a module must run in one way")


def module_ways(placed: Placed, modules: Modules, chosen: Mapping[Any, str]) -> dict[str, str]:
    """Return the name of the way of each module that does not run by its own figures."""
    ways = _ways_by_module(placed, modules, chosen)
    return {name: way for name, found in ways.items() for way in found if way is not None}


def _ways_by_module(
    placed: Placed, modules: Modules, chosen: Mapping[Any, str]
) -> dict[str, dict[str | None, None]]:
    """Return the distinct ways of the nodes of each module that have several; None for own figures."""
    graph, found = placed.graph, {name: dict[str | None, None]() for name in modules.names}
    for i in np.flatnonzero(modules.of >= 0).tolist():
        if graph.ids[i] in graph.alternatives:
            found[modules.names[modules.of[i]]][chosen.get(graph.ids[i])] = None
    return found
