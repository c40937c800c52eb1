"""The arguments of the planner, and their checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from partitioner.base.errors import OptionError, shown

MAX_MACHINES = 1024


class MachineLevel(NamedTuple):
    """`machines` machines, or groups of the level below, joined by links of `bandwidth`."""

    machines: int
    bandwidth: float


@dataclass(frozen=True)
class Restrictions:
    """Restrictions on the pipeline; the fields are arguments of :func:`plan`."""

    straight: bool = False
    fewer_machines: bool = False
    activation_compression_ratio: float | None = None
    memory: float | None = None
    consistent: bool = False


def check(restrictions: Restrictions) -> None:
    """Raise :class:`OptionError` if a restriction is out of its range."""
    ratio, memory = restrictions.activation_compression_ratio, restrictions.memory
    if ratio is not None and not _positive(ratio):
        raise OptionError(f"activation_compression_ratio = {shown(ratio)}: must be None or a number above 0")
    if memory is not None and memory != 0 and not _positive(memory):
        raise OptionError(f"memory = {shown(memory)}: must be None or a number of at least 0")


def checked_levels(levels: Sequence[tuple[int, float]]) -> list[MachineLevel]:
    """Return the levels, or raise :class:`OptionError` if there is none or one is out of its range."""
    if not levels or not all(_is_level(level) for level in levels):
        rule = f"must be pairs (machines, bandwidth), 1 to {MAX_MACHINES} machines and a bandwidth above 0"
        raise OptionError(f"levels = {shown(levels)}: {rule}")
    return [MachineLevel(machines, float(bandwidth)) for machines, bandwidth in levels]


def _is_level(level: tuple[int, float]) -> bool:
    return (
        isinstance(level, Sequence)
        and len(level) == 2
        and isinstance(level[0], int)
        and 1 <= level[0] <= MAX_MACHINES
        and _positive(level[1])
    )


def _positive(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < math.inf  # type: ignore[operator]
