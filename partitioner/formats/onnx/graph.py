"""The graph of an ONNX model, with times by curves, a roofline or from a profile of ONNX Runtime."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from partitioner.base.argument_types import check_word
from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.base.files import path_name, read_json
from partitioner.estimation.device_time import curve_note
from partitioner.estimation.named_devices import NamedDevice, dtype_name, named_device
from partitioner.estimation.operator_times import OperatorWork, operator_times
from partitioner.formats.devices_in_place import one_accelerator
from partitioner.formats.onnx.costs import OperatorCost, cost_of
from partitioner.formats.onnx.layers import grouped, layers_of
from partitioner.formats.onnx.model_file import load_proto, onnx_module
from partitioner.formats.onnx.operators import node_titles, read_operators
from partitioner.formats.record import Record, amount, listing, text
from partitioner.workload.array_input import classes
from partitioner.workload.devices import Devices
from partitioner.workload.extras import Extras
from partitioner.workload.graph import Graph

GRANULARITIES = ("operator", "layer")
PLAIN = "float32"  # the speed that operators on indices and truth values are given


def graph_of(
    model: Any,
    *,
    bandwidth: float | None = None,
    device: str | NamedDevice = "H100",
    dtype: str | None = None,
    efficiency: float | None = None,
    dims: Mapping[str, int] | None = None,
    times: str | os.PathLike[str] | None = None,
    granularity: str = "operator",
) -> Graph:
    """Return the graph of an ONNX model; ``docs/graphs_in.md`` says how its costs are estimated.

    Parameters
    ----------
    model
        The path of a file, or a model that is loaded already. Weights are not read, only their sizes.
    bandwidth
        Bytes per second between a device and host memory; None if nothing is sent.
    device
        The name of the devices, or their figures: see :data:`partitioner.estimation.DEVICES`.
    dtype
        The type that all floating-point numbers are taken to have; None for those of the model.
    efficiency
        The part of the device's peak and bandwidth that every operator reaches; None for what was measured
        for products of its sizes (:mod:`partitioner.estimation.operator_times`).
    dims
        The size of each dynamic dimension by name, such as ``{"batch": 8}``.
    times
        A profile that ONNX Runtime wrote for the model; None for estimated times.
    granularity
        ``"operator"``: a node for each operator; ``"layer"``: for each layer, told by the names of modules.

    Raises
    ------
    WorkloadError
        Naming the file, and each dimension without a size, tensor without a shape, or node without a time.
    OptionError
        If an option is not in its range.
    BackendUnavailable
        If the package onnx is not installed.
    """
    check_word("granularity", granularity, GRANULARITIES)
    kind = None if dtype is None else dtype_name(dtype)
    figures = named_device(device)
    proto, source = _loaded(model)
    found = read_operators(proto, source, dims, kind)
    costs = [cost_of(each, found) for each in found.operators]
    estimated = _estimated(costs, figures, kind, efficiency)
    names = [each.name for each in found.operators]
    if times is not None:
        estimated = profile_times(times, names, set(node_titles(proto.graph)) - set(names))
    groups = grouped(found, granularity == "layer", source)
    try:
        graph = Graph.chain(layers_of(found, groups, costs, estimated), bandwidth=bandwidth, training=False)
    except WorkloadError as error:
        raise type(error)(error.flaws, source) from error
    codes, labels = classes([group.label for group in groups], len(groups), "layer", str)
    uncounted = Counter(
        each.operator for each, cost in zip(found.operators, costs, strict=True) if cost.flops is None
    )
    given = {
        "device": figures.name,
        "dtype": kind,
        "efficiency": efficiency,
        "dims": dict(dims or {}),
        "times": "profile" if times else curve_note(figures) if efficiency is None else "roofline",
        "operatorsWithoutFlops": dict(sorted(uncounted.items())),
    }
    extras = Extras({**graph.extras.top, **given}, graph.extras.nodes)
    return replace(graph, layer=codes, layer_labels=labels, extras=extras)


def onnx_graph(content: None, source: str, **options: Any) -> tuple[Graph, Devices]:
    """Return the graph of a file, and one of the named devices; options are those of :func:`graph_of`."""
    graph = graph_of(source, **options)
    device = options.get("device", "H100")
    figures = named_device(device)
    return graph, one_accelerator(graph, figures.memory)


def _loaded(model: Any) -> tuple[Any, str]:
    """Return a model and its file's name."""
    if isinstance(model, str | os.PathLike):
        return load_proto(path_name(model)), path_name(model)
    if not isinstance(model, onnx_module().ModelProto):
        raise WorkloadError([Flaw("model", "", shown(model), "must be a path or an onnx.ModelProto")])
    return model, "model"


def _estimated(
    costs: Sequence[OperatorCost], device: NamedDevice, dtype: str | None, efficiency: float | None
) -> list[float]:
    """Return the time in milliseconds of each operator, with the speed for its numbers."""
    works = [
        OperatorWork(cost.flops or 0.0, cost.read + cost.written, cost.parts, cost.dtype or dtype or PLAIN)
        for cost in costs
    ]
    times: list[float] = operator_times(works, device, efficiency).tolist()
    return times


# Times of nodes from the profile that ONNX Runtime writes (``SessionOptions.enable_profiling``).

KERNEL = "_kernel_time"
US = 1e-3  # ms of a microsecond
HOW = "profile with SessionOptions.graph_optimization_level = ORT_DISABLE_ALL, or plan the optimized model"


def profile_times(path: str | os.PathLike[str], names: Sequence[str], others: Collection[str]) -> list[float]:
    """Return the median time in milliseconds of each node over the runs in a profile.

    Parameters
    ----------
    path
        The JSON file.
    names
        The nodes.
    others
        Nodes of constants alone, whose times do not count: they need to run once.

    Raises
    ------
    WorkloadError
        Naming the file and each node that only the profile or only the model has.
    """
    source = path_name(path)
    flaws: list[Flaw] = []
    found: dict[str, list[float]] = {}
    content = read_json(path)
    if not isinstance(content, list):
        raise WorkloadError([Flaw("file", "", shown(content), "must be a list of events")], source)
    for i, event in enumerate(listing(content)):
        record = Record(event, f"event {i}", flaws)
        if record.data.get("cat") != "Node":
            continue
        name = record.take("name", text, "")
        if name.endswith(KERNEL):
            found.setdefault(name.removesuffix(KERNEL), []).append(record.take("dur", amount, 0.0))
    known = set(names)
    missing = [name for name in names if name not in found]
    flaws += [Flaw(f"node {shown(name)}", "", "", f"has no time in the profile; {HOW}") for name in missing]
    unknown = [name for name in found if name not in known and name not in others]
    flaws += [Flaw(f"node {shown(name)}", "", "", f"is not in the model; {HOW}") for name in unknown]
    if flaws:
        raise WorkloadError(flaws, source)
    return [median(found[name]) * US for name in names]
