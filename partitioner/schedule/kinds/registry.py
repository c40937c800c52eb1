"""The schedules by name."""

from __future__ import annotations

from partitioner.base.errors import OptionError, one_of, shown
from partitioner.schedule.kinds.gpipe import GPipe
from partitioner.schedule.kinds.inference import Inference
from partitioner.schedule.kinds.interleaved import Interleaved
from partitioner.schedule.kinds.kind import Kind
from partitioner.schedule.kinds.one_f_one_b import OneForwardOneBackward
from partitioner.schedule.kinds.one_f_one_b_async import AsynchronousOneForwardOneBackward
from partitioner.schedule.kinds.single_stream import SingleStream
from partitioner.schedule.kinds.zb_h1 import ZeroBubbleH1

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        SingleStream(),
        Inference(),
        GPipe(),
        OneForwardOneBackward(),
        AsynchronousOneForwardOneBackward(),
        Interleaved(),
        ZeroBubbleH1(),
    )
}


def kind_of(name: object) -> Kind:
    """Return the schedule of that name.

    Raises
    ------
    OptionError
        If there is no schedule of that name.
    """
    if not isinstance(name, str) or name not in KINDS:
        raise OptionError(f"schedule = {shown(name)}: must be a Table, or {one_of(name, KINDS)}")
    return KINDS[name]
