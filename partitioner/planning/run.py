"""The way from a request to a plan: one run of a method."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from partitioner.evaluation.solution import Solution
from partitioner.methods.expand import expand, expand_subgraphs
from partitioner.methods.method import Part, Settings
from partitioner.planning.alternatives import unused_alternatives
from partitioner.planning.first_plan import evaluation_of, find_first_plan
from partitioner.planning.option_effects import has_effect
from partitioner.planning.options import cores_for
from partitioner.planning.plan_of import Proof, plan_of
from partitioner.planning.request import Request, fields_of
from partitioner.planning.run_method import notes_on_kernels, run_method
from partitioner.planning.unused_devices import notes_on_unused
from partitioner.planning.verify import confirm, no_plan
from partitioner.planning.warm_start import start_from, unused_start
from partitioner.problem.arrays import Ints
from partitioner.results.plan import Plan

LEAST_COMPILING = 5.0  # seconds after which a run with a shorter limit compiles only what a plan needs


def find_plan(request: Request) -> Plan:
    """Return the plan that the method of a request makes: contract, solve, expand, evaluate.

    Raises
    ------
    WorkloadError, InfeasibleError, NoPlanFound, ContradictionError
        As for :func:`partitioner.solve`.
    """
    graph, devices, start = request.graph, request.devices, request.options["warm_start"]
    request.check_memory()
    problem = request.problem()
    incumbent, subgraph = start_from(problem, graph, devices, start, request.regime)
    settings = _settings(request, incumbent, subgraph)
    first = partial(find_first_plan, request, problem, incumbent, subgraph)
    outcome, known = run_method(
        request.info, problem, settings, cache(first) if request.fallback else lambda: None
    )
    placement = expand(graph, devices, outcome)
    if placement is None:
        conflicts = request.conflicting_constraints(settings)
        raise no_plan(request.fitted, devices, outcome, conflicts, settings.interruption.by_keyboard)
    subgraphs = expand_subgraphs(graph, outcome)
    evaluation = evaluation_of(request, placement, subgraphs, known)
    confirm(evaluation, outcome, devices)
    solution = Solution(
        placement.device,
        placement.replicas,
        placement.order if problem.ordered else evaluation.shape.order,
        subgraphs,
        placement.sequence,
        placement.stage_of,
        placement.alternatives,
    )
    notes = (
        *_notes(request, incumbent),
        *outcome.notes,
        *notes_on_unused(request, evaluation, outcome, settings),
        *evaluation.notes,
        *notes_on_kernels(request.clock),
    )
    ended = outcome.bound, outcome.stop_reason, outcome.backend
    proof = Proof(*ended, notes, outcome.statistics, outcome.native_status)
    return plan_of(request, solution, evaluation, proof)


def _settings(request: Request, incumbent: list[Part] | None, subgraph: Ints | None) -> Settings:
    """Return the settings of the run of a method, with the parts that it may start from."""
    clock = request.clock
    return replace(
        request.settings,
        **fields_of(Settings, request.options)
        | {"clock": replace(clock, compiling=max(clock.limit, LEAST_COMPILING))}
        | {"workers": cores_for(request.options["workers"])[0]},
        incumbent=incumbent,
        incumbent_subgraph=subgraph,
        placing=request.placing,
    )


def _notes(request: Request, incumbent: list[Part] | None) -> tuple[str, ...]:
    """Return the notes on what the call gives and the run does not use."""
    start, unused = request.options["warm_start"], unused_alternatives(request.graph, request.info)
    if has_effect("warm_start", start, request):
        unused += unused_start(request.devices, request.split, start, incumbent)
    return (*request.notes, *unused, *cores_for(request.options["workers"])[1])
