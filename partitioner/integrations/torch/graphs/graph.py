"""A model of torch as a graph, without running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from partitioner.base.argument_types import check_word, is_count, require_callable
from partitioner.base.errors import OptionError, shown
from partitioner.estimation.device_time import curve_note
from partitioner.integrations.torch.graphs.granularity import GRANULARITIES, OPERATOR, layers_of
from partitioner.integrations.torch.graphs.grouping import OperationGroup, grouped
from partitioner.integrations.torch.graphs.nodes import Costs, graph_arguments
from partitioner.integrations.torch.graphs.operation import Capture
from partitioner.integrations.torch.graphs.times import AnyDevice, devices_by_kind
from partitioner.integrations.torch.installed import require_torch
from partitioner.workload.graph import Graph
from partitioner.workload.layer_graph import time_per_byte


def graph_of(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    device: AnyDevice | Mapping[str, AnyDevice],
    bandwidth: float,
    training: bool = False,
    loss: Callable[..., Any] | None = None,
    targets: tuple[Any, ...] = (),
    granularity: str = "operator",
    dtype: str | None = None,
    efficiency: float | None = None,
    times: Mapping[str, float] | None = None,
    microbatches: int = 1,
    optimizer_bytes: float | None = None,
) -> Graph:
    """Return the graph of a model, whose nodes are its operators, its modules or its blocks.

    The model is captured by ``torch.export`` and not run: parameters and arguments may be on the device
    ``"meta"``, where a model of any size takes no memory. ``docs/torch.md`` says what is counted, and how.

    Parameters
    ----------
    model
        A ``torch.nn.Module``.
    args, kwargs
        The arguments of a call of it; their shapes are those of a sample.
    device
        The device whose times are estimated, such as ``"H100"``: see :data:`partitioner.estimation.DEVICES`.
        For several kinds a mapping from the kind to the device.
    bandwidth
        Bytes per second between a device and host memory.
    training
        Whether to add the backward pass, gradients and optimizer.
    loss
        For training: what makes a scalar of the output and the `targets`; None if the gradients of the
        outputs come from elsewhere.
    targets
        Further arguments of `loss`.
    granularity
        What becomes a node: ``"operator"``, ``"module"`` (what the innermost module does without a break) or
        ``"block"`` (a member of a list of modules, such as ``layers.3``, or of a row of modules that are
        alike, such as ``encoder_layer_3``, or a module outside of these).
    dtype
        The type of numbers whose speed is taken; None for that of each operator's output.
    efficiency
        None for what was measured for products of each operator's sizes
        (:mod:`partitioner.estimation.operator_times`); else the part of the device's peak and bandwidth that
        every operator reaches, 1 for the least time.
    times
        Measured times in ms by the path of a module or by node, for the backward pass followed by
        ``/backward``; what is not in it is estimated. For one kind of device only.
    microbatches
        The samples of a batch, after which gradients of shared parameters are exchanged.
    optimizer_bytes
        Bytes that the optimizer keeps of a parameter; None for those of Adam: 12 for numbers of two bytes or
        less, else 8.

    Returns
    -------
    Graph
        ``extras.nodes`` has for each node ``operators`` (its operators in the exported program),
        ``flops``, ``bytesIn``, ``bytesOut`` and, where there are any, ``sharedParameters``.

    Raises
    ------
    BackendUnavailable
        If torch is not installed, or for training is of another version than the one known.
    OptionError
        If an option is not of its type or range.
    WorkloadError
        If a shape depends on the values of tensors.
    """
    check_call(args, targets, loss, training, granularity, microbatches)
    given = Costs(
        devices=devices_by_kind(device),
        dtype=dtype,
        efficiency=efficiency,
        times=times,
        per_byte=time_per_byte(bandwidth),
        microbatches=microbatches,
        optimizer_bytes=optimizer_bytes,
    )
    require_torch()
    from partitioner.integrations.torch.graphs.capture import seen_and_captured

    _, capture = seen_and_captured(model, tuple(args), kwargs or {}, training, loss, tuple(targets))
    groups = groups_of(capture, granularity)
    top = {"timeUnit": "ms", "bandwidth": bandwidth, "training": training, "microbatches": microbatches}
    top |= {"granularity": granularity, "notes": list(capture.notes), **_source_of_times(given)}
    return Graph.from_arrays(**graph_arguments(capture, groups, given, training, top))


def check_call(
    args: object,
    targets: object,
    loss: object,
    training: object,
    granularity: object,
    microbatches: object,
) -> None:
    """Raise `OptionError` if an argument that says what is captured, and how, is not of its type or range."""
    check_word("granularity", granularity, GRANULARITIES)
    for name, value in (("args", args), ("targets", targets)):
        if not isinstance(value, tuple | list):
            raise OptionError(f"{name} = {shown(value)}: must be a tuple of arguments")
    require_callable(loss=loss)
    if not isinstance(training, bool):
        raise OptionError(f"training = {shown(training)}: must be True or False")
    if loss is not None and not training:
        raise OptionError("loss: belongs to training=True")
    if not is_count(microbatches):
        raise OptionError(f"microbatches = {shown(microbatches)}: must be an integer of at least 1")


def _source_of_times(costs: Costs) -> dict[str, str]:
    """Return the field of a graph that says whose curves its times are from; none if some are measured."""
    if costs.times or costs.efficiency is not None:
        return {}
    return {"times": "; ".join(dict.fromkeys(map(curve_note, costs.devices.values())))}


def groups_of(capture: Capture, granularity: str) -> list[OperationGroup]:
    """Return the operations of a captured model in groups, each of which becomes a node."""
    return grouped(capture, layers_of(capture, granularity), granularity == OPERATOR)
