"""The stages of an exported program as modules of torch, which schedules can run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from partitioner.integrations.torch.pipelines.order import DeviceRun
from partitioner.integrations.torch.pipelines.program import ExportedModel


class _Received(torch.autograd.Function):  # type: ignore[misc]
    """A tensor as it is; its gradient contiguous, since gloo sends no other."""

    @staticmethod
    def forward(_: Any, tensor: Any) -> Any:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(_: Any, gradient: Any) -> Any:
        return gradient.contiguous()


class _Sent(torch.autograd.Function):  # type: ignore[misc]
    """A contiguous copy, which a schedule may detach in place; its gradient contiguous."""

    @staticmethod
    def forward(_: Any, tensor: Any) -> Any:
        return tensor.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(_: Any, gradient: Any) -> Any:
        return gradient.contiguous()


class StageModule(nn.Module):  # type: ignore[misc]
    """The operators of a stage, its parameters, and the tensors that it takes and returns.

    Parameters
    ----------
    body
        The operators, as a module that takes and returns a tuple of tensors.
    index
        The number of the stage.
    device
        The plan's device that it runs on.
    operators
        The names of its operators in the exported program.
    inputs, outputs
        Tensors without data that have the shapes and types of what it takes and returns, and say whether a
        gradient flows through them.
    recompute
        Whether a forward pass keeps nothing but what the stage received, and is run again for the backward
        pass; buffers then stay as the first run left them.
    given
        The names of inputs of the model that it reads in addition to what other stages send it.
    """

    def __init__(
        self,
        body: Any,
        index: int,
        device: str,
        operators: tuple[str, ...],
        inputs: tuple[Any, ...],
        outputs: tuple[Any, ...],
        recompute: bool = False,
        given: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.body, self.recompute, self.given = body, recompute, given
        self.index, self.device, self.operators = index, device, operators
        self.inputs, self.outputs = inputs, outputs
        self.whole_backward = _is_whole(body.graph, inputs, outputs)

    def forward(self, *tensors: Any, **given: Any) -> Any:
        """Return the outputs: copies, that share no memory with what the stage keeps."""
        received = [_Received.apply(one) if one.requires_grad else one for one in tensors]
        received += [given[name] for name in self.given]
        return tuple(_Sent.apply(one) for one in self._results(received))

    def _results(self, received: list[Any]) -> Any:
        if not (self.recompute and torch.is_grad_enabled()):
            return self.body(*received)
        contexts = {"context_fn": lambda: (nullcontext(), self._buffers_kept())}
        return checkpoint(self.body, *received, use_reentrant=False, **contexts)

    @contextmanager
    def _buffers_kept(self) -> Iterator[None]:
        """Undo the changes of buffers, such as running means, when the context is left."""
        before = [(buffer, buffer.detach().clone()) for buffer in self.body.buffers()]
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, value in before:
                    buffer.copy_(value)


def _is_whole(graph: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> bool:
    """Whether a gradient flows through an output but from it to no input."""
    given = zip(graph.find_nodes(op="placeholder"), inputs, strict=False)  # those of the model come last
    reached = {node for node, tensor in given if tensor.requires_grad}
    for node in graph.nodes:
        if reached.intersection(node.all_input_nodes):
            reached.add(node)
    returned = zip(graph.output_node().args[0], outputs, strict=True)
    return any(tensor.requires_grad and node not in reached for node, tensor in returned)


def cut(
    program: ExportedModel, runs: Sequence[DeviceRun], recompute: bool = False, copied: Set[str] = frozenset()
) -> tuple[StageModule, ...]:
    """Return the runs as stages; the operators of a run are names of calls of the program.

    A stage takes what any stage from it on reads of what was made before it, and returns the same of the next
    one. The last stage returns what the model returns. Calls that are `copied` are in no run: each stage has
    those that it reads, and is given the inputs of the model that it reads.
    """
    last = len(runs) - 1
    whole = [
        run._replace(operators=_with_copies(program, run, copied, program.results if i == last else ()))
        for i, run in enumerate(runs)
    ]
    carried = [_carried(program, whole, number, copied) for number in range(1, len(runs))]
    taken, returned = [program.inputs, *carried], [*carried, program.results]
    given = [_inputs_read(program, run, i == last) if copied and i else [] for i, run in enumerate(whole)]
    return tuple(
        StageModule(
            body=_body(program, run, (*taken[i], *given[i]), returned[i]),
            index=i,
            device=run.device,
            operators=run.operators,
            inputs=tuple(program.tensor[node.name] for node in taken[i]),
            outputs=tuple(program.tensor[node.name] for node in returned[i]),
            recompute=recompute,
            given=tuple(node.name for node in given[i]),
        )
        for i, run in enumerate(whole)
    )


def _with_copies(
    program: ExportedModel, run: DeviceRun, copied: Set[str], results: Sequence[Any]
) -> tuple[str, ...]:
    """Return the operators of a run after the copied ones that they or the results read."""
    found: set[str] = set()
    left = [*results, *(node for name in run.operators for node in program.calls[name].all_input_nodes)]
    while copied and left:
        node = left.pop()
        if node.name in copied and node.name not in found:
            found.add(node.name)
            left += node.all_input_nodes
    return (*(name for name in program.calls if name in found), *run.operators)


def _carried(program: ExportedModel, runs: Sequence[DeviceRun], number: int, copied: Set[str]) -> list[Any]:
    """Return the nodes of the tensors that pass from before a stage to it or to a later one."""
    early = {name for run in runs[:number] for name in run.operators} - copied
    if not copied:
        early |= {node.name for node in program.inputs}
    late = [name for run in runs[number:] for name in run.operators]
    read = [node for name in late for node in program.calls[name].all_input_nodes]
    return [node for node in dict.fromkeys((*read, *program.results)) if node.name in early]


def _inputs_read(program: ExportedModel, run: DeviceRun, last: bool) -> list[Any]:
    """Return the inputs of the model that a stage reads; the last one returns the results."""
    read = {node for name in run.operators for node in program.calls[name].all_input_nodes}
    return [node for node in program.inputs if node in read or (last and node in program.results)]


def _body(program: ExportedModel, run: DeviceRun, given: Sequence[Any], returned: Sequence[Any]) -> Any:
    """Return a module with the calls of a run and the parameters that they read."""
    graph = torch.fx.Graph()
    made = {node.name: graph.placeholder(node.name) for node in given}

    def value(node: Any) -> Any:
        if node.name not in made and node.op == "get_attr":
            made[node.name] = graph.get_attr(node.target)
        return made[node.name]

    for name in run.operators:
        made[name] = graph.node_copy(program.calls[name], value)
    graph.output(tuple(map(value, returned)))
    return torch.fx.GraphModule(program.module, graph)
