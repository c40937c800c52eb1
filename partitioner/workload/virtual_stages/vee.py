"""The order of passes where device i has stages i and 2 p - 1 - i: ZB-V and DualPipeV."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from partitioner.workload.virtual_stages.row import Row, row_of


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
