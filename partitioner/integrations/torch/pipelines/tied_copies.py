"""Copies of tied weights on several ranks of a pipeline, whose gradients are added up after each batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as distributed

from partitioner.integrations.torch.pipelines.stage_module import StageModule


def tied_among(stages: Sequence[StageModule]) -> tuple[tuple[Any, tuple[str, ...]], ...]:
    """Return the trained parameters that stages on several devices read, with these devices in order."""
    found: dict[int, tuple[Any, dict[str, None]]] = {}
    for stage in stages:
        for one in stage.parameters():
            if one.requires_grad:
                found.setdefault(id(one), (one, {}))[1][stage.device] = None
    return tuple((one, tuple(devices)) for one, devices in found.values() if len(devices) > 1)


class TiedCopies:
    """The copies of tied weights that a rank holds; every rank of the pipeline makes one, in the same order.

    Parameters
    ----------
    tied
        All parameters that several devices read, with these.
    devices
        The device of each rank.
    """

    def __init__(self, tied: Sequence[tuple[Any, tuple[str, ...]]], devices: Sequence[str]) -> None:
        groups: dict[tuple[int, ...], Any] = {}
        rank = distributed.get_rank()
        self._copies: list[tuple[Any, Any]] = []
        for one, readers in tied:
            ranks = tuple(devices.index(device) for device in readers)
            if ranks not in groups:
                groups[ranks] = distributed.new_group(list(ranks))
            if rank in ranks:
                self._copies.append((one, groups[ranks]))
        self._before: list[Any] = []

    def begin(self) -> None:
        """Put the gradients of earlier steps aside, which are added up already."""
        self._before = [one.grad for one, _ in self._copies]
        for one, _ in self._copies:
            one.grad = None

    def add_up(self) -> None:
        """Let each copy have the sum of the gradients of all copies, and those of earlier steps."""
        for (one, group), before in zip(self._copies, self._before, strict=True):
            own = torch.zeros_like(one) if one.grad is None else one.grad.contiguous()
            distributed.all_reduce(own, group=group)
            one.grad = own if before is None else before.add_(own)
