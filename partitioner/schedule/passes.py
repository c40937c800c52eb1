"""The passes of one sample, forward and backward, of every (virtual) stage, and their places in a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.schedule.table import BACKWARD, DIRECTIONS, FORWARD, INPUT, WEIGHT, Table
from partitioner.workload.graph import Floats, Ints


@dataclass(frozen=True, eq=False)
class Passes:
    """The `n` passes of one sample in a topological order; times are those of a single sample.

    Parameters
    ----------
    names
        The devices' names.
    replicas
        For the first device of each stage, the position of the first device of every copy of the stage; the
        copies take the samples in turn.
    device
        Shape (n,): position of the first device of the pass's stage.
    stage, direction
        Shape (n,): number of the stage, and a position in `DIRECTIONS`. Forward passes are numbered in
        topological order, backward passes in reverse.
    into, compute, out
        Shape (n,): times of transfers in, processing, and transfers out.
    sync
        Shape (n,): time of the exchange of weights among replicas at the end of a pass, if there is one for
        every sample.
    closing
        Shape (devices,): time of the exchange of weights among replicas after the last pass of a batch, if
        there is one for every batch, stored at the stage's first device.
    activations
        Shape (n,): memory that a sample needs from the beginning of this pass on.
    release
        Shape (n,): the pass at whose end that memory is released.
    parameters, workspace
        Shape (n,): memory of the weights, of which an asynchronous schedule keeps versions, and memory that
        is needed only while the pass runs.
    fixed
        Shape (devices,): memory that a device holds all the time, without the parameters.
    before_start, before
        The passes that each pass waits for, row by row: those of pass i are
        ``before[before_start[i]:before_start[i + 1]]``.
    paired
        True if every stage has one forward pass and one backward pass, both on one device, and backward
        passes run from the last stage to the first; also if every stage has only a forward pass.
    lag
        How many rounds after a pass the passes on other devices run that wait for it: 1, or 3 if transfers
        run in parallel to the processing, each in a separate round (paper, Appendix H.1).
    together
        For the first device of a copy that several devices run together (tensor-parallel), all of them.
    notes
        Notes on what the workload does not determine of these times.
    """

    names: tuple[str, ...]
    replicas: dict[int, tuple[int, ...]]
    device: Ints
    stage: Ints
    direction: Ints
    into: Floats
    compute: Floats
    out: Floats
    sync: Floats
    closing: Floats
    activations: Floats
    release: Ints
    parameters: Floats
    workspace: Floats
    fixed: Floats
    before_start: Ints
    before: Ints
    paired: bool
    lag: int = 1
    together: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.device)

    @property
    def trains(self) -> bool:
        """Whether there is a backward pass."""
        return bool((self.direction != FORWARD).any())

    @property
    def stages(self) -> int:
        """How many forward (virtual) stages there are."""
        return int((self.direction == FORWARD).sum())

    @property
    def line(self) -> bool:
        """Whether this is a pipeline in which no two stages share a device."""
        return self.paired and self.stages == len(self.replicas)

    def stage_devices(self) -> list[int]:
        """Return the positions of the devices of the forward stages, first to last."""
        forward = np.flatnonzero(self.direction == FORWARD)
        return list(self.device[forward[np.argsort(self.stage[forward])]].tolist())


def exchanging(passes: Passes, once: bool) -> Passes:
    """Return the passes with one exchange of weights for every batch, or one for every sample."""
    if once:
        return replace(passes, sync=np.zeros_like(passes.sync))
    return replace(passes, closing=np.zeros_like(passes.closing))


def split_backward(passes: Passes, share: float) -> Passes:
    """Return the passes with each backward pass in two: gradients of the inputs, then of the weights.

    The first half takes the fraction `share` of the processing time; other stages wait only for it. The
    second half waits only for the first, keeps the activations to its end, and has no transfers.
    """
    twice = np.where(passes.direction == BACKWARD, 2, 1)
    origin = np.repeat(np.arange(len(passes)), twice)
    first = np.cumsum(twice) - twice
    half = np.arange(len(origin)) - first[origin]
    halved = (twice == 2)[origin]
    direction = np.where(halved, np.where(half == 0, INPUT, WEIGHT), passes.direction[origin])
    part = np.where(halved, np.where(half == 0, share, 1 - share), 1.0)
    whole = half == 0
    last = half == twice[origin] - 1
    waits = [
        first[passes.before[passes.before_start[i] : passes.before_start[i + 1]]]
        if half[k] == 0
        else np.array([first[i]])
        for k, i in enumerate(origin.tolist())
    ]
    return replace(
        passes,
        device=passes.device[origin],
        stage=passes.stage[origin],
        direction=direction,
        into=passes.into[origin] * whole,
        compute=passes.compute[origin] * part,
        out=passes.out[origin] * whole,
        sync=passes.sync[origin] * last,
        activations=passes.activations[origin] * whole,
        release=(first + twice - 1)[passes.release[origin]],
        parameters=passes.parameters[origin] * whole,
        workspace=passes.workspace[origin],
        before_start=np.cumsum([0, *map(len, waits)]),
        before=np.concatenate([*waits, np.zeros(0, np.int64)]).astype(np.int64),
    )


def kinds_of(table: Table, passes: Passes) -> Ints:
    """Return which of a sample's passes each pass of the table is, shape (n,); -1 if it is none of them."""
    stages = max(int(passes.stage.max(initial=0)), int(table.stage.max(initial=0))) + 1
    known = np.full((len(DIRECTIONS), stages), -1, dtype=np.int64)
    known[passes.direction, passes.stage] = np.arange(len(passes))
    return np.asarray(known[table.direction, table.stage])


def positions(table: Table, kinds: Ints, passes: Passes, microbatches: int) -> Ints:
    """Return the position of each pass in the table, shape (passes of a sample, microbatches).

    The position is -1 for a pass that is missing.
    """
    where = np.full((len(passes), microbatches), -1, dtype=np.int64)
    sound = (kinds >= 0) & (table.microbatch < microbatches)
    where[kinds[sound], table.microbatch[sound]] = np.flatnonzero(sound)
    return where
