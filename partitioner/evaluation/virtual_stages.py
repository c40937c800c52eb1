"""Evaluations of pipelines with several stages on a device: load of all of them, memory by schedule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.evaluation.frame import completed
from partitioner.evaluation.notes import notes_on_memory
from partitioner.evaluation.placed import read_placement
from partitioner.evaluation.plain import plain_evaluation
from partitioner.evaluation.replicas import read_replicas
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.stage_numbers import NumberedStages, read_stages
from partitioner.evaluation.terms import Terms
from partitioner.evaluation.violations import violations_of
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.virtual_stages.in_flight import samples_by_chunk
from partitioner.workload.virtual_stages.schedules import VIRTUAL, VirtualSchedule


def evaluate_virtual_stages(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return the largest load of a device, which is busy with all stages that it has.

    A tensor between two stages on one device costs nothing; one that several stages of a device use is
    fetched once.

    Raises
    ------
    OptionError
        If there are replicas, levels or alternatives, the schedule does not run several stages on a device,
        or its number of microbatches is missing.
    """
    schedule = _schedule(devices, solution, terms)
    placed = read_placement(graph, devices, solution.placement)
    stages = read_stages(placed, solution)
    found = plain_evaluation(placed, by_pass=False)
    memory, held, violations = placed.memory, dict[int, str](), stages.against_order()
    if schedule is not None:
        assert terms.microbatches is not None
        broken = _misplaced(schedule, stages) or _wrong_number(schedule, stages, terms.microbatches)
        violations += broken
        if not broken:
            memory, held = _memory(schedule, stages, terms.microbatches)
    violations += violations_of(placed, memory, held)
    loads = tuple(replace(load, memory=float(memory[i])) for i, load in enumerate(found.loads))
    notes = notes_on_memory(graph, terms.schedule)
    found = replace(found, loads=loads, violations=violations, shape=stages.shape, notes=notes)
    copies, ordered = read_replicas(placed, {}), tuple(range(len(stages.order)))
    return completed(found, placed, copies, ordered, terms, stages.staged)


def _schedule(devices: Devices, solution: Solution, terms: Terms) -> VirtualSchedule | None:
    if terms.schedule is not None and terms.schedule not in VIRTUAL:
        names = ", ".join(VIRTUAL)
        raise OptionError(f"schedule = {terms.schedule!r}: must be one of {names} where stage_of is given")
    parts = {"replicas": solution.replicas, "levels": devices.levels, "alternatives": solution.alternatives}
    for name, given in parts.items():
        if given:
            raise OptionError(f"{name}: must not be given for pipelines with several stages on a device")
    if terms.schedule is not None and terms.microbatches is None:
        raise OptionError(f"microbatches = None: schedule {terms.schedule!r} needs it")
    return None if terms.schedule is None else VIRTUAL[terms.schedule]


def _misplaced(schedule: VirtualSchedule, stages: NumberedStages) -> tuple[str, ...]:
    """Return a message if stages are not on the devices that the schedule has them on."""
    devices = list(dict.fromkeys(stages.order))
    count, rest = divmod(len(stages.order), len(devices))
    least, _, most = schedule.chunks
    if rest or not least <= count <= most:
        number = str(least) if least == most else f"at least {least}, and as many,"
        return (f"schedule {schedule.name!r} needs {number} stages on each device",)
    expected = tuple(devices[rank] for rank in schedule.ranks(len(devices), count))
    names = stages.placed.names
    return tuple(
        f"stage {i} is on {names[here]}, schedule {schedule.name!r} has it on {names[there]}"
        for i, (here, there) in enumerate(zip(stages.order, expected, strict=True))
        if here != there
    )


def _wrong_number(schedule: VirtualSchedule, stages: NumberedStages, microbatches: int) -> tuple[str, ...]:
    """Return a message if the schedule does not run so many microbatches on so many devices."""
    broken = schedule.rule(len(set(stages.order)), microbatches)
    return (f"the number of microbatches is {microbatches}, it {broken}",) if broken else ()


def _memory(
    schedule: VirtualSchedule, stages: NumberedStages, microbatches: int
) -> tuple[Floats, dict[int, str]]:
    """Return the memory of each device, shape (devices,), and a remark on that of each device in use.

    A device holds sizes, parameters, gradients and states of the optimizer of all its stages, at the worst
    moment the activations of the samples in flight, and the largest workspace.
    """
    placed, devices = stages.placed, list(dict.fromkeys(stages.order))
    chunks = len(stages.order) // len(devices)
    graph, count = placed.graph, len(placed.names)
    parameters, gradients, optimizer, activations, workspace = graph.parts
    once = np.bincount(placed.device, graph.size + parameters + gradients + optimizer, count)
    largest, kept = np.zeros(count), np.bincount(stages.of, activations, len(stages.order))
    np.maximum.at(largest, placed.device, workspace)
    memory, remarks = np.asarray(once + largest), dict[int, str]()
    for rank, device in enumerate(devices):
        own = list(schedule.stages_of(rank, len(devices), chunks))
        held = samples_by_chunk(schedule.name, rank, len(devices), chunks, microbatches)
        amounts = np.array(held) @ kept[own]
        memory[device] += amounts.max()
        worst = held[int(amounts.argmax())]
        remarks[device] = f" ({' and '.join(map(str, worst))} samples in flight on its stages)"
    return memory, remarks
