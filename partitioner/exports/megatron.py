"""Plans as pipeline layouts of Megatron-Core."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from partitioner.exports.blocks import Blocks, blocks_of
from partitioner.exports.target import LOOP, Target
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

MEGATRON = Target("megatron", line=True, ranks=LOOP, ties=True, one_kind=True, blocks=True)
EMBEDDING, LAYER, PREDICTION, LOSS = "E", "t", "m", "L"


def megatron(plan: Plan, workload: Workload) -> str:
    """Return the fields of ``TransformerConfig`` that say which layers each stage has, as JSON.

    Modules after the layers whose name contains ``mtp`` are its layers for multi-token prediction. The counts
    of the first and the last stage, for versions without layouts, are given if all other stages are equal
    and no device has several stages.

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
        **_ends(found, virtual),
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(given | {"ranks": found.stages.ranks}, indent=1) + "\n"


def layout(blocks: Blocks) -> str:
    """Return the layout string: E embedding, t layer, m multi-token prediction, L loss, | between stages."""
    stages = [LAYER * count for count in blocks.counts]
    stages[0] = EMBEDDING + stages[0]
    stages[-1] += PREDICTION * sum("mtp" in name.lower() for name in blocks.head) + LOSS
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


def _ends(blocks: Blocks, virtual: int) -> dict[str, int]:
    """Return the numbers of layers of the first and the last stage; nothing if they do not say it all."""
    first, *between, last = blocks.counts if len(blocks.counts) > 1 else (0, 1, 2, 0)
    if virtual > 1 or len(set(between)) > 1:
        return {}
    return {"num_layers_in_first_pipeline_stage": first, "num_layers_in_last_pipeline_stage": last}
