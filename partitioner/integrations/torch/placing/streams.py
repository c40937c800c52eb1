"""Copies from and to CUDA devices on streams of their own, beside what the devices compute."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import Any

import torch


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
