"""What one sample goes through: a pass forward and a pass backward of every (virtual) stage."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.schedule.table import BACKWARD, FORWARD, INPUT, WEIGHT
from partitioner.workload.graph import Floats, Ints


@dataclass(frozen=True, eq=False)
class Passes:
    """The passes of one sample in a topological order, n in all; times are those of a single sample.

    Parameters
    ----------
    names
        The devices' names.
    replicas
        For each device in use that stands for a stage, the positions of all devices that hold a copy of
        what it holds, itself the first; they take the samples in turn.
    device
        Shape (n,): position of the device that stands for the pass's stage.
    stage, direction
        Shape (n,): number of the stage and a position in `DIRECTIONS`. Stages of forward passes count in
        topological order, those of backward passes against it.
    into, compute, out
        Shape (n,): transfers in, processing, transfers out.
    sync
        Shape (n,): the exchange of weights among replicas at the end of a pass.
    activations
        Shape (n,): what a sample takes in memory from the beginning of this pass.
    release
        Shape (n,): the pass at whose end that is given back.
    parameters, workspace
        Shape (n,): the weights, of which an asynchronous schedule keeps versions, and what is needed only
        while the pass runs.
    fixed
        Shape (devices,): what a device holds all the time, parameters not included.
    before_start, before
        The passes that each pass waits for, row by row: those of pass i are
        ``before[before_start[i]:before_start[i + 1]]``.
    paired
        True if every stage has one forward pass and one backward pass, both on one device, and backward
        passes run from the last stage to the first; or one forward pass and no other.
    lag
        How many rounds after a pass those on other devices run that wait for it: 1, or 3 where transfers
        run beside the processing, each in a round of its own (paper, Appendix H.1).
    notes
        What the workload leaves open of these times.
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
    activations: Floats
    release: Ints
    parameters: Floats
    workspace: Floats
    fixed: Floats
    before_start: Ints
    before: Ints
    paired: bool
    lag: int = 1
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
        """True for a pipeline of whole devices: each stage on a device of its own."""
        return self.paired and self.stages == len(self.replicas)

    def stage_devices(self) -> list[int]:
        """Positions of the devices of the forward stages, first to last."""
        forward = np.flatnonzero(self.direction == FORWARD)
        return list(self.device[forward[np.argsort(self.stage[forward])]].tolist())


def split_backward(passes: Passes, share: float) -> Passes:
    """Passes in which each backward pass is two: gradients of the inputs, then those of the weights.

    `share` of the processing is spent on the gradients of the inputs, which other stages wait for; the
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
