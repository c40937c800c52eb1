"""The arguments of a graph from groups of operations: times, memory, classes, edges, further fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from partitioner.base.errors import OptionError
from partitioner.estimation.named_devices import NamedDevice
from partitioner.estimation.optimizer import optimizer_bytes_of
from partitioner.integrations.torch.graphs.edges import edges_of, edges_of_inputs, edges_of_strided, exchanged
from partitioner.integrations.torch.graphs.grouping import Classes, OperationGroup, colour_classes
from partitioner.integrations.torch.graphs.memory import (
    Tensors,
    distinct,
    held,
    holders,
    loose,
    parameter_gradients,
    shared,
    stash,
    workspace,
)
from partitioner.integrations.torch.graphs.operation import Capture, Source
from partitioner.integrations.torch.graphs.times import estimated, with_measured
from partitioner.workload.extras import INPUTS_ALONE, LOOSE, SHARED, STRIDED, Extras, ties_field


@dataclass(frozen=True)
class Costs:
    """How times and memory are estimated; ``graph_of`` says what each field is."""

    devices: Mapping[str, NamedDevice]
    dtype: str | None
    efficiency: float | None
    times: Mapping[str, float] | None
    per_byte: float
    microbatches: int
    optimizer_bytes: float | None


def graph_arguments(
    capture: Capture, groups: Sequence[OperationGroup], costs: Costs, training: bool, top: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of :meth:`partitioner.Graph.from_arrays` for groups of operations."""
    classes = colour_classes(groups, (*capture.joined, *pairwise(capture.loss)))
    carried = edges_of(capture, groups, classes, costs.microbatches)
    readers = holders(capture, groups)
    if training:
        copies = _copies(capture, groups, readers, classes, costs)
        top = {**top, **ties_field(copies, exchanged(capture, groups, classes), counted=False)}
    readers_of = {
        INPUTS_ALONE: edges_of_inputs(capture, groups),
        STRIDED: edges_of_strided(capture, groups),
        LOOSE: loose(capture, groups, readers),
    }
    return {
        **_memory(capture, groups, readers, classes, costs),
        "time": _times(groups, costs),
        "edges": list(carried),
        "cost": [nbytes * costs.per_byte for nbytes in carried.values()],
        "ids": [group.name for group in groups],
        "backward": [group.backward for group in groups],
        "color": _colours(groups, classes),
        "layer": [group.layer for group in groups],
        "names": [group.name for group in groups],
        "extras": Extras(top, _kept(groups, {SHARED: shared(capture, readers, classes)} | readers_of)),
    }


def _times(groups: Sequence[OperationGroup], costs: Costs) -> dict[str, Any]:
    if costs.times and len(costs.devices) > 1:
        raise OptionError("times: must be left out for several kinds of devices; replace the graph's `time`")
    return {
        kind: with_measured(
            estimated(groups, device, costs.dtype, costs.efficiency), groups, costs.times or {}
        )
        for kind, device in costs.devices.items()
    }


def _memory(
    capture: Capture,
    groups: Sequence[OperationGroup],
    readers: Mapping[str, list[str]],
    classes: Classes,
    costs: Costs,
) -> dict[str, list[float]]:
    parameters, buffers = (held(capture, readers, kind) for kind in ("parameter", "buffer"))
    finished = parameter_gradients(capture, groups)
    kept = stash(Tensors(capture), groups, classes)
    return {
        "parameters": [_sum(parameters.get(group.name, ())) for group in groups],
        "size": [_sum(buffers.get(group.name, ())) for group in groups],
        "gradients": [_sum(finished[group.name]) for group in groups],
        "optimizer": [
            sum(_optimizer(source, costs.optimizer_bytes) for source in finished[group.name])
            for group in groups
        ],
        "activations": [float(kept.get(group.name, 0)) for group in groups],
        "workspace": [float(workspace(group)) for group in groups],
    }


def _copies(
    capture: Capture,
    groups: Sequence[OperationGroup],
    readers: Mapping[str, list[str]],
    classes: Classes,
    costs: Costs,
) -> Iterator[tuple[str, float, float, float]]:
    """Yield the bytes that further classes of nodes would hold of the parameters which they share."""
    finished = parameter_gradients(capture, groups)
    ends = {source.path: name for name, sources in finished.items() for source in sources}
    last = {classes[group.name]: group.name for group in groups}  # of the backward pass where it has one
    for path, source in distinct(capture).items():
        names = readers.get(path, []) if source.kind == "parameter" else []
        first = {classes[name]: name for name in reversed(names)}
        for name in names:
            if first[classes[name]] != name or len(first) == 1:
                continue
            if classes[name] != classes[names[0]]:
                yield name, float(source.nbytes), 0.0, 0.0
            if path in ends and classes[name] != classes[ends[path]]:
                state = _optimizer(source, costs.optimizer_bytes)
                yield last[classes[name]], 0.0, float(source.nbytes), state


def _sum(sources: Sequence[Source]) -> float:
    return float(sum(source.nbytes for source in sources))


def _optimizer(source: Source, given: float | None) -> float:
    return source.count * optimizer_bytes_of(given, source.nbytes / source.count) if source.count else 0.0


def _colours(groups: Sequence[OperationGroup], classes: Classes) -> list[str | None]:
    """Return the class of each group, None for a group that is alone in its class."""
    members = Counter(classes[group.name] for group in groups)
    return [name if members[name := classes[group.name]] > 1 else None for group in groups]


def _kept(
    groups: Sequence[OperationGroup], lists: Mapping[str, Mapping[str, list[str]]]
) -> list[dict[str, Any]]:
    """Return the further fields of the nodes; `lists` has those that only some nodes have."""
    return [
        {
            "module": group.layer,
            "operators": list(dict.fromkeys(op.operator for op in group.operations)),
            "flops": sum(op.flops for op in group.operations),
            "bytesIn": sum(op.bytes_in for op in group.operations),
            "bytesOut": sum(op.bytes_out for op in group.operations),
            **{field: names[group.name] for field, names in lists.items() if group.name in names},
        }
        for group in groups
    ]
