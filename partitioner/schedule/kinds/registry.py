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
from partitioner.schedule.kinds.vee import DualPipeV, ZeroBubbleV
from partitioner.schedule.kinds.zb_h1 import ZeroBubbleH1

SPELLINGS = {"interleaved_1f1b": "interleaved", "zb_h1": "zb-h1"}  # names of solve's option, and the kinds'
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
        ZeroBubbleV(),
        DualPipeV(),
    )
}


def kind_of(name: object) -> Kind:
    """Return the schedule of that name, which may also be the one that :func:`partitioner.solve` takes.

    Raises
    ------
    OptionError
        If there is no schedule of that name.
    """
    known = SPELLINGS.get(name, name) if isinstance(name, str) else name
    if not isinstance(known, str) or known not in KINDS:
        raise OptionError(f"schedule = {shown(name)}: must be a Table, or {one_of(name, KINDS)}")
    return KINDS[known]
