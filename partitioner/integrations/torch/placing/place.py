"""A model of torch whose operators run where a plan says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from partitioner.base.argument_types import require_callable, require_type
from partitioner.base.errors import OptionError, shown
from partitioner.evaluation.solution import AnySolution
from partitioner.integrations.torch.installed import require_torch
from partitioner.workload.graph import Graph


def place(
    model: Any,
    args: tuple[Any, ...],
    graph: Graph,
    plan: AnySolution,
    *,
    kwargs: Mapping[str, Any] | None = None,
    devices: Mapping[str, Any] | None = None,
    loss: Callable[..., Any] | None = None,
    targets: tuple[Any, ...] = (),
) -> Any:
    """Return a module that computes what a model does, each operator on the device that a plan says.

    A tensor that is read on another device is copied there once; gradients are copied back.
    ``docs/placing.md`` says what is equal to the model, and how it works on CUDA.

    Parameters
    ----------
    model
        A ``torch.nn.Module``; it stays as it is. Whether it is in training mode is kept.
    args, kwargs, loss, targets
        Those of :func:`~partitioner.integrations.torch.graph_of`, which made the graph. With a loss the
        module takes the arguments and then the targets, and returns the loss.
    graph
        The graph of the model, of any granularity, for inference or training.
    plan
        A plan of the graph of any split, or a mapping from its nodes to devices. If the plan has an order of
        execution, operators are started in it.
    devices
        The device of torch for each device of the plan, such as ``{"accelerator0": "cuda:0"}``. By default
        CUDA's in their order if there are enough of them, else all are simulated on the CPU.

    Returns
    -------
    torch.nn.Module
        Its parameters and buffers are copies on their devices with the names that they have in the model.
        ``copies`` lists the tensors that each call copies.

    Raises
    ------
    BackendUnavailable
        If torch is not installed.
    OptionError
        If a device of the plan has no device of torch in this machine.
    WorkloadError
        If the plan is of another graph, or the graph of another model.
    """
    require_type("graph", graph, Graph)
    require_callable(loss=loss)
    for name, value in (("args", args), ("targets", targets)):
        if not isinstance(value, tuple | list):
            raise OptionError(f"{name} = {shown(value)}: must be a tuple of arguments")
    require_torch()
    from partitioner.integrations.torch.placing.assignment import assignment_of
    from partitioner.integrations.torch.placing.placed_module import placed_module, torch_devices
    from partitioner.integrations.torch.placing.program import program_of

    assignment = assignment_of(graph, plan)
    where = torch_devices(assignment.names, devices)
    program = program_of(model, tuple(args), kwargs or {}, loss, tuple(targets), assignment.device)
    return placed_module(*program, assignment, where)
