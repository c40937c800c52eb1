"""One process of a step: it runs the calls of its device, and exchanges tensors with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as distributed
from torch.utils._pytree import tree_leaves

from partitioner.integrations.torch.graphs.capture import Seen
from partitioner.integrations.torch.graphs.values import as_captured, in_layout, tensors_of
from partitioner.integrations.torch.separate.device_program import DeviceProgram


class RankAnswer(NamedTuple):
    """The values that a process returns, by name, and the bytes that it sent."""

    made: Mapping[str, Any]
    sent: int


def given_values(seen: Seen, arguments: Any) -> dict[str, Any]:
    """Return the values of what no call makes, by name: arguments, tensors of the model, constants.

    Parameters
    ----------
    seen
        The joint graph.
    arguments
        The arguments of the call that was captured.
    """
    leaves = iter(tree_leaves(arguments))
    found = {}
    for node in seen.graph.find_nodes(op="placeholder"):
        kind, path = seen.home[node.name]
        if kind == "gradient":
            (form,) = tensors_of(node)
            value = torch.ones(form.shape, dtype=form.dtype)
        else:
            value = next(leaves) if kind == "input" else seen.tensors[path]
        found[node.name] = value.detach() if isinstance(value, torch.Tensor) else value
    held = seen.graph.find_nodes(op="get_attr")
    return found | {node.name: getattr(node.graph.owning_module, node.target) for node in held}


def run_rank(programs: Sequence[DeviceProgram], rank: int, given: Mapping[str, Any]) -> RankAnswer:
    """Run the calls of a device; the process is the rank of that number in torch's process group."""
    program, values = programs[rank], dict(given)
    incoming = {node.name: _asked(node, source, program) for node, source in program.receives}
    sending: list[tuple[Any, Any]] = []
    with torch.no_grad():
        for node in program.calls:
            for read in node.all_input_nodes:
                if read.name in incoming:
                    values[read.name] = incoming.pop(read.name).value()
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: values[one.name])
            values[node.name] = as_captured(node, node.target(*args, **kwargs))
            for target in program.sends.get(node, ()):
                data = values[node.name].contiguous()
                sending.append((distributed.isend(data, target, tag=program.number[node.name]), data))
    for work, _ in sending:
        work.wait()
    sent = sum(data.numel() * data.element_size() for _, data in sending)
    return RankAnswer({name: values[name] for name in program.results}, sent)


class Incoming(NamedTuple):
    """A tensor on its way: what says when it is there, its numbers, and the form in which it was captured."""

    work: Any
    data: Any
    form: Any

    def value(self) -> Any:
        """Return the tensor once it is there, with the strides that later calls were captured for."""
        self.work.wait()
        return in_layout(self.data, self.form)


def _asked(node: Any, source: int, program: DeviceProgram) -> Incoming:
    """Ask for a tensor of another process."""
    (form,) = tensors_of(node)
    data = torch.empty(form.shape, dtype=form.dtype)
    return Incoming(distributed.irecv(data, source, tag=program.number[node.name]), data, form)
