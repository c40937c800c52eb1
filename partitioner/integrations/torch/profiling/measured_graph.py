"""The graph of a captured model with measured times and memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from partitioner.integrations.torch.graphs.capture import Seen
from partitioner.integrations.torch.graphs.graph import groups_of
from partitioner.integrations.torch.graphs.grouping import OperationGroup
from partitioner.integrations.torch.graphs.nodes import Costs, graph_arguments
from partitioner.integrations.torch.graphs.operation import Capture
from partitioner.integrations.torch.profiling.cache import OperatorProfile
from partitioner.integrations.torch.profiling.recurrent import notes_on_recurrence
from partitioner.integrations.torch.profiling.rounds import is_disturbed
from partitioner.workload.graph import Graph
from partitioner.workload.layer import ACCELERATOR

UNSTABLE = "the times still changed after {} rounds; other programs may have run on the machine"
DISTURBED = (
    "other programs used {:.0%} of the processors: by clock='elapsed' the times are too long and differ from "
    "one profile to the next; profile on a quiet machine, or with clock='thread'"
)


def measured_graph(
    seen: Seen, capture: Capture, profile: OperatorProfile, costs: Costs, top: Mapping[str, Any]
) -> Graph:
    """Return the graph of :func:`graph_of` with the sums of measured times and with measured memory.

    The workspace of a node is the most that one of its operators has allocated, its output included.
    """
    groups = groups_of(capture, top["granularity"])
    training = bool(top["training"])
    unstable = [] if profile.stable else [UNSTABLE.format(profile.rounds)]
    disturbed = [DISTURBED.format(profile.foreign)] if is_disturbed(profile.foreign) else []
    notes = [*capture.notes, *notes_on_recurrence(capture, training), *unstable, *disturbed]
    kept = {"timeUnit": "ms", **top, "rounds": profile.rounds, "notes": notes}
    arguments = graph_arguments(capture, groups, costs, training, kept)
    figures = [_figures(group, profile) for group in groups]
    outputs = output_bytes(capture, groups, _returned(seen, capture))
    extras = arguments["extras"]
    nodes = [
        {**node, "outputBytes": outputs.get(group.name, 0), "temporaryBytes": temporary}
        for node, group, (_, _, temporary) in zip(extras.nodes, groups, figures, strict=True)
    ]
    arguments["time"] = {ACCELERATOR: [time for time, _, _ in figures]}
    arguments["workspace"] = [peak for _, peak, _ in figures]
    arguments["extras"] = replace(extras, nodes=nodes)
    return Graph.from_arrays(**arguments)


def _figures(group: OperationGroup, profile: OperatorProfile) -> tuple[float, float, float]:
    """Return the time of a group, the most that one of its operators allocates, and frees before its end."""
    found: Sequence[tuple[float, float, float]] = [profile.operators[op.name] for op in group.operations]
    times, peaks, temporary = zip(*((time, peak, peak - left) for time, peak, left in found), strict=True)
    return sum(times), max(peaks), max(0.0, *temporary)


def _returned(seen: Seen, capture: Capture) -> set[str]:
    """Return the operations whose results the model returns, those that update a buffer left out."""
    names = {node.name for node in seen.graph.output_node().all_input_nodes}
    return names - capture.updates - capture.gradients.keys()


# The bytes that nodes hand on to other nodes of the same pass.


def output_bytes(
    capture: Capture, groups: Sequence[OperationGroup], returned: Collection[str]
) -> dict[str, int]:
    """Return the bytes that each group makes and another group of the same pass reads, or the model returns.

    A tensor and its views count once; what an operation writes into a tensor of another group counts nothing.
    """
    maker = {source.storage.key: "" for source in capture.sources.values()}
    nbytes: dict[int, int] = {}
    of_operation = {op.name: op.outputs for group in groups for op in group.operations}
    backward = {group.name: group.backward for group in groups}
    handed_on: set[int] = set()
    for group in groups:
        for op in group.operations:
            keys = [memory.key for name in op.reads for memory in of_operation.get(name, ())]
            keys = [key for key in keys if maker.get(key, group.name) not in ("", group.name)]
            handed_on.update(key for key in keys if backward[maker[key]] == group.backward)
            for memory in op.outputs:
                maker.setdefault(memory.key, group.name)
                nbytes[memory.key] = memory.nbytes
            if op.name in returned:
                handed_on.update(memory.key for memory in op.outputs)
    found: dict[str, int] = {}
    for key in handed_on:
        found[maker[key]] = found.get(maker[key], 0) + nbytes[key]
    return found
