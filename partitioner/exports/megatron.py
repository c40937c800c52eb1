"""Plans as pipeline layouts of Megatron-Core."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from partitioner.exports.blocks import Blocks, blocks_of, predicting
from partitioner.exports.target import LOOP, Target
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

MEGATRON = Target("megatron", line=True, ranks=LOOP, ties=True, one_kind=True, blocks=True)
EMBEDDING, LAYER, PREDICTION, LOSS = "E", "t", "m", "L"


def megatron(plan: Plan, workload: Workload) -> str:
    """Return the fields of ``TransformerConfig`` that say which layers each stage has, as JSON.

    ``TransformerConfig(**json.loads(text), hidden_size=..., ...)`` takes them as they are. Modules after the
    layers whose name contains ``mtp`` are its layers for multi-token prediction. The rank of a device is its
    position among the devices of the stages, which the writer ``stages`` lists.

    Raises
    ------
    ExportError
        If a layout cannot express the plan.
    """
    found = blocks_of(workload, plan, MEGATRON)
    devices = len(found.stages.ranks)
    virtual = len(found.counts) // devices
    fields: dict[str, Any] = {
        "num_layers": len(found.layers),
        "pipeline_model_parallel_size": devices,
        "virtual_pipeline_model_parallel_size": virtual if virtual > 1 else None,
        "pipeline_model_parallel_layout": layout(found),
        "mtp_num_layers": len(predicting(found.head)) or None,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(given, indent=1) + "\n"


def layout(blocks: Blocks) -> str:
    """Return the layout string: E embedding, t layer, m multi-token prediction, L loss, | between stages."""
    stages = [LAYER * count for count in blocks.counts]
    stages[0] = EMBEDDING + stages[0]
    stages[-1] += PREDICTION * len(predicting(blocks.head)) + LOSS
    return "|".join(map(_shortened, stages))


def _shortened(letters: str) -> str:
    """Return letters with repeated ones as a product.

    Examples
    --------
    >>> _shortened("EtttL")
    'Et*3L'
    """
    runs = [(letter, len(list(group))) for letter, group in groupby(letters)]
    return "".join(letter if count == 1 else f"{letter}*{count}" for letter, count in runs)
