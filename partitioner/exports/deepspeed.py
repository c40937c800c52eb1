"""Plans as bounds for the pipelines of DeepSpeed."""

from __future__ import annotations

import json
from itertools import accumulate

from partitioner.exports.stages import stages_of
from partitioner.exports.target import ONE, Target
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

DEEPSPEED = Target("deepspeed", line=True, ranks=ONE, ties=True, one_kind=True)


def deepspeed(plan: Plan, workload: Workload) -> str:
    """Return the bounds of the stages among the layers of a ``PipelineModule``, as JSON.

    Stage k has the layers from ``parts[k]`` to before ``parts[k + 1]`` of the list ``layers``, which names a
    module for each entry of the list of layers that the ``PipelineModule`` is made of.

    Raises
    ------
    ExportError
        If bounds cannot express the plan.
    """
    found = stages_of(workload, plan, DEEPSPEED)
    parts = [0, *accumulate(len(stage.modules) for stage in found.stages)]
    fields = {"num_stages": len(found.stages), "parts": parts, "layers": found.modules, "ranks": found.ranks}
    return json.dumps(fields, indent=1) + "\n"
