"""Plans as bounds for the pipelines of DeepSpeed."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

from partitioner.exports.stages import stages_of
from partitioner.exports.target import ONE, Target
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

DEEPSPEED = Target("deepspeed", line=True, ranks=ONE, ties=True, one_kind=True)
SUBCLASS = """\
from deepspeed.pipe import PipelineModule


class PlannedPipelineModule(PipelineModule):
    PARTS = {parts}

    def _partition_layers(self, method="planned"):
        if len(self._layer_specs) != self.PARTS[-1] or self.num_stages != len(self.PARTS) - 1:
            raise ValueError(
                f"the plan has {{self.PARTS[-1]}} layers in {{len(self.PARTS) - 1}} stages, the module "
                f"{{len(self._layer_specs)}} in {{self.num_stages}}"
            )
        self.parts = self.PARTS
        stage = self._topo.get_coord(self.global_rank).pipe
        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])
"""


def deepspeed(plan: Plan, workload: Workload) -> str:
    """Return the bounds of the stages among the layers of a ``PipelineModule``, as JSON.

    Stage k has the layers from ``parts[k]`` to before ``parts[k + 1]`` of the list ``layers``, which names a
    module for each entry of the list of layers that the ``PipelineModule`` is made of. DeepSpeed takes bounds
    by no argument, so that ``subclass`` is the Python code of a ``PipelineModule`` that has them.

    Raises
    ------
    ExportError
        If bounds cannot express the plan.
    """
    found = stages_of(workload, plan, DEEPSPEED)
    parts = [0, *accumulate(len(stage.modules) for stage in found.stages)]
    fields: dict[str, Any] = {
        "num_stages": len(found.stages),
        "parts": parts,
        "layers": found.modules,
        "ranks": found.ranks,
        "subclass": SUBCLASS.format(parts=parts),
    }
    return json.dumps(fields, indent=1) + "\n"
