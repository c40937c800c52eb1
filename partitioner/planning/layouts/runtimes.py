"""What the runtimes of language models can run: degrees, schedules, shares of states, equal stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from partitioner.formats.llm.decoder import Decoder, Experts
from partitioner.planning.layouts.layout import ClusterLayout

ENDS = 2  # embedding and head, each of which may stand for a block where interleaved stages are equal


@dataclass(frozen=True)
class Runtime:
    """A runtime, by what it can run.

    Parameters
    ----------
    name
        As in ``--runtime``.
    schedules
        The schedules of pipelines that it has, with the most stages of a device under each (0: any number).
    zero
        The shares of states among replicas that it has, without a pipeline and with one.
    recompute
        What its layers can compute again.
    uneven
        Whether stages may have unlike numbers of blocks.
    parallel
        The parallelisms that it has beside pipeline and data.
    """

    name: str
    schedules: dict[str, int]
    zero: tuple[tuple[int, ...], tuple[int, ...]]
    recompute: tuple[str, ...] = ("none", "selective", "full")
    uneven: bool = True
    parallel: tuple[str, ...] = ("tensor", "context", "expert")

    def refuses(self, layout: ClusterLayout, decoder: Decoder, global_batch: int) -> str:
        """Return why a layout cannot be run; empty if it can."""
        return next(filter(None, (rule(self, layout, decoder, global_batch) for rule in RULES)), "")


def _divides(runtime: Runtime, layout: ClusterLayout, decoder: Decoder, global_batch: int) -> str:
    if global_batch % (layout.data * layout.microbatch):
        return "the batch is no multiple of data degree times microbatch"
    block = decoder.blocks[0]
    if block.attention.heads % layout.tensor:
        return "the tensor degree does not divide the heads"
    counts = [block.network.count for block in decoder.blocks if isinstance(block.network, Experts)]
    if any(count % layout.expert for count in counts) or (layout.expert > 1 and not counts):
        return "the expert degree does not divide the experts"
    if (layout.data * layout.context) % layout.expert:
        return "the expert degree does not divide the data degree"
    return ""


def _has(runtime: Runtime, layout: ClusterLayout, decoder: Decoder, global_batch: int) -> str:
    lacking = [
        name
        for name in ("tensor", "context", "expert")
        if getattr(layout, name) > 1 and name not in runtime.parallel
    ]
    if lacking:
        return f"{runtime.name} has no {lacking[0]} parallelism"
    if layout.zero not in runtime.zero[layout.pipeline > 1]:
        return f"{runtime.name} does not run ZeRO {layout.zero} so"
    return (
        ""
        if layout.recompute in runtime.recompute
        else f"{runtime.name} does not compute {layout.recompute} again"
    )


def _pipelines(runtime: Runtime, layout: ClusterLayout, decoder: Decoder, global_batch: int) -> str:
    ends = ENDS * (layout.schedule == "interleaved_1f1b" and runtime.uneven)
    if layout.stages > len(decoder.blocks) + ends:
        return "there are fewer blocks than stages"
    if not runtime.uneven and len(decoder.blocks) % layout.stages:
        return f"{runtime.name} needs equal stages"
    if layout.pipeline == 1:
        return (
            ""
            if layout.virtual_stages == 1 and layout.schedule == "1f1b"
            else "a single stage has no schedule"
        )
    most = runtime.schedules.get(layout.schedule)
    if most is None:
        return f"{runtime.name} has no schedule {layout.schedule}"
    if most and layout.virtual_stages > most:
        return f"{runtime.name} runs {layout.schedule} with at most {most} stages on a device"
    rounds = layout.microbatches(global_batch) % layout.pipeline == 0
    if layout.schedule == "interleaved_1f1b" and (layout.virtual_stages == 1 or not rounds):
        return (
            "interleaved stages need two or more on a device, and a multiple of the devices in microbatches"
        )
    if layout.schedule == "zbv":
        return "" if layout.virtual_stages == 2 else "a V has two stages on a device"
    return (
        "" if layout.schedule == "interleaved_1f1b" or layout.virtual_stages == 1 else "one stage on a device"
    )


RULES: tuple[Callable[[Runtime, ClusterLayout, Decoder, int], str], ...] = (_divides, _has, _pipelines)
_INTERLEAVED = {"1f1b": 1, "interleaved_1f1b": 0}
RUNTIMES = {
    "any": Runtime("any", _INTERLEAVED | {"zb_h1": 1, "zbv": 2}, ((0, 1, 2, 3), (0, 1))),
    "megatron": Runtime("megatron", _INTERLEAVED, ((0, 1), (0, 1))),
    "nemo": Runtime("nemo", _INTERLEAVED, ((0, 1), (0, 1))),
    "torchtitan": Runtime("torchtitan", _INTERLEAVED | {"zbv": 2}, ((2, 3), (2, 3))),
    "deepspeed": Runtime(
        "deepspeed", {"1f1b": 1}, ((0, 1, 2, 3), (0, 1)), ("none", "full"), parallel=("tensor",)
    ),
}
