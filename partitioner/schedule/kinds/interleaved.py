"""Interleaved 1F1B: several stages on each device."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.schedule.kinds.kind import require_pairs
from partitioner.schedule.orders import Lane, lanes, table_of
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table
from partitioner.workload.graph import Ints


class Interleaved:
    """Interleaved 1F1B in Megatron's order: p devices, v stages each, stage k on device k mod p.

    Two devices, two stages each, two microbatches::

        device 0   0F0  0F1  2F0  2F1  .    2B0  .    2B1  0B0  0B1
        device 1   .    1F0  1F1  3F0  3B0  3F1  3B1  1B0  1B1  .

    Microbatches run in groups of p; their number must be a multiple of p. Device i runs
    2 (p - i - 1) + (v - 1) p forward passes before it alternates forward and backward passes.
    """

    name: ClassVar[str] = "interleaved"
    trains: ClassVar[bool | None] = True
    halves: ClassVar[bool] = False
    versions: ClassVar[bool] = False

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return the table in Megatron's order."""
        devices = _ring(self.name, passes)
        if microbatches % len(devices):
            rule = f"must be a multiple of the {len(devices)} devices for schedule {self.name!r}"
            raise OptionError(f"microbatches = {microbatches}: {rule}")
        number = {device: i for i, device in enumerate(devices)}
        rows = [_row(lane, len(devices), number[lane.device], passes) for lane in lanes(passes, microbatches)]
        return table_of(passes, rows)


def _ring(name: str, passes: Passes) -> list[int]:
    """Return the devices in the order of their first stages; raise if the stages do not go round them."""
    require_pairs(name, passes)
    order = passes.stage_devices()
    count = len(passes.replicas)
    if any(len(copies) > 1 for copies in passes.replicas.values()):
        raise OptionError(f"schedule = {name!r}: does not support replicas")
    if order != order[:count] * (len(order) // count):
        raise OptionError(f"schedule = {name!r}: stage k must be on device k mod p, for p devices")
    return order[:count]


def _row(lane: Lane, devices: int, number: int, passes: Passes) -> tuple[int, Ints, Ints]:
    chunks, count = len(lane.passes) // 2, len(lane.microbatches)
    step = np.arange(chunks * count)
    group, turn, place = step // (devices * chunks), step // devices % chunks, step % devices
    microbatch = group * devices + place
    forward, backward = lane.passes[:chunks], lane.passes[chunks:]
    warmup = min(2 * (devices - number - 1) + (chunks - 1) * devices, len(step))
    order = np.argsort(np.concatenate((2 * step, 2 * (step + warmup) + 1)), kind="stable")
    kinds = np.concatenate((forward[turn], backward[turn]))
    return lane.device, kinds[order], np.tile(microbatch, 2)[order]
