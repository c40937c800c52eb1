"""Plans for tied weights: the choice that `solve` has, and a note on what all readers on one device cost."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.clock import METER
from partitioner.base.errors import PartitionerError
from partitioner.base.interruption import CompilationStopped
from partitioner.planning.choice import Choice, Solve
from partitioner.results.plan import Plan
from partitioner.workload.constraints import NONE
from partitioner.workload.graph import Graph
from partitioner.workload.module_groups import shared_parameters
from partitioner.workload.tied_weights import AUTO, COPIED, TOGETHER, has_ties

# plans with all readers on one device are looked for first: their problem is the smaller one
CHOICE = Choice("tied", "tied weights are", {TOGETHER: "on one device", COPIED: "copied"}, first_share=0.4)
NOTICED = 0.03  # the share of a plan's value by which copies must be better to be named
LEAST_SECONDS, MOST_SECONDS = 0.5, 3.0  # of the search for a plan with copies that a note names
TYING = ("ties", "training_ties")


def decides(graph: Graph, options: Mapping[str, Any]) -> bool:
    """Whether a call leaves it to `solve` how the tied weights of its graph are trained."""
    tied = options.get("tied") == AUTO and graph.extras.top.get("tied") is None
    return tied and bool(shared_parameters(graph)) and bool(graph.backward.any())


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
