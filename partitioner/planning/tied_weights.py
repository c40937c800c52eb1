"""Plans for tied weights: with copies or with all readers on one device; and what the latter costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.clock import METER
from partitioner.base.errors import InfeasibleError, NoPlanFound, PartitionerError
from partitioner.base.interruption import CompilationStopped
from partitioner.results.plan import Plan
from partitioner.workload.constraints import NONE
from partitioner.workload.graph import Graph
from partitioner.workload.module_groups import shared_parameters
from partitioner.workload.tied_weights import AUTO, COPIED, TOGETHER, has_ties

FIRST_SHARE = 0.4  # of the time, for plans with all readers on one device: their problem is the smaller one
NOTICED = 0.03  # the share of a plan's value by which copies must be better to be named
LEAST_SECONDS, MOST_SECONDS = 0.5, 3.0  # of the search for a plan with copies that a note names
TYING = ("ties", "training_ties")
Solve = Callable[..., Plan]  # of keywords of `solve` that replace those of the call


def decides(graph: Graph, options: Mapping[str, Any]) -> bool:
    """Whether a call leaves it to `solve` how the tied weights of its graph are trained."""
    tied = options.get("tied") == AUTO and graph.extras.top.get("tied") is None
    return tied and bool(shared_parameters(graph)) and bool(graph.backward.any())


def best_of_both(run: Solve, time_limit: float | None) -> Plan:
    """Return the better plan of those with copies of tied weights and with all readers on one device.

    Its bound is the weaker one of both searches, so that it holds for both kinds of plans.

    Parameters
    ----------
    run
        Calls `solve` with the keywords ``tied`` and ``time_limit``.
    time_limit
        That of both calls together.

    Raises
    ------
    InfeasibleError, NoPlanFound
        If there is no plan of either kind, or none is found.
    """
    started = time.perf_counter()
    first = None if time_limit is None else FIRST_SHARE * time_limit
    plans: dict[str, Plan] = {}
    ended: PartitionerError | None = None
    try:
        plans[TOGETHER] = run(tied=TOGETHER, time_limit=first)
    except (InfeasibleError, NoPlanFound) as error:
        ended = error
    spent = time.perf_counter() - started
    left = None if time_limit is None else max(time_limit - spent, (1 - FIRST_SHARE) * time_limit)
    try:
        plans[COPIED] = run(tied=COPIED, time_limit=left)
    except InfeasibleError:
        if not plans:
            raise
    except NoPlanFound as error:
        if not plans:
            raise
        ended = error
    if len(plans) == 2:
        plan = _better(plans)
    else:
        (plan,) = plans.values()
    if isinstance(ended, NoPlanFound):  # plans of the other kind have no bound
        weakest = np.inf if plan.maximised else 0.0
        plan = replace(plan, bound=float(weakest), status="feasible", stop_reason="time_limit")
    options = {**plan.options, "time_limit": time_limit}
    return replace(plan, options=options, runtime_seconds=time.perf_counter() - started)


def _better(plans: Mapping[str, Plan]) -> Plan:
    """Return the better plan, with a bound for both kinds and a note on the other one."""
    sign = -1 if plans[COPIED].maximised else 1
    chosen = min(plans, key=lambda kind: (sign * plans[kind].value, kind == COPIED))
    left_out = TOGETHER if chosen == COPIED else COPIED
    plan, other = plans[chosen], plans[left_out]
    words = {COPIED: "copied", TOGETHER: "on one device"}
    tying = f"tied weights are {words[chosen]}: {words[left_out]}"
    more = f"{abs(other.value / plan.value - 1):.1%} {'less' if sign < 0 else 'more'}" if plan.value else ""
    note = f"{tying} the best plan found has {other.value:.6g}, {more}"
    bound = min(plans.values(), key=lambda one: sign * one.bound).bound
    proven = sign * bound >= sign * plan.bound
    return replace(
        plan,
        bound=bound,
        status=plan.status if proven else "feasible",
        stop_reason=plan.stop_reason if proven else other.stop_reason,
        notes=(*plan.notes, note.rstrip(", ")),
    )


def note_on_tying(
    plan: Plan, graph: Graph, options: Mapping[str, Any], run: Solve, time_limit: float | None
) -> tuple[str, ...]:
    """Return a note if copies of tied weights are better than a plan whose readers share a device.

    A plan with copies is looked for as long as the plan itself was, but at most 3 s and within the limit, and
    only where no kernel must be compiled for it.

    Parameters
    ----------
    plan
        The plan.
    graph, options
        Those of the call.
    run
        Calls `solve` with keywords that replace those of the call.
    time_limit
        That of the call.
    """
    limits = options.get("constraints") or NONE
    others = tuple(each for each in limits.whole if each not in TYING)
    tied = options.get("tied") == TOGETHER or len(others) < len(limits.whole)
    seconds = min(max(plan.runtime_seconds, LEAST_SECONDS), MOST_SECONDS)
    left = np.inf if time_limit is None else time_limit - plan.runtime_seconds
    if not (tied and has_ties(graph)) or options.get("deterministic") or left < seconds:
        return ()
    looser = {"constraints": replace(limits, whole=others)} if "constraints" in options else {}
    with suppress(PartitionerError, CompilationStopped), METER.watched(_refuse):
        copied = run(tied=COPIED, time_limit=seconds, warm_start=None, on_progress=None, **looser)
        sign = -1 if plan.maximised else 1
        if sign * (plan.value - copied.value) > NOTICED * plan.value:
            change = f"{abs(copied.value / plan.value - 1):.0%} {'more' if sign < 0 else 'less'}"
            words = f"a plan with copies of them (tied = 'copied') has {copied.value:.6g}, {change}"
            return (f"all that reads tied weights is on one device: {words}",)
    return ()


def _refuse() -> None:
    raise CompilationStopped
