"""Schedules as rows, with several stages on a device or one: where stages are, and the order of passes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.base.argument_types import is_count
from partitioner.base.errors import OptionError, shown
from partitioner.workload.directions import BACKWARD, DIRECTIONS, FORWARD, INPUT, WEIGHT
from partitioner.workload.graph import Ints
from partitioner.workload.in_flight import SCHEDULES


class Row(NamedTuple):
    """The passes of a device in the order in which they run; each array has shape (passes,).

    Parameters
    ----------
    chunk
        Which of the device's stages each pass is of, from 0 in the order of the stages.
    direction
        A position in :data:`partitioner.workload.directions.DIRECTIONS`.
    microbatch
        The microbatch, from 0.
    """

    chunk: Ints
    direction: Ints
    microbatch: Ints

    def cells(self) -> list[str]:
        """Return a text for each pass: chunk, direction, microbatch.

        Examples
        --------
        >>> row_of([(0, "F", 0), (1, "F", 0)]).cells()
        ['0F0', '1F0']
        """
        parts = zip(self.chunk.tolist(), self.direction.tolist(), self.microbatch.tolist(), strict=True)
        return [f"{chunk}{DIRECTIONS[direction]}{microbatch}" for chunk, direction, microbatch in parts]


def row_of(passes: list[tuple[int, str, int]]) -> Row:
    """Return the row of passes given as chunk, letter of the direction, and microbatch."""
    found = [(chunk, DIRECTIONS.index(letter), microbatch) for chunk, letter, microbatch in passes]
    return Row(*np.array(found, dtype=np.int64).reshape(-1, 3).T)


# The order of passes where device i has stages i and 2 p - 1 - i: ZB-V and DualPipeV.


def zbv_row(rank: int, devices: int, chunks: int, microbatches: int) -> Row:
    """Return the passes of a device under ZB-V (Qi et al., Pipeline Parallelism with Controllable Memory).

    The order is that for at least ``2 devices - 1`` microbatches, without those that do not exist.

    Examples
    --------
    >>> zbv_row(0, 1, 2, 2).cells()
    ['0F0', '1F0', '1I0', '1W0', '0F1', '0I0', '0W0', '1F1', '1I1', '1W1', '0I1', '0W1']
    """
    count: Counter[str] = Counter()
    found = []
    for step in _zbv_steps(rank, devices, max(2 * devices - 1, microbatches)):
        found.append((int(step[0]), step[1], count[step]))
        count[step] += 1
    return row_of([one for one in found if one[2] < microbatches])


def _zbv_steps(rank: int, devices: int, microbatches: int) -> Iterator[str]:
    """Yield chunk and direction of every pass; microbatches follow one another in each of them."""
    below = devices - rank
    yield from ["0F"] * (2 * below - 1)
    yield from ["1F", "0F"] * rank
    yield from ["1F", "1I", "1W"] * below
    left = microbatches - (2 * devices - rank - 1)
    for i in range(microbatches - devices):
        yield from ["0F"] * (i < left)
        yield from ("0I", "0W", "1F", "1I", "1W")
    yield from ["0I", "1I"] * rank
    yield from ["0I", "0W"] * below
    yield from ["1W"] * rank
    yield from ["0W"] * rank


class _DualPipe:
    """The passes so far; microbatches follow one another in each chunk and direction."""

    def __init__(self) -> None:
        self.passes: list[tuple[int, str, int]] = []
        self.count: Counter[tuple[int, str]] = Counter()
        self.waiting: deque[tuple[int, int]] = deque()

    def forward(self, chunk: int) -> None:
        """Add a forward pass."""
        self.passes.append((chunk, "F", self._next(chunk, "F")))

    def backward(self, chunk: int, halved: bool = False) -> None:
        """Add a backward pass; if it is halved, its second half waits for :meth:`weights`."""
        microbatch = self._next(chunk, "I")
        self.passes.append((chunk, "I", microbatch))
        if halved:
            self.waiting.append((chunk, microbatch))
        else:
            self.passes.append((chunk, "W", microbatch))

    def weights(self) -> None:
        """Add the second half that has waited longest, if any waits."""
        if self.waiting:
            chunk, microbatch = self.waiting.popleft()
            self.passes.append((chunk, "W", microbatch))

    def _next(self, chunk: int, letter: str) -> int:
        self.count[chunk, letter] += 1
        return self.count[chunk, letter] - 1


def dualpipev_row(rank: int, devices: int, chunks: int, microbatches: int) -> Row:
    """Return the passes of a device under DualPipeV (DeepSeek-V3, Section 3.2.1; its published program).

    A whole backward pass is written as its two halves, one after the other. Of a forward and a backward pass
    that DualPipeV overlaps, the forward pass comes first.

    Examples
    --------
    >>> dualpipev_row(0, 1, 2, 2).cells()
    ['0F0', '1F0', '0F1', '1I0', '1W0', '1F1', '0I0', '0W0', '1I1', '1W1', '0I1', '0W1']
    """
    found, below = _DualPipe(), devices - rank - 1
    for _ in range(2 * below):
        found.forward(0)
    for _ in range(rank + 1):
        found.forward(0)
        found.forward(1)
    for _ in range(below):
        found.backward(1, halved=True)
        found.weights()
        found.forward(1)
    steady = microbatches - 2 * devices + rank + 1
    for step in range(steady + below):
        if step < steady:
            found.forward(0)
        found.backward(1)
        found.forward(1)
        found.backward(0)
    halved = _dualpipev_drain(found, rank)
    for _ in range(below):
        found.weights()
        found.backward(0, halved)
    for _ in range(rank + 1):
        found.weights()
    return row_of(found.passes)


def _dualpipev_drain(found: _DualPipe, rank: int) -> bool:
    """Add the backward passes of both chunks in turn; from the middle on they are halved."""
    halved, middle = False, (rank + 1) // 2
    for step in range(rank + 1):
        halved = halved or (step == middle and rank % 2 == 1)
        found.backward(1, halved)
        halved = halved or (step == middle and rank % 2 == 0)
        found.backward(0, halved)
    return halved


# The order of passes where stage i is on device i mod p: interleaved 1F1B, and its zero-bubble form.


def interleaved_row(rank: int, devices: int, chunks: int, microbatches: int) -> Row:
    """Return the passes of a device under interleaved 1F1B (Megatron-LM, Section 2.2).

    The device runs ``2 (devices - rank - 1) + (chunks - 1) group`` forward passes before it alternates
    forward and backward passes; `group` microbatches pass one chunk before the next chunk runs.

    Examples
    --------
    >>> interleaved_row(1, 2, 2, 2).cells()
    ['0F0', '0F1', '1F0', '1B0', '1F1', '1B1', '0B0', '0B1']
    """
    group = group_of(devices, microbatches)
    warmup = 2 * (devices - rank - 1) + (chunks - 1) * group
    return _row(chunks, microbatches, group, warmup, None)


def zero_bubble_row(rank: int, devices: int, chunks: int, microbatches: int) -> Row:
    """Return the passes of a device under ZB-H1, interleaved if `chunks` is above 1 (ZB1P in torch).

    The device runs ``devices - rank - 1 + (chunks - 1) group`` forward passes before it alternates. The
    gradients of weights are computed `rank` passes later than those of the inputs.

    Examples
    --------
    >>> zero_bubble_row(1, 2, 1, 3).cells()
    ['0F0', '0I0', '0F1', '0I1', '0W0', '0F2', '0I2', '0W1', '0W2']
    """
    group = group_of(devices, microbatches)
    warmup = devices - rank - 1 + (chunks - 1) * group
    return _row(chunks, microbatches, group, warmup, rank)


def one_f_one_b_row(rank: int, devices: int, chunks: int, microbatches: int) -> Row:
    """Return the passes of a device with one stage under 1F1B.

    Examples
    --------
    >>> one_f_one_b_row(0, 2, 1, 3).cells()
    ['0F0', '0F1', '0B0', '0F2', '0B1', '0B2']
    """
    return _row(chunks, microbatches, microbatches, devices - rank - 1, None)


def gpipe_row(rank: int, devices: int, chunks: int, microbatches: int) -> Row:
    """Return the passes of a device with one stage under GPipe.

    Examples
    --------
    >>> gpipe_row(0, 2, 1, 2).cells()
    ['0F0', '0F1', '0B0', '0B1']
    """
    return _row(chunks, microbatches, microbatches, microbatches, None)


def group_of(devices: int, microbatches: int) -> int:
    """Return how many microbatches pass one chunk of a device before its next chunk runs.

    It is `devices` if that divides the microbatches, else more (torch).
    """
    return microbatches // rounds_of(devices, microbatches)


def rounds_of(devices: int, microbatches: int) -> int:
    """Return in how many rounds, of `devices` microbatches or more, the microbatches run."""
    return max(1, microbatches // devices)


def _row(chunks: int, microbatches: int, group: int, warmup: int, delay: int | None) -> Row:
    """Return `warmup` forward passes, then forward and backward passes in turn, then the rest.

    If `delay` is given, the backward passes are in halves, of which the second come that much later.
    """
    step = np.arange(chunks * microbatches)
    warmup = min(warmup, len(step))
    turn, microbatch = step // group % chunks, step // (group * chunks) * group + step % group
    directions = (FORWARD, BACKWARD) if delay is None else (FORWARD, INPUT, WEIGHT)
    keys = 3 * step, 3 * (step + warmup) + 1, 3 * (step + warmup + (delay or 0)) + 2
    chunk: list[Ints] = [turn, chunks - 1 - turn, chunks - 1 - turn]
    count = len(directions)
    order = np.argsort(np.concatenate(keys[:count]), kind="stable")
    return Row(
        np.concatenate(chunk[:count])[order],
        np.repeat(directions, len(step))[order],
        np.tile(microbatch, count)[order],
    )


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
ALONE: dict[str, VirtualSchedule] = {  # schedules of one stage on each device, in the same form
    name: VirtualSchedule(name, False, (1, 1, 1), row, _any_number)
    for name, row in (("gpipe", gpipe_row), ("1f1b", one_f_one_b_row), ("1f1b_async", one_f_one_b_row))
}
PLANNED = (*SCHEDULES, *VIRTUAL)  # the schedules that plans are made for
