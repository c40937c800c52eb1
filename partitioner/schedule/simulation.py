"""The simulation of a schedule with the times of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import networkx as nx
import numpy as np

from partitioner.base.argument_types import check_word, require_text, require_type
from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.evaluation.costs import loads_of
from partitioner.evaluation.notes import notes_on_memory
from partitioner.evaluation.solution import AnySolution, PlanRecord, solution_of
from partitioner.schedule.check import check
from partitioner.schedule.kinds.kind import Kind
from partitioner.schedule.kinds.registry import kind_of
from partitioner.schedule.memory import Use, use_of
from partitioner.schedule.passes import Passes, exchanging, split_backward
from partitioner.schedule.reading import read_passes, refuse
from partitioner.schedule.running import run_table, with_late_exchange
from partitioner.schedule.table import BACKWARD, FORWARD, INPUT, Table
from partitioner.schedule.timeline import Memory, Timeline
from partitioner.workload.device_validation import LARGEST, is_amount
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.networkx_graph import as_graph

LINKS = ("host", "direct")
INPUT_SHARE = 0.5
MOST_PASSES = 10_000_000  # their simulation takes a minute and 2 GB
WHOLE = "must be an integer of at least 1"


def simulate(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices | None,
    plan: AnySolution,
    schedule: str | Table | None = None,
    microbatches: int | None = None,
    *,
    replicas: Mapping[str, Sequence[str]] | None = None,
    order: Sequence[str] | None = None,
    links: str = "host",
    input_share: float = INPUT_SHARE,
    pass_time: float = 0.0,
    recompute: bool = False,
    late_exchange: bool = False,
) -> Timeline:
    """Return the timeline of a schedule with the times of a plan: what runs when, and the memory over time.

    Every stage has a forward pass and, if the graph has backward nodes, a backward pass; for a split that is
    not a chain stages are virtual (paper, Section 5.2). A pass fetches the tensors that other devices have
    produced, processes its nodes, and sends the tensors that other devices use. The times of these parts are
    those of the evaluator. A device runs its passes in the order of its row; each part begins as soon as the
    device is free for it and its inputs are available.

    Parameters
    ----------
    graph, devices, replicas, order
        See :func:`partitioner.evaluate`; by default the devices, replicas and stages of the plan.
    plan
        A plan, or the name of a device for every node id.
    schedule
        A name from the registry: ``"single_stream"``, ``"inference"``, ``"gpipe"``, ``"1f1b"``,
        ``"1f1b_async"``, ``"interleaved"``, ``"zb-h1"``, ``"zbv"``, ``"dualpipev"``, or a name that
        :func:`partitioner.solve` takes; or a :class:`Table`. By default that of the plan,
        else ``"1f1b"``, or ``"inference"`` for a graph without backward nodes.
    microbatches
        The number of samples; by default that of the table or the plan.
    links
        ``"host"``: the device that produces a tensor sends it to host memory once, and each device that uses
        it fetches it once, as in the paper and the evaluator. ``"direct"``: a tensor goes from device to
        device. The transfer then occupies only the receiver, for the same time as a fetch; the sender pays
        nothing, and the transfer can begin as soon as the tensor has been produced.
    input_share
        For schedules that run the backward pass in halves: the fraction of its processing time that computes
        the gradients of the inputs, from 0 to 1.
    pass_time
        The time that a runtime adds to the processing of each pass. In torch it is what
        ``_PipelineScheduleRuntime._step_microbatches`` does for an action, and
        ``_PipelineStageBase.forward_one_chunk`` and ``backward_one_chunk`` around the module.
    recompute
        Whether stages keep nothing of a forward pass but what they received, and process it again at the
        begin of the backward pass, as ``torch.utils.checkpoint.checkpoint`` around each stage does.
        Activations are held during backward passes only; received tensors are not counted.
    late_exchange
        Whether an exchange of weights once a batch begins when the last pass of all devices has ended, and
        not when the last pass of its own device has.

    Raises
    ------
    WorkloadError
        If the placement, the replicas or the order do not fit the graph or the devices, or a table breaks
        a rule (see :func:`partitioner.schedule.check.check`).
    OptionError
        If an option is out of its range, or the schedule does not support the graph or the split.

    Notes
    -----
    Under ``"sequential"`` communication a device either processes or transfers. Under ``"overlapped"`` one
    channel carries its transfers in parallel to the processing, transfers out first; under ``"duplex"`` there
    is one channel for each direction. A device that runs q passes for a sample fetches inputs for at most the
    next 2 q - 1 passes, so that it can fetch for the next round while a round runs. Parallel transfers still
    delay each sample. 1F1B does not keep more samples in flight to make up for this, so that it does not
    reach the bound then.

    Copies that several devices run together, tensor-parallel, have one row for these devices.

    The r replicas of a stage take the samples in turn. Each spends the whole time of the stage on each of its
    samples. Under ``"1f1b_async"``, or with `devices.exchange` ``"paper"``, it then exchanges weights for r
    times the average time: before its next pass, or in parallel to it if `devices.synchronisation` is
    ``"overlapped"``. Otherwise it exchanges weights once, after its last pass, while other stages may still
    run. Under schedules with several stages on a device all
    devices have r replicas: these are r copies of the pipeline, each of which runs the schedule with every
    r-th sample. Nodes run as their alternatives say; of t devices that run a stage together, the timeline
    shows the first one.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)])
    >>> from partitioner.workload.devices import DeviceKind
    >>> devices = Devices((DeviceKind("gpu", 2),))
    >>> simulate(graph, devices, {0: "gpu0", 1: "gpu1"}, "inference", 4).makespan
    5.0
    """
    _check_options(links, input_share, pass_time)
    for name, value in {"recompute": recompute, "late_exchange": late_exchange}.items():
        if not isinstance(value, bool):
            raise OptionError(f"{name} = {shown(value)}: must be True or False")
    if devices is not None:
        require_type("devices", devices, Devices)
    if schedule is not None and not isinstance(schedule, Table):
        require_text(schedule=schedule)
    graph = as_graph(graph, devices)
    record = solution_of(plan)
    if isinstance(record, PlanRecord):
        devices = record.devices(devices)
        graph = record.trained(graph)
        record.check_graph(graph, devices, strict=False)
        schedule = record.schedule if schedule is None else schedule
        if microbatches is None and not isinstance(schedule, Table):
            microbatches = record.microbatches
    if devices is None:
        raise WorkloadError([Flaw("devices", "", "None", "must be given for a placement that is not a plan")])
    schedule = usual_schedule(graph) if schedule is None else schedule
    kind: Kind = Given(schedule) if isinstance(schedule, Table) else kind_of(schedule)
    passes = read_passes(graph, devices, record, replicas=replicas, order=order, links=links)
    passes = split_backward(passes, input_share) if kind.halves else passes
    passes = recomputed(passes) if recompute else passes
    passes = replace(passes, compute=passes.compute + pass_time)
    passes = exchanging(passes, devices.exchange != "paper" and not kind.versions)
    table = table_for(kind, passes, microbatches)
    begin, end = run_table(table, passes, devices.communication, devices.synchronisation)
    if late_exchange:
        begin, end = with_late_exchange(table, passes, begin, end)
    uses = use_of(table, passes, kind.versions)
    return Timeline(
        schedule=kind.name,
        table=table,
        begin=begin,
        end=end,
        memory=tuple(_over_time(table, i, use, begin, end) for i, use in enumerate(uses)),
        peak_memory=np.array([use.peak for use in uses]),
        memory_limit=_limits(devices, table.devices),
        in_flight=np.array([use.in_flight for use in uses]),
        bound=float(max(_loads(passes, devices, table.microbatches).values())),
        together={passes.names[i]: _names(passes, team) for i, team in passes.together.items()},
        notes=(*notes_on_memory(graph, kind.name), *passes.notes, *_notes(kind, passes, input_share)),
    )


def table_for(kind: Kind, passes: Passes, microbatches: int | None) -> Table:
    """Return the table of a schedule; a table that the user has given is checked.

    Raises
    ------
    WorkloadError, OptionError
        If the table breaks a rule, or the schedule does not support the passes, see :func:`simulate`.
    """
    whole = isinstance(microbatches, int) and not isinstance(microbatches, bool) and microbatches >= 1
    if isinstance(kind, Given):
        count = kind.rows.microbatches if microbatches is None else microbatches
        refuse([Flaw("table", "", "", words) for words in check(kind.rows, passes, count)])
        return kind.rows
    if microbatches is None or not whole:
        raise OptionError(f"microbatches = {shown(microbatches)}: {WHOLE}")
    if kind.trains is not None and kind.trains != passes.trains:
        rule = "is for graphs with backward nodes" if kind.trains else "is for graphs without backward nodes"
        raise OptionError(f"schedule = {kind.name!r}: {rule}")
    per_sample = max(len(passes.device), 1)
    if microbatches > MOST_PASSES // per_sample:
        rule = f"must be at most {MOST_PASSES // per_sample:,} for {per_sample} passes a sample"
        raise OptionError(f"microbatches = {shown(microbatches)}: {rule} ({MOST_PASSES:,} passes in all)")
    return kind.table(passes, microbatches)


def usual_schedule(graph: Graph) -> str:
    """Return the name of the schedule that is simulated by default."""
    return "1f1b" if graph.backward.any() else "inference"


def _check_options(links: object, input_share: object, pass_time: object) -> None:
    check_word("links", links, LINKS)
    number = isinstance(input_share, int | float) and not isinstance(input_share, bool)
    if not number or not 0 <= input_share <= 1:  # type: ignore[operator]
        raise OptionError(f"input_share = {shown(input_share)}: must be a number from 0 to 1")
    if not is_amount(pass_time):
        raise OptionError(f"pass_time = {shown(pass_time)}: must be a number from 0 to {LARGEST:g}")


def _notes(kind: Kind, passes: Passes, input_share: float) -> tuple[str, ...]:
    """Return notes on how often weights are exchanged, and on a share that has no effect."""
    often = {"once a batch": passes.closing.any(), "for every sample": passes.sync.any()}
    noted = tuple(f"replicas exchange weights {words}" for words, present in often.items() if present)
    if kind.halves or input_share == INPUT_SHARE:
        return noted
    return (*noted, f"input_share = {input_share:g} has no effect: {kind.name} runs whole backward passes")


def _names(passes: Passes, devices: Sequence[int]) -> tuple[str, ...]:
    return tuple(passes.names[i] for i in devices)


def _loads(passes: Passes, devices: Devices, microbatches: int) -> dict[int, float]:
    """Return the load of every stage: the average time that each of its devices spends on a sample."""
    found = {}
    for lead, copies in passes.replicas.items():
        own = passes.device == lead
        parts = (np.array(part[own].sum()) for part in (passes.compute, passes.into, passes.out))
        busy = float(loads_of(devices.communication, *parts)) / len(copies)
        sync = float(passes.sync[own].sum()) / len(copies)
        sync += float(passes.closing[lead]) / max(1, microbatches)
        found[lead] = busy + sync if devices.synchronisation == "added" else max(busy, sync)
    return found


def _limits(devices: Devices, names: Sequence[str]) -> Floats:
    known = [devices.kind_of(name) for name in names]
    return np.array([devices.kinds[found[0]].memory_limit for found in known if found is not None])


def _over_time(table: Table, device: int, use: Use, begin: Floats, end: Floats) -> Memory:
    """Return the memory of a device over time; at equal times an end comes before a beginning."""
    row = slice(table.start[device], table.start[device + 1])
    time = np.stack((begin[row, 1], end[row, 1]), axis=1).ravel()
    used = np.stack((use.running, use.rest), axis=1).ravel()
    return Memory(np.concatenate(([0.0], time)), np.concatenate(([use.idle], used)))


# Passes of stages that keep nothing of a forward pass, and run it again before the backward pass.


def recomputed(passes: Passes) -> Passes:
    """Return the passes with the processing of each forward pass once more before the stage's backward pass.

    The activations of a sample are held from the beginning of the backward pass, or of its first half, on.
    What a stage has received it keeps; these bytes are not in a workload, and not counted.

    Raises
    ------
    OptionError
        If the graph has no backward nodes, or a stage has its backward pass on another device.
    """
    if not passes.trains:
        raise OptionError("recompute = True: is for graphs with backward nodes")
    if not passes.paired:
        rule = "needs both passes of a stage on one device, and backward passes in the reverse order"
        raise OptionError(f"recompute = True: {rule}")
    forward = np.flatnonzero(passes.direction == FORWARD)
    again = np.flatnonzero((passes.direction == BACKWARD) | (passes.direction == INPUT))
    forward = forward[np.argsort(passes.stage[forward])]
    source = forward[passes.stage[again]]
    compute, activations, release = passes.compute.copy(), passes.activations.copy(), passes.release.copy()
    compute[again] += compute[source]
    activations[again], release[again] = activations[source], release[source]
    activations[forward] = 0.0
    return replace(passes, compute=compute, activations=activations, release=release)


# A schedule that the user gives as a table.


@dataclass(frozen=True, eq=False)
class Given:
    """A table that the user gives, such as one read from a file; it is checked before it runs.

    Two devices, two microbatches::

        device 0   0F0  0F1  .    0B0  .    0B1
        device 1   .    1F0  1B0  1F1  1B1  .
    """

    rows: Table
    name: ClassVar[str] = "table"
    trains: ClassVar[bool | None] = None
    versions: ClassVar[bool] = False

    @property
    def halves(self) -> bool:
        """Whether the table runs the backward pass in two halves."""
        return bool((self.rows.direction >= INPUT).any())

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return the given table, whatever the passes."""
        return self.rows
