"""Which calls choose among the alternatives of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from partitioner.base.errors import NoPlanFound, OptionError
from partitioner.methods.info import MethodInfo
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import Objective
from partitioner.workload.constraints import Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.virtual_stages.schedules import VIRTUAL

FEATURE = "alternatives"


def can_choose(graph: Graph, devices: Devices) -> bool:
    """Whether a graph has alternatives, and devices are such that the exact method can choose among them."""
    added = devices.communication == "sequential" and devices.synchronisation == "added"
    return bool(graph.alternatives) and added and sum(kind.count > 0 for kind in devices.kinds) == 1


def chooses(graph: Graph, devices: Devices, info: MethodInfo) -> bool:
    """Whether a method is to choose among the alternatives of a graph's nodes.

    Methods that are for nothing else do so on any graph; one for several stages on a device does so where
    there are alternatives, and devices that are busy with transfers.
    """
    if FEATURE not in info.features or not info.needs:
        return FEATURE in info.features
    return bool(graph.alternatives) and devices.communication == "sequential"


def unused_alternatives(graph: Graph, devices: Devices, info: MethodInfo) -> tuple[str, ...]:
    """Return a note if the graph has alternatives and the method does not choose among them."""
    if not graph.alternatives or chooses(graph, devices, info):
        return ()
    return (f"method {info.name} uses no alternatives: its bound holds for plans without them",)


def method_under(
    graph: Graph, devices: Devices, objective: Objective, split: str | None, options: Mapping[str, Any]
) -> str:
    """Return ``"auto"``, or the method to name where constraints alone keep ``"auto"`` from choosing.

    That method plans by the nodes' own figures. Of the options, constraints and schedule count: several
    stages on a device may be limited.
    """
    constraints = options.get("constraints")
    limited = isinstance(constraints, Constraints) and constraints.limited
    limited = limited and options.get("schedule") not in VIRTUAL
    usual = objective.automatic(split or objective.splits[0], (), can_choose(graph, devices))
    return objective.extended_method if limited and usual == objective.choosing_method else "auto"


def require_choosing(method: str) -> None:
    """Raise if :func:`method_under` names a method: a call that leaves the choice open expects alternatives.

    Raises
    ------
    OptionError
        Naming the method.
    """
    if method != "auto":
        raise OptionError(
            "constraints: the graph has alternatives of nodes, and no method chooses among them under "
            f"constraints: method={method!r} plans by the nodes' own figures alone"
        )


def require_choice(graph: Graph, devices: Devices, method: str) -> None:
    """Raise if the bound of a method does not hold for plans that choose among alternatives.

    Raises
    ------
    NoPlanFound
        Naming the method.
    """
    if not chooses(graph, devices, METHODS[method]):
        words = "a placement with alternatives of nodes cannot be certified here"
        raise NoPlanFound(f"{words}: the bound of method {method} holds for plans without them")


def comparable(graph: Graph, devices: Devices, names: Iterable[str], by_name: bool) -> list[bool]:
    """Return which methods can be compared: those that choose among alternatives, if the graph has any.

    If none of them does so, all can be. Without alternatives in the graph, those that do so take part only if
    the user names them.

    Raises
    ------
    OptionError
        If the user names methods whose bounds do not hold for one another.
    """
    choose = [chooses(graph, devices, METHODS[name]) for name in names]
    if not graph.alternatives:
        return [by_name or not each for each in choose]
    if not any(choose):
        return [True] * len(choose)
    if by_name and not all(choose):
        words = "the graph has alternatives, without which other methods find their bounds"
        known = ", ".join(
            info.name for info in METHODS.values() if FEATURE in info.features and not info.needs
        )
        raise OptionError(f"methods: must be among {known}: {words}")
    return choose
