"""The schedules with several stages on a device: where stages are, and the order of passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from partitioner.base.argument_types import is_count
from partitioner.base.errors import OptionError, shown
from partitioner.workload.in_flight import SCHEDULES
from partitioner.workload.virtual_stages.round_robin import interleaved_row, rounds_of, zero_bubble_row
from partitioner.workload.virtual_stages.row import Row
from partitioner.workload.virtual_stages.vee import dualpipev_row, zbv_row

MOST_CHUNKS = 1024


@dataclass(frozen=True)
class VirtualSchedule:
    """A schedule of p devices with v stages each.

    Parameters
    ----------
    name
        As in ``solve(schedule=...)``.
    vee
        Whether device i has stages i and 2 p - 1 - i; else stage i is on device i mod p.
    chunks
        The least, usual and largest number of stages of a device.
    row
        Returns the passes of a device: ``(rank, devices, chunks, microbatches)`` to a :class:`Row`.
    rule
        Returns which rule a number of microbatches breaks for a number of devices; empty if none.
    """

    name: str
    vee: bool
    chunks: tuple[int, int, int]
    row: Callable[[int, int, int, int], Row]
    rule: Callable[[int, int], str]

    def ranks(self, devices: int, chunks: int) -> tuple[int, ...]:
        """Return the number of the device of every stage.

        Examples
        --------
        >>> VIRTUAL["zbv"].ranks(2, 2), VIRTUAL["interleaved_1f1b"].ranks(2, 2)
        ((0, 1, 1, 0), (0, 1, 0, 1))
        """
        once = tuple(range(devices))
        return once + once[::-1] if self.vee else once * chunks

    def stages_of(self, rank: int, devices: int, chunks: int) -> tuple[int, ...]:
        """Return the stages of a device, in their order.

        Examples
        --------
        >>> VIRTUAL["zbv"].stages_of(0, 2, 2)
        (0, 3)
        """
        return tuple(stage for stage, at in enumerate(self.ranks(devices, chunks)) if at == rank)

    def chunks_for(self, virtual_stages: int | None) -> int:
        """Return the number of stages of a device, the usual one for None.

        Raises
        ------
        OptionError
            If the schedule does not run with that number.
        """
        least, usual, most = self.chunks
        if virtual_stages is None:
            return usual
        if not is_count(virtual_stages, least, most):
            rule = f"must be {least}" if least == most else f"must be an integer from {least} to {most:,}"
            raise OptionError(f"virtual_stages = {shown(virtual_stages)}: {rule} for schedule {self.name!r}")
        return virtual_stages


def _whole_rounds(devices: int, microbatches: int) -> str:
    rounds = rounds_of(devices, microbatches)
    if microbatches % rounds == 0:
        return ""
    return f"must be a multiple of {rounds}, the number of rounds of {devices} microbatches or more"


def _two_each(devices: int, microbatches: int) -> str:
    return "" if microbatches >= 2 * devices else f"must be at least {2 * devices} for {devices} devices"


def _any_number(devices: int, microbatches: int) -> str:
    return ""


VIRTUAL: dict[str, VirtualSchedule] = {
    one.name: one
    for one in (
        VirtualSchedule("interleaved_1f1b", False, (2, 2, MOST_CHUNKS), interleaved_row, _whole_rounds),
        VirtualSchedule("zb_h1", False, (1, 1, MOST_CHUNKS), zero_bubble_row, _whole_rounds),
        VirtualSchedule("zbv", True, (2, 2, 2), zbv_row, _any_number),
        VirtualSchedule("dualpipev", True, (2, 2, 2), dualpipev_row, _two_each),
    )
}
PLANNED = (*SCHEDULES, *VIRTUAL)  # the schedules that plans are made for
