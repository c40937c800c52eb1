"""The device that a model is measured on: it must be there, and so must the model and its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from partitioner.base.errors import OptionError, shown

RULE = "move the model and its arguments to one device, and name it"


def require_device(device: object) -> None:
    """Raise if a device cannot be measured here.

    Raises
    ------
    OptionError
        If it is neither the CPU nor a CUDA device of this machine.

    Examples
    --------
    >>> require_device("cpu")
    """
    try:
        kind = torch.device(device) if isinstance(device, str) else None
    except RuntimeError:
        kind = None
    if kind is None or kind.type not in ("cpu", "cuda"):
        raise OptionError(f"device = {shown(device)}: must be 'cpu' or 'cuda', or 'cuda:' and a number")
    count = torch.cuda.device_count() if kind.type == "cuda" else 1
    if (kind.index or 0) >= count:
        raise OptionError(f"device = {shown(device)}: torch finds {count} CUDA devices on this machine")


def require_there(device: str, model: Any, arguments: Any) -> None:
    """Raise if a tensor of a model or of the arguments of a call is not on the device.

    Raises
    ------
    OptionError
        Naming the tensor and where it is.
    """
    asked = torch.device(device)
    for name, tensor in _tensors(model, arguments):
        here = tensor.device
        if here.type != asked.type or (here.index or 0) != (asked.index or 0):
            raise OptionError(f"device = {device!r}: {name} is on the device '{here}': {RULE}")


def _tensors(model: Any, arguments: Any) -> Iterator[tuple[str, Any]]:
    yield from ((f"parameter {name}", each) for name, each in model.named_parameters())
    yield from ((f"buffer {name}", each) for name, each in model.named_buffers())
    for number, leaf in enumerate(torch.utils._pytree.tree_leaves(arguments), 1):
        if isinstance(leaf, torch.Tensor):
            yield f"argument {number}", leaf
