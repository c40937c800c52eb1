"""1F1B without a flush: PipeDream."""

from __future__ import annotations

from typing import ClassVar

from partitioner.schedule.kinds.one_f_one_b import OneForwardOneBackward


class AsynchronousOneForwardOneBackward(OneForwardOneBackward):
    """1F1B on an endless stream; each sample keeps the weights that it began with (paper, Figure 4b).

    Three devices, the first four samples of the stream::

        device 0   0F0  0F1  0F2  .    .    0B0  0F3  0B1  ...
        device 1   .    1F0  1F1  .    1B0  1F2  1B1  1F3  ...
        device 2   .    .    2F0  2B0  2F1  2B1  2F2  2B2  ...

    The order is that of 1F1B. The differences are that the stream has no batches, and that each device holds
    a version of its weights for every sample in flight. The simulation ends with the last sample.
    """

    name: ClassVar[str] = "1f1b_async"
    versions: ClassVar[bool] = True
