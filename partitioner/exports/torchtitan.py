"""Plans as the parts of a model in torchtitan."""

from __future__ import annotations

import json
from typing import Any

from partitioner.base.errors import Flaw
from partitioner.exports.module_stages import Stages
from partitioner.exports.stage_rules import is_vee
from partitioner.exports.stages import stages_of
from partitioner.exports.target import VEE, Target
from partitioner.results.plan import Plan
from partitioner.schedule.kinds.registry import kind_of
from partitioner.workload.workload import Workload

TORCHTITAN = Target("torchtitan", line=True, ranks=VEE, one_kind=True)
LINE, ROUND = "a stage on each device", "stage k on device k mod p"
FOLDED = "stages k and 2 p - 1 - k on device k"
SCHEDULES = {  # by the plan's name: torch's, and the stages that it runs
    "gpipe": ("GPipe", LINE),
    "1f1b": ("1F1B", LINE),
    "interleaved": ("Interleaved1F1B", ROUND),
    "zb-h1": ("InterleavedZeroBubble", ROUND),
    "zbv": ("ZBVZeroBubble", FOLDED),
    "dualpipev": ("DualPipeV", FOLDED),
}


def torchtitan(plan: Plan, workload: Workload) -> str:
    """Return the fields of torchtitan's ``ParallelismConfig``, as JSON: the modules of each part.

    torchtitan drops modules that no part names without a message; the parts name every module of the graph.
    It puts the parts on ranks as the schedule wants, whose name is that of the plan's schedule, or else that
    of 1F1B, interleaved 1F1B or ZB-V, by where the stages are.

    Raises
    ------
    ExportError
        If parts cannot express the plan, or a module is neither a child of the model nor an item of one.
    """
    found = stages_of(workload, plan, TORCHTITAN)
    rule = "must be a child of the model or an item of a child, such as norm or layers.3"
    deep = [Flaw(f"module {name}", "", "", rule) for name in found.modules if name.count(".") > 1]
    TORCHTITAN.refuse(deep, any_plan=True)
    fields: dict[str, Any] = {
        "pipeline_parallel_schedule": _schedule(plan, found),
        "pipeline_parallel_degree": len(found.ranks),
        "module_fqns_per_model_part": [stage.modules for stage in found.stages],
    }
    return json.dumps(fields | {"ranks": found.ranks}, indent=1) + "\n"


def _schedule(plan: Plan, found: Stages) -> str:
    """Return torch's name of a schedule that runs the stages where they are.

    Raises
    ------
    ExportError
        If the plan's schedule is another one.
    """
    way = FOLDED if is_vee(found) else LINE if len(found.ranks) == len(found.stages) else ROUND
    usual = {LINE: "1f1b", ROUND: "interleaved", FOLDED: "zbv"}[way]
    asked = plan.record.schedule
    known, stages = SCHEDULES.get(usual if asked is None else kind_of(asked).name, SCHEDULES[usual])
    if stages != way and (way, stages) != (LINE, ROUND):
        TORCHTITAN.refuse([Flaw("schedule", "", str(asked), f"needs {stages}; the plan has {way}")])
    return known
