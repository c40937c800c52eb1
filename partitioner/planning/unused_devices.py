"""The note on devices that a plan over unlike devices does not use, and what a plan on all of them takes."""

from __future__ import annotations

import time
from dataclasses import replace

from partitioner.base.clock import METER
from partitioner.base.interruption import CompilationStopped
from partitioner.evaluation.result import Evaluation
from partitioner.methods.expand import expand, expand_subgraphs
from partitioner.methods.method import ANY_DEVICES, Outcome, Settings, meets
from partitioner.methods.registry import METHODS
from partitioner.planning.request import Request
from partitioner.planning.verify import confirm
from partitioner.workload.devices import Devices

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
