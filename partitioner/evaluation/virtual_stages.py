"""Evaluations of pipelines with several stages on a device: load of all of them, memory by schedule."""

from __future__ import annotations

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.evaluation.degrees import degree_violations
from partitioner.evaluation.frame import completed, read_numbered
from partitioner.evaluation.notes import notes_on_exchange, notes_on_memory
from partitioner.evaluation.pipeline import PlacedPipeline, costs_of, loads_with_replicas
from partitioner.evaluation.replicas import Replicas, shared_out
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.stage_numbers import NumberedStages
from partitioner.evaluation.terms import Terms
from partitioner.evaluation.violations import violations_of
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.virtual_stages.in_flight import samples_by_chunk
from partitioner.workload.virtual_stages.schedules import VIRTUAL, VirtualSchedule


def evaluate_virtual_stages(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return the largest load of a device, which is busy with all stages that it has.

    A tensor between two stages on one device costs nothing; one that several stages of a device use is
    fetched once. With replicas every device has as many: they are copies of the whole pipeline, which take
    the samples in turn, so that a copy runs the schedule with its part of the microbatches.

    Raises
    ------
    OptionError
        If there are levels, the schedule does not run several stages on a device, or its
        number of microbatches is missing.
    """
    schedule = _schedule(devices, solution, terms)
    placed, copies, stages = read_numbered(graph, devices, solution)
    costs = costs_of(PlacedPipeline(placed, copies, stages.order, terms.schedule, terms.microbatches))
    memory = (placed.memory - shared_out(placed, copies))[copies.lead]
    held, violations = dict[int, str](), stages.against_order()
    if schedule is not None:
        assert terms.microbatches is not None
        broken = _misplaced(schedule, stages) or _wrong_copies(schedule, stages, copies)
        broken = broken or _wrong_number(schedule, stages, copies, terms.microbatches)
        violations += broken
        if not broken:
            memory, held = _memory(schedule, stages, copies, terms.microbatches)
    violations += degree_violations(placed, copies)
    violations += violations_of(placed, np.where(copies.further, 0.0, memory), held)
    loads = loads_with_replicas(placed, copies, costs, memory)
    notes = (
        *notes_on_memory(graph, terms.schedule),
        *notes_on_exchange(placed, copies, terms.schedule, terms.microbatches),
    )
    value = float(costs.load.max())
    found = Evaluation("throughput", value, loads, violations, stages.shape, notes=notes)
    return completed(found, placed, copies, tuple(range(len(stages.order))), terms, stages.staged)


def _schedule(devices: Devices, solution: Solution, terms: Terms) -> VirtualSchedule | None:
    if terms.schedule is not None and terms.schedule not in VIRTUAL:
        names = ", ".join(VIRTUAL)
        raise OptionError(f"schedule = {terms.schedule!r}: must be one of {names} where stage_of is given")
    if devices.levels:
        raise OptionError("levels: must not be given for pipelines with several stages on a device")
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


def _wrong_copies(schedule: VirtualSchedule, stages: NumberedStages, copies: Replicas) -> tuple[str, ...]:
    """Return a message if not all devices have the same number of replicas."""
    found = sorted({int(copies.count[device]) for device in stages.order})
    if len(found) == 1:
        return ()
    counts = " or ".join(map(str, found))
    return (f"schedule {schedule.name!r} needs as many copies of each device, there are {counts}",)


def _parts(stages: NumberedStages, copies: Replicas, microbatches: int) -> set[int]:
    """Return how many microbatches copies of the pipeline take in turn: numbers that differ by 1 at most."""
    each, rest = divmod(microbatches, int(copies.count[stages.order[0]]))
    return {each, each + 1} if rest else {each}


def _wrong_number(
    schedule: VirtualSchedule, stages: NumberedStages, copies: Replicas, microbatches: int
) -> tuple[str, ...]:
    """Return a message if the schedule does not run this number of microbatches on this number of devices."""
    parts = sorted(_parts(stages, copies, microbatches))
    if parts[0] == 0:
        return (f"the number of microbatches is {microbatches}, there are more copies of the pipeline",)
    rules = ((part, schedule.rule(len(set(stages.order)), part)) for part in parts)
    where = "" if parts == [microbatches] else " of a copy"
    return tuple(f"the number of microbatches{where} is {part}, it {rule}" for part, rule in rules if rule)[
        :1
    ]


def _memory(
    schedule: VirtualSchedule, stages: NumberedStages, copies: Replicas, microbatches: int
) -> tuple[Floats, dict[int, str]]:
    """Return the memory of each device, shape (devices,), and a remark on that of each stage's first device.

    A device holds sizes, parameters, gradients and states of the optimizer of all its stages, at the worst
    moment the activations of the samples in flight, and the largest workspace. Of copies that take different
    numbers of microbatches the one that holds more counts.
    """
    placed, devices = stages.placed, list(dict.fromkeys(stages.order))
    chunks = len(stages.order) // len(devices)
    graph, count = placed.graph, len(placed.names)
    parameters, gradients, optimizer, activations, workspace = graph.parts
    once = np.bincount(placed.device, graph.size + parameters + gradients + optimizer, count)
    largest, kept = np.zeros(count), np.bincount(stages.of, activations, len(stages.order))
    np.maximum.at(largest, placed.device, workspace)
    memory, remarks = np.asarray(once + largest - shared_out(placed, copies)), dict[int, str]()
    parts = _parts(stages, copies, microbatches)
    for rank, device in enumerate(devices):
        own = list(schedule.stages_of(rank, len(devices), chunks))
        held = [
            each
            for part in parts
            for each in samples_by_chunk(schedule.name, rank, len(devices), chunks, part)
        ]
        amounts = np.array(held) @ kept[own]
        memory[device] += amounts.max()
        worst = held[int(amounts.argmax())]
        remarks[device] = f" ({' and '.join(map(str, worst))} samples in flight on its stages)"
    return memory[copies.lead], remarks
