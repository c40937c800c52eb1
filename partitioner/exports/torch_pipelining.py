"""Plans for torch.distributed.pipelining: where to split a model, and which rank runs which stage when."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw
from partitioner.evaluation.solution import Solution
from partitioner.exports.module_stages import Stages
from partitioner.exports.stages import stages_of
from partitioner.exports.target import Target
from partitioner.exports.torch_schedule import torch_schedule
from partitioner.exports.traced_rules import skips, skips_of_inputs
from partitioner.results.plan import Plan
from partitioner.schedule.kinds.registry import kind_of
from partitioner.schedule.passes import split_backward
from partitioner.schedule.reading import read_passes
from partitioner.schedule.simulation import INPUT_SHARE, table_for, usual_schedule
from partitioner.schedule.table import Table
from partitioner.workload.devices import Devices
from partitioner.workload.extras import STRIDED
from partitioner.workload.graph import Graph, NodeId
from partitioner.workload.module_groups import shared_parameters
from partitioner.workload.modules import module_starts, modules_of
from partitioner.workload.workload import Workload

TORCH = Target("torch", line=True, traced=True, ways=True)
SKIPS = "tensors skip stages: run them by _ScheduleForwardOnly, ScheduleGPipe or Schedule1F1B"
INPUT_SKIPS = (
    "what the inputs alone determine, such as masks, is sent past stages: run them by _ScheduleForwardOnly, "
    "ScheduleGPipe or Schedule1F1B, or compute it in every stage"
)
SKIPPABLE = "gpipe", "1f1b"  # schedules whose class in torch takes tensors that skip stages


def torch_pipelining(plan: Plan, workload: Workload) -> str:
    """Return split points by module path, the rank of each stage, and the passes of each rank, as JSON.

    ``split_points`` names the first module of every stage but the first, for
    ``pipeline(split_spec={path: SplitPoint.BEGINNING})``. ``stage_to_rank`` has the rank of each stage, and
    ``ranks`` the device of each rank. ``schedule_csv`` is the content of a file in the format
    ``compute_only``; it is left out for a graph without backward nodes or a plan without microbatches, and
    where tensors skip stages, which torch's reader of such files refuses. ``ways`` names the alternative of
    each module that does not run by its own figures, such as one that is recomputed. ``notes`` says what else
    to know.

    Raises
    ------
    ExportError
        If torch cannot express the plan.
    OptionError
        If the plan's schedule does not support its stages.
    """
    found = stages_of(workload, plan, TORCH)
    fields: dict[str, Any] = {
        "split_points": _split_points(workload.graph, found),
        "stages": [stage.modules for stage in found.stages],
        "stage_to_rank": found.rank_of,
        "ranks": found.ranks,
    }
    if found.ways:
        fields |= {"ways": found.ways}
    skipped, microbatches = skips(workload.graph, found), plan.record.microbatches
    if microbatches is not None and workload.graph.backward.any():
        name = plan.record.schedule or usual_schedule(workload.graph)
        fields |= {"schedule": name, "microbatches": microbatches}
        if skipped:
            TORCH.refuse(_not_skippable(name))
        else:
            fields["schedule_csv"] = schedule_csv(found, workload, name, microbatches)
    notes = [*_copied(workload, found), *([SKIPS] if skipped else ())]
    notes += _strided(workload.graph, found)
    notes += [INPUT_SKIPS] if skips_of_inputs(workload.graph, found) else []
    return json.dumps(fields | ({"notes": notes} if notes else {}), indent=1) + "\n"


def _split_points(graph: Graph, found: Stages) -> list[str]:
    """Return for each stage but the first the module that the program begins first."""
    modules = modules_of(graph)
    first: dict[int, str] = {}
    for i in module_starts(graph).tolist():
        first.setdefault(int(found.of[i]), modules.names[modules.of[i]])
    return [first[stage] for stage in range(1, len(found.stages))]


def _not_skippable(schedule: str) -> list[Flaw]:
    """Return a flaw if torch runs a schedule only where no tensor skips a stage."""
    rule = f"where tensors skip stages the schedule must be {' or '.join(SKIPPABLE)}"
    return [] if schedule in SKIPPABLE else [Flaw("schedule", "", schedule, rule)]


def _copied(workload: Workload, found: Stages) -> Iterator[str]:
    """Yield a note on each parameter that several stages share."""
    for name, nodes in shared_parameters(workload.graph).items():
        stages = np.unique(found.of[nodes]).tolist()
        if len(stages) > 1:
            where = ", ".join(map(str, stages))
            yield f"stages {where} each have a copy of parameter {name}: for inference only, gradients differ"


def _strided(graph: Graph, found: Stages) -> Iterator[str]:
    """Yield a note on each stage that sends a tensor which is not contiguous."""
    modules = modules_of(graph)
    senders: dict[int, dict[str, None]] = {}
    for i, extra in enumerate(graph.extras.nodes):
        readers = extra.get(STRIDED)
        for target in readers if isinstance(readers, list | tuple) else ():
            other = graph.position.get(target)
            if other is not None and found.of[other] != found.of[i]:
                senders.setdefault(int(found.of[i]), {})[modules.names[modules.of[i]]] = None
    for stage, names in senders.items():
        yield (
            f"stage {stage} sends a tensor of {', '.join(names)} that is not contiguous, which torch's "
            "runner refuses: return it with .contiguous(), or use run_pipeline of this package, which does so"
        )


def schedule_csv(found: Stages, workload: Workload, schedule: str, microbatches: int) -> str:
    """Return the schedule of a line of stages as torch's CSV."""
    names = [stage.device for stage in found.stages]
    return torch_schedule(line_table(names, workload.devices, schedule, microbatches))


def line_table(names: Sequence[str], devices: Devices, schedule: str, microbatches: int) -> Table:
    """Return the table of a line of stages, each on the device of the given name.

    Raises
    ------
    OptionError
        If the schedule does not support the stages.
    """
    kind = kind_of(schedule)
    count = len(names)
    stage = [*range(count), *(() if kind.trains is False else reversed(range(count)))]
    graph = Graph.from_arrays(
        {one.row: [1.0] * len(stage) for one in devices.kinds},
        [(i, i + 1) for i in range(len(stage) - 1)],
        backward=[i >= count for i in range(len(stage))],
        color=stage,
    )
    stage_of: dict[NodeId, int] = dict(enumerate(stage))
    placement = {node: names[number] for node, number in stage_of.items()}
    solution = Solution(placement, order=tuple(names), stage_of=stage_of)
    passes = read_passes(graph, devices, solution)
    return table_for(kind, split_backward(passes, INPUT_SHARE) if kind.halves else passes, microbatches)
