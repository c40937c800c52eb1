"""The device of each parameter and buffer, and the copies of a model's tensors there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.integrations.torch.graphs.owners import storage_keys, storages_written
from partitioner.integrations.torch.graphs.values import tensors_of


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
