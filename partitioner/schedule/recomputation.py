"""Passes of stages that keep nothing of a forward pass, and run it again before the backward pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import BACKWARD, FORWARD, INPUT


def recomputed(passes: Passes) -> Passes:
    """Return the passes with the processing of each forward pass once more before the stage's backward pass.

    The activations of a sample are held from the beginning of the backward pass, or of its first half, on.
    What a stage has received it keeps; these bytes are not in a workload, and not counted.

    Raises
    ------
    OptionError
        If the graph has no backward nodes, or a stage has its backward pass on another device.
    """
    if not passes.trains:
        raise OptionError("recompute = True: is for graphs with backward nodes")
    if not passes.paired:
        rule = "needs both passes of a stage on one device, and backward passes in the reverse order"
        raise OptionError(f"recompute = True: {rule}")
    forward = np.flatnonzero(passes.direction == FORWARD)
    again = np.flatnonzero((passes.direction == BACKWARD) | (passes.direction == INPUT))
    forward = forward[np.argsort(passes.stage[forward])]
    source = forward[passes.stage[again]]
    compute, activations, release = passes.compute.copy(), passes.activations.copy(), passes.release.copy()
    compute[again] += compute[source]
    activations[again], release[again] = activations[source], release[source]
    activations[forward] = 0.0
    return replace(passes, compute=compute, activations=activations, release=release)
