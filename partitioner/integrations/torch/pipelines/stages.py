"""A model of torch as the stages of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.evaluation.solution import AnySolution, PlanRecord, Solution, solution_of
from partitioner.integrations.torch.graphs.node_operators import (
    forward_operators,
    node_operators,
    operator_devices,
)
from partitioner.integrations.torch.installed import require_torch
from partitioner.integrations.torch.pipelines.order import DeviceRun, device_runs
from partitioner.workload.graph import Graph
from partitioner.workload.input_operators import COPIED, FIELD, input_operators

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class PipelineStages:
    """A model in stages: runs of operators on one device, in an order in which they may run.

    Parameters
    ----------
    modules
        The stages, each a ``torch.nn.Module`` with exactly the parameters that it reads, which are those of
        the model.
    form
        What a call of the model takes and returns.
    tied
        For training the parameters that stages on several devices read, each with these devices, which hold
        copies of it and add up their gradients after each batch.
    inputs
        The names of the tensors that a call of the model takes, as stages are given them.
    """

    modules: tuple[Any, ...]
    form: Any
    tied: tuple[tuple[Any, tuple[str, ...]], ...] = ()
    inputs: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """The plan's device of each rank: devices stand in the order of their first stages."""
        return tuple(dict.fromkeys(stage.device for stage in self.modules))

    @property
    def rank_of(self) -> tuple[int, ...]:
        """The rank of each stage."""
        number = {device: rank for rank, device in enumerate(self.devices)}
        return tuple(number[stage.device] for stage in self.modules)

    def of_rank(self, rank: int) -> list[Any]:
        """Return the stages of a rank, first to last."""
        return [stage for stage, home in zip(self.modules, self.rank_of, strict=True) if home == rank]


def stages_of(
    model: Any,
    args: tuple[Any, ...],
    graph: Graph,
    plan: AnySolution,
    *,
    kwargs: Mapping[str, Any] | None = None,
    stage_of: Mapping[Any, int] | None = None,
    recompute: bool = False,
) -> PipelineStages:
    """Return the stages of a plan: maximal runs of operators on one device.

    Tied weights that several devices read are copied to each of them, see `PipelineStages.tied`.
    The model is cut at any operator. A tensor that a later stage reads is carried through the stages between.
    If the plan has copies of operators that depend on inputs alone (``input_operators="copied"``), each stage
    computes those that it reads, and every rank must be given the batch. A chain gives a stage for each
    device; a free split gives a device several.

    Parameters
    ----------
    model
        The model that the graph was made of.
    args, kwargs
        Arguments of a call of it, with the shapes of one microbatch. What is no tensor is part of the
        stages: each call must have the same.
    graph
        The graph that :func:`partitioner.integrations.torch.graph_of` returned for the model.
    plan
        A plan for the graph, or the device of every node.
    stage_of
        The number of the stage of every forward node, for schedules in which a device has neighbouring
        stages, such as those in a V; None for maximal runs.
    recompute
        Whether a stage keeps nothing of a forward pass but what it received, and runs it again for the
        backward pass (``torch.utils.checkpoint.checkpoint``); ``simulate`` has an option of this name.

    Raises
    ------
    WorkloadError
        If an operator of the model is in no node of the graph; if the plan is of another graph, has replicas
        or puts a colour class of the graph on several devices; or, for a graph with a backward pass, if it
        puts the loss on another device than the last operators.
    OptionError
        If `args` is no tuple, or `recompute` neither True nor False.
    BackendUnavailable
        If torch is not installed.
    """
    require_torch()
    from partitioner.integrations.torch.pipelines.program import program_of
    from partitioner.integrations.torch.pipelines.stage_module import cut
    from partitioner.integrations.torch.pipelines.tied_copies import tied_among

    if not isinstance(args, tuple | list):
        raise OptionError(f"args = {shown(args)}: must be a tuple of arguments")
    if not isinstance(recompute, bool):
        raise OptionError(f"recompute = {shown(recompute)}: must be True or False")
    solution = solution_of(plan)
    homes = operator_devices(graph, solution)
    training = bool(graph.backward.any())
    program = program_of(model, tuple(args), kwargs or {}, training, homes)
    _require_listed(program, homes, training)
    device_of = _of_calls(program, homes)
    copied = _copied(program, graph, solution)
    calls = [name for name in program.calls if name not in copied]
    before = {name: program.before[name] - copied for name in calls}
    runs = device_runs(calls, before, device_of, _numbers(program, graph, stage_of))
    if training:
        flaws = list(_gone(program, graph)) or list(_loss_elsewhere(program, homes, runs))
        if flaws:
            raise WorkloadError(flaws)
    modules = cut(program, runs, recompute, copied)
    inputs = tuple(node.name for node in program.inputs)
    return PipelineStages(modules, program.form, tied_among(modules) if training else (), inputs)


