"""The demands of a question, each of which can be dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from partitioner.analysis.explanations.wording import memory
from partitioner.methods.explain import without_one
from partitioner.planning.sizing.pool import with_memory
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.device_validation import MAX_COUNT
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph

MEMORY, NUMBER, OTHER = "memory", "number", "other"


Asked = Mapping[str, Any]  # the keywords of :func:`partitioner.solve` in which demands are, its devices too


@dataclass(frozen=True, eq=False)
class NamedDemand:
    """A demand.

    Parameters
    ----------
    words
        The demand in words.
    drop
        Returns the keywords without it.
    what
        ``"memory"`` or ``"number"`` for the memory or the number of devices of a kind; else ``"other"``.
    kind
        That kind; else empty.
    """

    words: str
    drop: Callable[[Asked], Asked]
    what: str = OTHER
    kind: str = ""


def demands_in(graph: Graph, asked: Asked) -> list[NamedDemand]:
    """Return all demands of a question; links are left out, since they rule out no plan."""
    return [
        *(
            each
            for kind in asked["devices"].kinds
            if kind.count
            for each in _of_kind(graph, asked, kind.name)
        ),
        *_of_constraints(asked),
        *_of_options(asked),
    ]


def constraints_in(asked: Asked) -> Constraints:
    """Return the constraints among the keywords."""
    return asked.get("constraints") or NONE


def without_links(devices: Devices) -> Devices:
    """Return the devices without levels and groups."""
    return replace(devices, levels=(), groups=(), links=())


def _of_kind(graph: Graph, asked: Asked, name: str) -> Iterator[NamedDemand]:
    kind = next(kind for kind in asked["devices"].kinds if kind.name == name)
    if kind.memory is not None:
        words = f"the memory of each device of kind {name} ({memory(kind.memory)})"
        yield NamedDemand(words, lambda one: _unlimited(one, name), MEMORY, name)
    words = f"the number of devices of kind {name} ({kind.count})"
    yield NamedDemand(words, lambda one: _any_number(one, name, len(graph)), NUMBER, name)


def _unlimited(asked: Asked, name: str) -> Asked:
    return {**asked, "devices": with_memory(asked["devices"], name, None)}


def _any_number(asked: Asked, name: str, nodes: int) -> Asked:
    """Return what is demanded with as many devices as a plan can use, of which it need not use all."""
    kinds = tuple(
        replace(kind, count=min(MAX_COUNT, max(kind.count, nodes))) if kind.name == name else kind
        for kind in asked["devices"].kinds
    )
    fewer = replace(constraints_in(asked), use_all_devices=False)
    return {**asked, "devices": replace(asked["devices"], kinds=kinds), "constraints": fewer}


def _of_constraints(asked: Asked) -> Iterator[NamedDemand]:
    for words, _ in without_one(constraints_in(asked)):
        yield NamedDemand(words, lambda one, words=words: _without(one, words))  # type: ignore[misc]


def _without(asked: Asked, dropped: str) -> Asked:
    fewer = [rest for words, rest in without_one(constraints_in(asked)) if words == dropped]
    return {**asked, "constraints": fewer[0]} if fewer else asked


def _of_options(asked: Asked) -> Iterator[NamedDemand]:
    if asked.get("schedule") is not None:
        words = f"schedule = {asked['schedule']!r}"
        yield NamedDemand(words, lambda one: {**one, "schedule": None, "virtual_stages": None})
    if asked.get("granularity") == "layer":
        words = "granularity = 'layer'"
        yield NamedDemand(words, lambda one: {**one, "granularity": "operator"})
