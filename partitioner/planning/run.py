"""The way from a request to a plan: one run of a method."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache, partial

from partitioner.base.clock import METER
from partitioner.base.interruption import CompilationStopped
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import Solution
from partitioner.methods.expand import expand, expand_subgraphs
from partitioner.methods.method import ANY_DEVICES, Outcome, Part, Settings, meets
from partitioner.methods.registry import METHODS
from partitioner.planning.alternatives import unused_alternatives
from partitioner.planning.first_plan import evaluation_of, find_first_plan
from partitioner.planning.option_effects import has_effect
from partitioner.planning.options import cores_for
from partitioner.planning.plan_of import Proof, plan_of
from partitioner.planning.request import Request, fields_of
from partitioner.planning.run_method import notes_on_kernels, run_method
from partitioner.planning.verify import confirm, no_plan
from partitioner.planning.warm_start import start_from, unused_start
from partitioner.problem.arrays import Ints
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices

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
    start = request.options["warm_start"]
    unused = unused_alternatives(request.graph, request.devices, request.info)
    if has_effect("warm_start", start, request):
        unused += unused_start(request.devices, request.split, start, incumbent)
    return (*request.notes, *unused, *cores_for(request.options["workers"])[1])


# The note on devices that a plan over unlike devices does not use, and what a plan on all of them
# takes.

LEAST_SECONDS, MOST_SECONDS = 0.5, 3.0  # for a plan on all devices; between these as long as the plan itself
SHOWN_NAMES = 8


def notes_on_unused(
    request: Request, evaluation: Evaluation, outcome: Outcome, settings: Settings
) -> tuple[str, ...]:
    """Return a note if a pipeline over unlike devices leaves some of them unused.

    Devices are unlike if there are several kinds that pay for transfers, or groups. CPUs are not named. A
    plan on all devices is looked for in a short time and only where no kernel must be compiled for it.

    Parameters
    ----------
    request
        What was asked for.
    evaluation, outcome
        The plan, and what the method says of it.
    settings
        The settings of the run.
    """
    devices = request.devices
    unused = _unused(devices, evaluation)
    if not unused or not outcome.problem.ordered or not _unlike(devices):
        return ()
    more = f" and {len(unused) - SHOWN_NAMES} more" if len(unused) > SHOWN_NAMES else ""
    names = ", ".join(unused[:SHOWN_NAMES]) + more
    found = None if settings.deterministic else _on_all(request, settings)
    return (_words(names, outcome, found),)


def _is_best(outcome: Outcome) -> bool:
    """Whether a plan is proven to be the best one for every choice of devices."""
    wide = outcome.statistics.get(ANY_DEVICES, outcome.bound)
    return outcome.stop_reason == "optimal" and meets(wide, outcome.bound)


def _words(names: str, outcome: Outcome, found: Outcome | None) -> str:
    """Return the note; `found` is the plan that uses every device, None if it is not known."""
    value, best = outcome.value, _is_best(outcome)
    if found is None or (found.infeasible and not best):
        return f"not used: {names}" + ("; no plan that uses them is better" if best else "")
    if found.infeasible:
        return f"not used: {names}; no plan uses every device"
    if meets(value, found.value):
        return f"not needed: {names}; a plan that uses every device takes as long"
    if not best or not _is_best(found):
        return f"not used: {names}; the best plan found that uses every device takes {found.value:.6g}"
    longer = f", {found.value / value - 1:.1%} longer" if value else ""
    more = f"the best plan that uses every device takes {found.value:.6g}{longer}"
    return f"not worth using: {names}; {more}"


def _unused(devices: Devices, evaluation: Evaluation) -> list[str]:
    paying = {kind.name for kind in devices.kinds if kind.pays_communication}
    return [
        load.name
        for load in evaluation.loads
        if not load.nodes and load.replica_of is None and load.kind in paying
    ]


def _unlike(devices: Devices) -> bool:
    kinds = [kind for kind in devices.kinds if kind.count and kind.pays_communication]
    return len(kinds) > 1 or bool(devices.groups)


def _on_all(request: Request, settings: Settings) -> Outcome | None:
    """Return the best plan on all devices, which the evaluator confirms; None if it is not known."""
    seconds = min(max(time.perf_counter() - settings.started, LEAST_SECONDS), MOST_SECONDS)
    regime, name = request.regime, request.objective.extended_method
    demanded = replace(regime, constraints=replace(regime.constraints, use_all_devices=True))
    info = METHODS.get(name, request.info)
    everything = request.under(demanded, info)
    if settings.expired or not _can(everything):
        return None
    try:
        with METER.watched(_refuse):
            problem = everything.problem()
            brief = replace(settings, incumbent=None, report=None).within(seconds)
            outcome = info.load_for(problem)(problem, brief)
    except CompilationStopped:
        return None
    placement = expand(request.graph, request.devices, outcome)
    if placement is None:
        return outcome if outcome.infeasible else None
    subgraphs = expand_subgraphs(request.graph, outcome)
    confirm(everything.evaluated(placement, subgraphs), outcome, request.devices)
    return outcome


def _can(request: Request) -> bool:
    """Whether the method of a request knows all that is asked for."""
    wanted = request.regime.features(request.devices)
    return all(request.info.knows(each, request.objective.name) for each in wanted)


def _refuse() -> None:
    raise CompilationStopped
