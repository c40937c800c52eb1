"""The steps from a captured program to a module on several devices, with copies of the model's tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import networkx as nx
import torch

from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.integrations.torch.graphs.owners import storage_keys, storages_written
from partitioner.integrations.torch.graphs.unlisted import foreign_operators, of_calls
from partitioner.integrations.torch.graphs.values import tensors_of
from partitioner.integrations.torch.placing.assignment import Assignment, require_operators
from partitioner.integrations.torch.placing.cuts import CopiedGraph
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


def homes_of(module: Any, device: Mapping[Any, str]) -> dict[Any, str]:
    """Return the device of each call, and of each parameter and buffer that is read.

    A tensor is where an operator writes it, else where one reads it first, also if it has several names.
    """
    held = {
        node: id(attribute(module, node.target))
        for node in module.graph.find_nodes(op="get_attr")
        if tensors_of(node)
    }
    first: dict[int, str] = {}
    for rule in (_writes, _reads):
        for node, name in device.items():
            for source in node.all_input_nodes:
                if source in held and rule(node, source):
                    first.setdefault(held[source], name)
    return {**device, **{node: first[key] for node, key in held.items() if key in first}}


def _writes(node: Any, source: Any) -> bool:
    return bool(set(storages_written(node)) & set(storage_keys(source)))


def _reads(node: Any, source: Any) -> bool:
    return True


def attribute(module: Any, path: str) -> Any:
    """Return what a module holds under a path with dots."""
    owner, _, name = path.rpartition(".")
    return getattr(module.get_submodule(owner), name)


def settle(module: Any, device: Mapping[str, Any], otherwise: Any) -> None:
    """Replace the tensors that a module holds by copies on their devices; tied ones stay tied.

    Raises
    ------
    WorkloadError
        If a tensor has no data, and so none that could be copied.
    """
    paths = [*device, *(path for path, _ in _named(module))]
    held = {path: attribute(module, path) for path in dict.fromkeys(paths)}
    place = {id(held[path]): where for path, where in device.items()}
    made: dict[int, Any] = {}
    for path, tensor in held.items():
        if id(tensor) not in made:
            made[id(tensor)] = _copied(path, tensor, place.get(id(tensor), otherwise))
        owner, _, name = path.rpartition(".")
        inner = module.get_submodule(owner)
        table = next(t for t in (inner._parameters, inner._buffers, inner.__dict__) if name in t)
        table[name] = made[id(tensor)]


def _named(module: Any) -> Iterable[tuple[str, Any]]:
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _copied(path: str, tensor: Any, device: Any) -> Any:
    if tensor.is_meta and device.type != "meta":
        raise WorkloadError(
            [Flaw(path, "", "", f"has no data that could be copied to {device}: it is on meta")]
        )
    made = tensor.detach().to(device, copy=True)
    return torch.nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else made
