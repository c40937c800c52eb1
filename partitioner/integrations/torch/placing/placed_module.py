"""The steps from a captured program to a module that runs on several devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import networkx as nx
import torch

from partitioner.base.errors import OptionError, shown
from partitioner.integrations.torch.graphs.unlisted import foreign_operators, of_calls
from partitioner.integrations.torch.placing.assignment import Assignment, require_operators
from partitioner.integrations.torch.placing.cuts import CopiedGraph
from partitioner.integrations.torch.placing.homes import homes_of, settle
from partitioner.integrations.torch.placing.program import put_on
from partitioner.integrations.torch.placing.writes import Writes, require_inputs_kept


def placed_module(
    module: Any, operator: Mapping[Any, str], assignment: Assignment, devices: Mapping[str, Any]
) -> Any:
    """Return the module with its calls in the plan's order and its tensors and copies on their devices.

    Parameters
    ----------
    module
        The module of the captured program, which is changed.
    operator
        The operator that each call belongs to.
    assignment
        Where operators run.
    devices
        The device of torch for each name.
    """
    foreign = foreign_operators(operator, assignment.device)
    require_operators(assignment, operator.values(), {*operator.values()} - {*foreign})
    device = of_calls(operator, assignment.device)
    require_inputs_kept(module.graph, {node.name: name for node, name in operator.items()})
    if assignment.rank:
        reorder(module.graph, of_calls(operator, assignment.rank))
    home = homes_of(module, device)
    module.copies = tuple(CopiedGraph(module.graph, home, devices).copies)
    put_on({node: devices[name] for node, name in device.items()}, module)
    held = {node.target: devices[name] for node, name in home.items() if node.op == "get_attr"}
    settle(module, held, devices[next(iter(device.values()))])
    module.graph.lint()
    module.recompile()
    return module


# An order of the operators: that of the plan, as far as what they read allows it.


def reorder(graph: Any, rank: Mapping[Any, int]) -> None:
    """Put the calls of a graph into the order of their ranks, each after what it depends on.

    Operators on memory that one of them writes into keep their order, and so do those that draw at random, so
    that they draw the same numbers.
    """
    calls = list(rank)
    position = {node: i for i, node in enumerate(calls)}
    depends: nx.DiGraph[Any] = nx.DiGraph()
    depends.add_nodes_from(calls)
    depends.add_edges_from(
        (read, node) for node in calls for read in node.all_input_nodes if read in position
    )
    for kept in _kept(graph, calls):
        depends.add_edges_from(pairwise(kept))
    found = nx.lexicographical_topological_sort(depends, key=lambda node: (rank[node], position[node]))
    _moved_behind(calls[0].prev, list(found))


def _kept(graph: Any, calls: Iterable[Any]) -> list[list[Any]]:
    """Return the groups of calls that keep their order."""
    writes, groups = Writes(graph), dict[Any, list[Any]]()
    for node in calls:
        for key in writes.written(node):
            groups.setdefault(key, []).append(node)
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            groups.setdefault("random", []).append(node)
    return list(groups.values())


def _moved_behind(anchor: Any, nodes: Iterable[Any]) -> None:
    for node in nodes:
        anchor.append(node)
        anchor = node


# The device of torch that stands for each device of a plan.


HOST = "cpu"


def torch_devices(names: Iterable[str], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a device of torch for each name: the given ones, else CUDA's in order, else the CPU for all.

    Raises
    ------
    OptionError
        If a name has no device, or a device is unknown to torch or not in this machine.

    Examples
    --------
    >>> torch_devices(["accelerator0"], {"accelerator0": "cpu"})
    {'accelerator0': device(type='cpu')}
    """
    return {name: _device(name, given) for name in names} if given is not None else _default(list(names))


def _default(names: list[str]) -> dict[str, Any]:
    accelerators = [name for name in names if not name.startswith(HOST)]
    enough = torch.cuda.is_available() and torch.cuda.device_count() >= len(accelerators)
    found = {name: torch.device("cuda", i) for i, name in enumerate(accelerators)} if enough else {}
    return {name: found.get(name, torch.device(HOST)) for name in names}


def _device(name: str, given: Mapping[str, Any]) -> Any:
    if not isinstance(given, Mapping) or name not in given:
        raise OptionError(f"devices = {shown(given)}: must have a device of torch for {shown(name)}")
    try:
        device = torch.device(given[name])
    except (RuntimeError, TypeError) as error:
        line = str(error).partition("\n")[0]
        raise OptionError(f"devices: {shown(given[name])} for {shown(name)}: {line}") from None
    if device.type != "cuda":
        return device
    index, count = device.index or 0, torch.cuda.device_count()
    if index >= count:
        raise OptionError(f"devices: {device} for {shown(name)}: this machine has {count} CUDA devices")
    return torch.device("cuda", index)
