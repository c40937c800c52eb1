"""Plans as the parts of a model in torchtitan."""

from __future__ import annotations

import json

from partitioner.base.errors import Flaw
from partitioner.exports.stages import stages_of
from partitioner.exports.target import LOOP, Target
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

TORCHTITAN = Target("torchtitan", line=True, ranks=LOOP, one_kind=True)


def torchtitan(plan: Plan, workload: Workload) -> str:
    """Return the fields of torchtitan's ``ParallelismConfig``, as JSON: the modules of each part.

    torchtitan drops modules that no part names without a message; the parts name every module of the graph.

    Raises
    ------
    ExportError
        If parts cannot express the plan, or a module is neither a child of the model nor an item of one.
    """
    found = stages_of(workload, plan, TORCHTITAN)
    rule = "must be a child of the model or an item of a child, such as norm or layers.3"
    deep = [Flaw(f"module {name}", "", "", rule) for name in found.modules if name.count(".") > 1]
    TORCHTITAN.refuse(deep, any_plan=True)
    fields = {
        "pipeline_parallel_degree": len(found.ranks),
        "module_fqns_per_model_part": [stage.modules for stage in found.stages],
    }
    return json.dumps(fields | {"ranks": found.ranks}, indent=1) + "\n"
