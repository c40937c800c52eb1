"""Options of pipelines, batches and single samples."""

from __future__ import annotations

from partitioner.base.errors import one_of
from partitioner.planning.option import PIPELINES, Effect, Option, with_term
from partitioner.planning.option_rules import count, instance, name_among
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.device_validation import MAX_COUNT
from partitioner.workload.virtual_stages.schedules import MOST_CHUNKS, PLANNED, VIRTUAL

RECORDS = (
    Option(
        "replicas",
        1,
        count(MAX_COUNT),
        "let a stage have up to this many copies, each on devices of its own: one, or as many as an "
        "alternative takes",
        PIPELINES,
        effect=Effect(
            "devices with several of a kind",
            lambda request: any(kind.count > 1 for kind in request.devices.kinds),
        ),
    ),
    Option(
        "schedule",
        None,
        name_among(PLANNED, f"None or {one_of(None, PLANNED)}", optional=True),
        f"let stages keep as many samples in memory as this schedule does: {', '.join(PLANNED)}",
        PIPELINES,
        metavar="NAME",
        meaning="none, each stage keeps one sample",
        where="chains of stages; elsewhere refused",
    ),
    Option(
        "virtual_stages",
        None,
        count(MOST_CHUNKS, optional=True),
        f"let each device have this many stages, for schedule {', '.join(VIRTUAL)}",
        PIPELINES,
        meaning="2, for zb_h1 1",
    ),
    Option(
        "microbatches",
        None,
        count(optional=True),
        "make a batch of this many samples; objectives batch and piper need this option, and so do schedule "
        "gpipe and those with several stages on a device",
        PIPELINES,
        meaning="none",
        effect=with_term("microbatches", "objective throughput, batch, piper, capacity or makespan"),
    ),
    Option(
        "subgraphs_per_accelerator",
        1,
        count(),
        "for objective latency, let an accelerator hold this many subgraphs of each pass",
        PIPELINES,
        effect=with_term("subgraphs_per_accelerator", "objective latency"),
    ),
    Option(
        "constraints",
        NONE,
        instance(Constraints),
        "require what these constraints say of stages, nodes and devices",
        PIPELINES,
        meaning="no constraints",
        where="everywhere; limits on stages and pins to a device are refused for objective latency, for "
        "makespans of operators and with methods that do not know them, pins to a device with several stages "
        "on a device",
    ),
)
