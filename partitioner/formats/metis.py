"""Reading of Metis's profiles: the layers of a model at one microbatch size and tensor-parallel degree.

The file holds ``model`` (``num_layers`` and, for each layer, the bytes of its parameters and of its output),
``execution_time`` (ms of both passes together, by layer) and ``execution_memory`` (MiB, by layer). Lists may
be longer than ``num_layers``; what exceeds it is not read, as Metis does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.formats.devices_in_place import one_accelerator
from partitioner.formats.pass_shares import BACKWARD_SHARE, check_passes, split_passes
from partitioner.formats.record import Record, RuleBrokenError, amount, filled, mapping, text, whole
from partitioner.workload.devices import Devices
from partitioner.workload.extras import Extras
from partitioner.workload.graph import Graph
from partitioner.workload.layer import Layer

MIB = 2.0**20
MOST_LAYERS = 100_000


@dataclass(frozen=True)
class MetisProfile:
    """The columns of a profile, with an entry for each layer: ms, MiB, bytes, bytes."""

    name: str
    times: list[float]
    memory: list[float]
    parameters: list[float]
    outputs: list[float]


def metis_graph(
    content: Any,
    source: str,
    *,
    bandwidth: float | None = None,
    training: bool = True,
    backward_share: float = BACKWARD_SHARE,
) -> tuple[Graph, Devices]:
    """Return the layer graph of a profile, and one accelerator.

    A sample is a microbatch of the file's size; a device is a group of the file's tensor-parallel degree. Of
    the memory of a layer, the parameters are told apart; the rest counts once, whatever the schedule.

    Parameters
    ----------
    content, source
        The parsed JSON, and the file's name for messages.
    bandwidth
        Bytes per second between a device and host memory.
    training
        Whether to add backward nodes; the file's times are those of both passes.
    backward_share
        The part of a layer's time that the backward pass takes; the file does not say it.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    OptionError
        If an option is missing or not in its range.
    """
    check_passes(training, backward_share)
    found = _read(content, source)
    layers = [_layer(found, i, training, backward_share) for i in range(len(found.times))]
    try:
        graph = Graph.chain(layers, bandwidth=bandwidth, training=training)
    except WorkloadError as error:
        raise type(error)(error.flaws, source) from error
    given = {**graph.extras.top, "backwardShare": backward_share, "model": found.name}
    graph = replace(graph, extras=Extras(given, graph.extras.nodes))
    return graph, one_accelerator(graph)


def _read(content: Any, source: str) -> MetisProfile:
    flaws: list[Flaw] = []
    top = Record(content, "file", flaws)
    model = _part(top, "model")
    sizes = Record(model.take("parameters", mapping, {}), "model.parameters", flaws)
    count = model.take("num_layers", _count, 1)
    found = MetisProfile(
        name=model.take("model_name", text, "", False),
        times=_column(_part(top, "execution_time"), "layer_compute_total_ms", count),
        memory=_column(_part(top, "execution_memory"), "layer_memory_total_mb", count),
        parameters=_column(sizes, "parameters_per_layer_bytes", count),
        outputs=_column(sizes, "activation_parameters_bytes", count),
    )
    if flaws:
        raise WorkloadError(list(dict.fromkeys(flaws)), source)
    return found


def _layer(found: MetisProfile, i: int, training: bool, share: float) -> Layer:
    """Return layer `i`; the last one sends nothing."""
    forward, backward = split_passes(found.times[i], training, share)
    parameters = found.parameters[i]
    return Layer(
        f"layer{i}",
        forward,
        backward,
        parameters=parameters,
        output=found.outputs[i] if i < len(found.times) - 1 else 0.0,
        size=max(0.0, found.memory[i] * MIB - parameters),
        gradients=0.0,
    )


def _part(top: Record, name: str) -> Record:
    return Record(top.take(name, mapping, {}), name, top.flaws)


def _count(value: Any) -> int:
    if not 1 <= whole(value) <= MOST_LAYERS:
        raise RuleBrokenError(f"must be a whole number from 1 to {MOST_LAYERS:,}")
    return whole(value)


def _column(record: Record, field: str, count: int) -> list[float]:
    """Return one number for each layer; zeros if the list breaks a rule, which adds a flaw."""

    def convert(value: Any) -> list[float]:
        if len(filled(value)) < count:
            raise RuleBrokenError(f"must have {count} numbers, one for each layer")
        return [amount(entry) for entry in value[:count]]

    return record.take(field, convert, [0.0] * count)
