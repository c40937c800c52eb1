"""A stage of a pipeline as a module of torch, whose outputs and gradients the schedules can send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


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
