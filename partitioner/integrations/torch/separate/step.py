"""A training step of a model in processes, each of which runs the operators of one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from partitioner.base.argument_types import require_callable, require_type
from partitioner.evaluation.solution import AnySolution
from partitioner.integrations.torch.graphs.graph import check_call
from partitioner.integrations.torch.installed import require_torch
from partitioner.integrations.torch.placing.assignment import assignment_of
from partitioner.workload.graph import Graph


@dataclass(frozen=True, eq=False)
class SeparateStep:
    """What a training step in separate processes computed, and what each of them ran.

    Parameters
    ----------
    loss
        The loss.
    gradients
        The gradient of each parameter that has one, by its path; tied weights have it under their first one.
    buffers
        The new value of each buffer that the step updates, by its path.
    ran
        For each device the names of the calls that it ran, in their order.
    sent
        For each device the bytes of the tensors that it sent.
    """

    loss: Any
    gradients: Mapping[str, Any]
    buffers: Mapping[str, Any]
    ran: Mapping[str, tuple[str, ...]]
    sent: Mapping[str, int]


def run_separate(
    model: Any,
    args: tuple[Any, ...],
    graph: Graph,
    plan: AnySolution,
    *,
    loss: Callable[..., Any],
    targets: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    seconds: float = 600.0,
) -> SeparateStep:
    """Run one training step of a model in a process for each device of a plan, and return what it computed.

    Each process runs the operators of its device, those of the backward pass included, in the order of the
    plan as far as what they read allows it. It asks for all tensors that it will receive at the beginning,
    and sends a tensor once to each other device as soon as it is made. The model stays as it is.

    Parameters
    ----------
    model, args, kwargs, loss, targets
        Those of :func:`~partitioner.integrations.torch.graph_of`, which made the graph.
    graph
        The graph of the model for training, of any granularity.
    plan
        A plan of the graph of any split, or a mapping from its nodes to devices. If the plan has an order of
        execution, the processes keep to it.
    seconds
        The longest that the processes may take.

    Raises
    ------
    BackendUnavailable
        If torch is not installed, or of another version than the one whose training graphs are known.
    WorkloadError
        If the plan is of another graph, or the graph of another model; or if operators on several devices
        draw at random, or an operator writes into a tensor in place.
    PartitionerError
        If a process fails, or the time is over.
    """
    require_type("graph", graph, Graph)
    require_callable(loss=loss)
    check_call(args, targets, loss, True, "operator", 1)
    require_torch()
    from partitioner.integrations.torch.graphs.capture import seen_and_captured
    from partitioner.integrations.torch.graphs.scored import path_in_model
    from partitioner.integrations.torch.pipelines.processes import in_processes
    from partitioner.integrations.torch.separate.device_program import programs_of
    from partitioner.integrations.torch.separate.rank import given_values, run_rank

    assignment = assignment_of(graph, plan)
    seen, capture = seen_and_captured(model, tuple(args), kwargs or {}, True, loss, tuple(targets))
    programs = programs_of(seen, assignment, graph)
    given = given_values(seen, ((*args, *targets), dict(kwargs or {})))
    answers = in_processes(lambda rank: run_rank(programs, rank, given), len(programs), seconds=seconds)
    made: dict[str, Any] = {name: value for answer in answers for name, value in answer.made.items()}
    return SeparateStep(
        loss=made[seen.outputs[0]],
        gradients={path: made[name] for name, path in capture.gradients.items()},
        buffers={path_in_model(path): made[name] for name, path in seen.updates.items()},
        ran={one.device: tuple(node.name for node in one.calls) for one in programs},
        sent={one.device: answer.sent for one, answer in zip(programs, answers, strict=True)},
    )