def _copied(program: Any, graph: Graph, solution: Solution) -> frozenset[str]:
    """Return the calls that each stage of a plan has if it reads them: they depend on inputs alone.

    Such are those of operators that the graph says are, and those that are in no node and read nothing else.
    """
    if not isinstance(solution, PlanRecord) or solution.options.get(FIELD) != COPIED:
        return frozenset()
    from partitioner.integrations.torch.graphs.unlisted import alike_anywhere

    chosen = zip(node_operators(graph), input_operators(graph).tolist(), strict=True)
    alone = {name: copied for names, copied in chosen for name in names}
    bare = alike_anywhere(program.module, program.calls.values())
    found: set[str] = set()
    for name, node in program.calls.items():
        made = {one.name for one in node.all_input_nodes if one.op == "call_function"}
        if alone.get(program.operator[name], node in bare) and made <= found:
            found.add(name)
    return frozenset(found)


def _numbers(program: Any, graph: Graph, stage_of: Mapping[Any, int] | None) -> dict[str, int] | None:
    """Return the number of the stage of each call."""
    if stage_of is None:
        return None
    missing = [node for node in forward_operators(graph) if node not in stage_of]
    if missing:
        raise WorkloadError([Flaw(f"node {shown(missing[0])}", "", "", "has no number in stage_of")])
    given = forward_operators(graph).items()
    return _of_calls(program, {name: stage_of[node] for node, names in given for name in names})


def _require_listed(program: Any, homes: Mapping[str, str], training: bool) -> None:
    """Raise if the graph lacks operators that a graph of the model has."""
    from partitioner.integrations.torch.graphs.unlisted import foreign_operators

    operator = {node: program.operator[name] for name, node in program.calls.items()}
    foreign = [name for name in operator.values() if name not in homes]
    if training:
        scored = any(operator.get(node) in homes for node in program.results)  # the loss reads some result
        foreign = foreign_operators(operator, homes, results=scored)
    rule = "is in no node of the graph: it is of another model"
    if foreign:
        raise WorkloadError([Flaw(f"operator {name}", "", "", rule) for name in foreign])


def _of_calls(program: Any, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the value of each call by its name, from those of operators."""
    from partitioner.integrations.torch.graphs.unlisted import of_calls

    operator = {node: program.operator[name] for name, node in program.calls.items()}
    return {node.name: value for node, value in of_calls(operator, given).items()}


def _gone(program: Any, graph: Graph) -> Iterator[Flaw]:
    """Yield a flaw for the first operator that the model has no longer, though it has one that read it."""
    known, operators = set(program.operator.values()), node_operators(graph)
    reads = graph.edges[~graph.backward[graph.edges].any(axis=1)].tolist()
    lost = {u for u, v in reads if known.isdisjoint(operators[u]) and not known.isdisjoint(operators[v])}
    for u in sorted(lost)[:1]:
        rule = "is not computed any more: an earlier call left it in the model; give a model that has not run"
        module = graph.extras.nodes[u].get("module", "")
        yield Flaw(f"operator {operators[u][0]}", "", f"of module {shown(module)}", rule)


def _loss_elsewhere(program: Any, homes: Mapping[str, str], runs: Sequence[DeviceRun]) -> Iterator[Flaw]:
    """Yield a flaw for each operator of the graph that is not in the model and not on the last device."""
    known = set(program.operator.values())
    for name, device in homes.items():
        if name not in known and device != runs[-1].device:
            rule = f"the loss must be with the last stage, on {runs[-1].device}"
            yield Flaw(f"operator {name}", "", f"is on {device}", rule)
