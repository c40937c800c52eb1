"""What schedules with several stages on a device demand of devices and nodes."""

from __future__ import annotations

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.problem.variants import PipelineProblem


def only_kind(problem: PipelineProblem) -> int:
    """Return the only kind of the devices that pay for transfers, or else of all devices.

    Raises
    ------
    OptionError
        If there are several, or nodes are pinned to devices.
    """
    present = problem.count > 0
    kinds = np.flatnonzero(present & problem.pays)
    kinds = kinds if len(kinds) else np.flatnonzero(present)
    if len(kinds) != 1:
        words = f"schedule = {problem.pipeline.schedule!r}: needs devices of one kind"
        raise OptionError(f"{words}, there are {len(kinds)} kinds with devices")
    if len(problem.pipeline.pinned.items):
        rule = "does not support nodes that are pinned to a device"
        raise OptionError(f"schedule = {problem.pipeline.schedule!r}: {rule}")
    return int(kinds[0])
