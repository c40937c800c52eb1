"""Copies of tensors between devices, as operations of a graph of torch."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from partitioner.integrations.torch.placing.streams import copied_aside, stream_of, wait_for_copy


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
