"""Copies from and to CUDA devices on streams of their own, beside what the devices compute."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import Any

import torch


def copied_aside(tensor: Any, device: Any) -> Any:
    """Return a copy; on CUDA it is only started, and `wait_for_copy` must come before it is read."""
    source = tensor.device
    with ExitStack() as stack:
        for here, there in ((source, device), (device, source)):
            if here.type == "cuda":
                side = side_stream(here, there)
                if here == source:
                    side.wait_stream(torch.cuda.current_stream(here))
                    tensor.record_stream(side)  # its memory is not given out again before it is copied
                stack.enter_context(torch.cuda.stream(side))
        return tensor.to(device, copy=True, non_blocking=device.type == "cuda")


def wait_for_copy(source: Any, data: Any) -> None:
    """Let what is computed next on the device of a copy from `source` wait until the copy is complete."""
    if data.device.type == "cuda":
        current = torch.cuda.current_stream(data.device)
        current.wait_stream(side_stream(data.device, source))
        data.record_stream(current)


@cache
def side_stream(here: Any, there: Any) -> Any:
    """Return the stream of a CUDA device for copies that another device sends or gets."""
    return torch.cuda.Stream(here)
