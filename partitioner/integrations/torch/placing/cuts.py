"""Copies in a graph of torch where a tensor is read on another device than its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from partitioner.integrations.torch.graphs.owners import storage_keys, storages_written
from partitioner.integrations.torch.graphs.values import nbytes_of, tensors_of
from partitioner.integrations.torch.placing.writes import Writes

INPUT = "input"
CALL = "call_function"
KINDS = {"placeholder": INPUT, "get_attr": "parameter", CALL: "operator"}


@dataclass(frozen=True)
class TensorCopy:
    """A copy of a tensor that each call makes.

    Parameters
    ----------
    tensor
        The name of the operator that makes it or of the input, or the path of the parameter or buffer.
    kind
        Which of these: ``"operator"``, ``"parameter"`` (also for buffers), ``"input"``, or ``"constant"`` for
        what operators make without an input, a parameter or chance. The graph counts constants as sent once.
    source, target
        The devices of the plan; the source of an input is ``"input"``.
    nbytes
        The bytes of its numbers.
    """

    tensor: str
    kind: str
    source: str
    target: str
    nbytes: int


class CopiedGraph:
    """Inserts the copies into a graph: one for each tensor, reading device and state of the tensor's memory.

    A copy is started right after the tensor is made and arrives before its first reader. Readers on one
    device share an arrival, and so the gradient that is copied back, if no operator elsewhere reads the
    tensor after them; the others have one each. So gradients are added in the order of the model.

    Parameters
    ----------
    graph
        The graph.
    home
        The device of each call and of each parameter and buffer that is read.
    devices
        The device of torch for each device of `home`.
    """

    def __init__(self, graph: Any, home: Mapping[Any, str], devices: Mapping[str, Any]) -> None:
        self._home, self._devices, self._writes = home, devices, Writes(graph)
        self._constant = _constants(graph)
        self._sent: dict[tuple[Any, ...], Any] = {}
        self._here: dict[tuple[Any, ...], Any] = {}
        self.copies: list[TensorCopy] = []
        position = {node: i for i, node in enumerate(graph.nodes)}
        self._last = {node: self._last_readers(node, position) for node in position if tensors_of(node)}
        for reader in [node for node in graph.nodes if node in home and node.op == CALL]:
            for read in reader.all_input_nodes:
                if tensors_of(read) and home.get(read) != home[reader]:
                    reader.replace_input_with(read, self._arrival(read, reader))

    def _last_readers(self, read: Any, position: Mapping[Any, int]) -> frozenset[Any]:
        """Return the readers on one device after which no other device reads."""
        readers = sorted(read.users, key=position.__getitem__, reverse=True)
        place = [self._home.get(reader, self._home.get(read)) for reader in readers]
        count = len(list(takewhile(lambda name: name == place[0], place)))
        return frozenset(readers[:count])

    def _arrival(self, read: Any, reader: Any) -> Any:
        """Return the node that a reader reads in place of a tensor on another device."""
        data = self._data(read, reader)
        key = (read, data, None if reader in self._last[read] else reader)
        if key not in self._here:
            with reader.graph.inserting_before(reader):
                self._here[key] = reader.graph.call_function(arrived, (read, data))
        return self._here[key]

    def _data(self, read: Any, reader: Any) -> Any:
        """Return the node that starts the copy."""
        target, state = self._home[reader], self._writes.last_before(reader, read)
        key = (read, target, state)
        if key not in self._sent:
            after = state if state.op != "placeholder" else reader.graph.find_nodes(op="placeholder")[-1]
            with reader.graph.inserting_after(after):
                given = (read, self._devices[target], self._writes.may_follow(read))
                self._sent[key] = reader.graph.call_function(moved, given)
            source = self._home.get(read, INPUT)
            kind = "constant" if read in self._constant and read.op == CALL else KINDS[read.op]
            nbytes = sum(nbytes_of(tensor, read.name) for tensor in tensors_of(read))
            name = read.target if read.op == "get_attr" else read.name
            self.copies.append(TensorCopy(name, kind, source, target, nbytes))
        return self._sent[key]


def _constants(graph: Any) -> set[Any]:
    """Return the nodes that depend on no input, parameter, chance or write; buffers are among them."""
    found: set[Any] = set()
    written = {key for node in graph.nodes for key in storages_written(node)}
    parameters = {path for path, _ in graph.owning_module.named_parameters(remove_duplicate=False)}
    for node in graph.nodes:
        held = node.op == "get_attr" and tensors_of(node) and node.target not in parameters
        held = held and not written & {*storage_keys(node)}
        drawn = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if held or (node.op == CALL and not drawn and found.issuperset(node.all_input_nodes)):
            found.add(node)
    return found


# Copies of tensors between devices, as operations of a graph of torch.


def moved(tensor: Any, device: Any, rewritten: bool = False) -> Any:
    """Return a copy of a tensor's numbers on a device, also if it is the tensor's own.

    Parameters
    ----------
    tensor, device
        The tensor, and the device of torch.
    rewritten
        Whether something may write into the tensor later.
    """
    if "cuda" in (tensor.device.type, device.type):
        return copied_aside(tensor.detach(), device, rewritten)
    return tensor.detach().to(device, copy=True)


class Arrival(torch.autograd.Function):  # type: ignore[misc]
    """A tensor on the device of its copy; its gradient is copied back."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, data: Any) -> Any:
        """Return the copy once it has arrived."""
        ctx.home, ctx.stream = tensor.device, stream_of(tensor.device)  # autograd goes on there
        wait_for_copy(tensor.device, data, stream_of(data.device))
        return data.view_as(data)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, gradient: Any) -> Any:
        """Return the gradient on the tensor's device."""
        found = moved(gradient, ctx.home)
        wait_for_copy(gradient.device, found, ctx.stream)
        return found, None


def arrived(tensor: Any, data: Any) -> Any:
    """Return a copy that is the tensor itself to autograd."""
    return Arrival.apply(tensor, data)


# Copies from and to CUDA devices on streams of their own, beside what the devices compute.


def copied_aside(tensor: Any, device: Any, rewritten: bool) -> Any:
    """Return a copy; on CUDA it is only started, and `wait_for_copy` must come before it is read.

    Where the tensor may be written again, what its device computes next waits until it has been read.
    """
    source = tensor.device
    with ExitStack() as stack:
        for here, there in ((source, device), (device, source)):
            if here.type == "cuda":
                side = side_stream(here, there)
                if here == source:
                    side.wait_stream(torch.cuda.current_stream(here))
                    tensor.record_stream(side)  # its memory is not given out again before it is copied
                stack.enter_context(torch.cuda.stream(side))
        found = tensor.to(device, copy=True, non_blocking=device.type == "cuda")
    if rewritten and source.type == "cuda":
        torch.cuda.current_stream(source).wait_stream(side_stream(source, device))
    return found


def stream_of(device: Any) -> Any:
    """Return the stream on which a CUDA device computes now; None for another device."""
    return torch.cuda.current_stream(device) if device.type == "cuda" else None


def wait_for_copy(source: Any, data: Any, stream: Any) -> None:
    """Let what is computed next on a stream of the device of a copy wait until the copy is complete."""
    if stream is not None:
        stream.wait_stream(side_stream(data.device, source))
        data.record_stream(stream)


@cache
def side_stream(here: Any, there: Any) -> Any:
    """Return the stream of a CUDA device for copies that another device sends or gets."""
    return torch.cuda.Stream(here)
