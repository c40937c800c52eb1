"""The value of a placement of operators by each measure, and its improvement by local search.

The fewest contiguous subgraphs that a placement has on each device.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.latency.layout import SubgraphLayout, latency, outcome_of
from partitioner.methods.latency.path import longest_path
from partitioner.methods.latency.search import solve_latency_search
from partitioner.methods.loads import value_of
from partitioner.methods.local_search.search import solve_local_search
from partitioner.methods.method import Outcome, Part, Settings
from partitioner.methods.placers.bound import makespan_bound
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.ranks import longest_paths
from partitioner.methods.placers.refine import refined
from partitioner.methods.placers.timing import makespan
from partitioner.methods.places import device_kinds
from partitioner.methods.rules import obeys
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from partitioner.problem.variants import (
    AnyOperators,
    OperatorNodes,
    OperatorParts,
    OperatorProblem,
    OperatorSample,
    SampleProblem,
)


def fewest_subgraphs(problem: SampleProblem, device: Ints) -> Ints:
    """Return the index of every node's subgraph on its device, shape (n,), with as few subgraphs as possible.

    The subgraphs are contiguous (paper, Definition 3.1), and each is as early as possible: the index counts
    how often a path of the node's pass leaves its device before the node. It is 0 on devices that do not
    pay for transfers.

    Parameters
    ----------
    problem
        A problem for latency.
    device
        Shape (n,): the device of every node, numbered kind by kind.
    """
    slot, order, none = np.zeros(problem.n, dtype=np.int64), np.arange(problem.n), np.zeros(problem.n)
    pays, before = problem.pays[device_kinds(problem)], problem.predecessors
    reader, maker = before.owners(), before.items
    one_pass = problem.backward[reader] == problem.backward[maker]
    for d in np.unique(device[pays[device]]).tolist():
        leaves = (device[maker] == d) & (device[reader] != d)
        along = np.where(one_pass, leaves, -np.inf)
        count = longest_paths(order, before, along, none, none)
        slot[device == d] = count[device == d]
    return slot


UNRULY = "its placement, carried over to the contracted graph, breaks a rule of the problem"


def bound_of(problem: AnyOperators) -> float:
    """Return a lower bound on the value of every plan; infinity if it is proven that there is no plan."""
    if isinstance(problem, OperatorNodes):
        return makespan_bound(problem)
    return longest_path(problem) if isinstance(problem, OperatorSample) else relax(problem).bound


def plan_value(problem: AnyOperators, settings: Settings, found: Found, bound: float) -> Outcome:
    """Return the outcome of a placement; without parts, and with a note on why, if it is no valid plan."""
    if isinstance(problem, OperatorNodes):
        return timed(problem, settings, found, bound)
    if isinstance(problem, OperatorSample):
        outcome = _as_layout(problem, settings, found, bound)
    else:
        outcome = _as_parts(problem, settings, found, bound)
    figures = {**found.statistics, **outcome.statistics, "estimate": found.estimate}
    return replace(outcome, notes=(*found.notes, *outcome.notes), statistics=figures)


def improved(problem: AnyOperators, settings: Settings, found: Found, bound: float) -> Outcome:
    """Return the outcome of local search from a placement; it is never worse than :func:`plan_value`."""
    if isinstance(problem, OperatorNodes):
        return plan_value(problem, settings, refined(problem.tasks, found, settings, bound), bound)
    before = plan_value(problem, settings, found, bound)
    start = replace(settings, incumbent=before.parts, incumbent_subgraph=before.subgraph)
    if isinstance(problem, OperatorSample):
        after = solve_latency_search(problem, start)
    else:
        after = solve_local_search(problem, start)
    if after.parts is None:
        return before
    notes = before.notes if before.parts is not None else (*before.notes, "the local search began without it")
    return replace(after, notes=notes, statistics={**before.statistics, **after.statistics})


def timed(problem: OperatorProblem, settings: Settings, found: Found, bound: float) -> Outcome:
    """Return the outcome of a placement whose value is the end of its last operator."""
    tasks = problem.tasks
    value = makespan(tasks, found.device, found.order)
    parts, stop = parts_at(tasks, found.device), settings.ended(bound, value)
    figures = {**found.statistics, "estimate": found.estimate}
    return Outcome(
        problem,
        parts,
        value,
        min(bound, value),
        stop,
        notes=found.notes,
        statistics=figures,
        order=found.order,
    )


def parts_at(tasks: Tasks, device: Ints) -> list[Part]:
    """Return a part for every device in use, given the device of every task, shape (n,)."""
    return [
        Part(int(tasks.kind[d]), np.flatnonzero(device == d), devices=(int(tasks.index[d]),))
        for d in np.unique(device).tolist()
    ]


def _as_parts(problem: OperatorParts, settings: Settings, found: Found, bound: float) -> Outcome:
    """Return the outcome of parts with every supernode on the device of its longest task.

    Only the free nodes of a supernode may have been on another device.
    """
    tasks = problem.tasks
    member = problem.member[tasks.node]
    time = tasks.time[found.device, np.arange(tasks.n)]
    home = np.empty(problem.n, dtype=np.int64)
    by_weight = np.lexsort((tasks.size, time))
    home[member[by_weight]] = found.device[by_weight]
    parts = parts_at(tasks, home)
    if not obeys(problem, parts):
        return Outcome(problem, None, np.inf, bound, "heuristic", notes=(UNRULY,))
    value = value_of(problem, parts)
    return Outcome(problem, parts, value, min(bound, value), settings.ended(bound, value))


def _as_layout(problem: OperatorSample, settings: Settings, found: Found, bound: float) -> Outcome:
    """Return the outcome of the layout with the fewest contiguous subgraphs, each as early as possible."""
    tasks = problem.tasks
    slot = fewest_subgraphs(problem, found.device)
    most = int(slot.max(initial=0))
    if most >= problem.subgraphs:
        d = int(found.device[np.argmax(slot)])
        where = tasks.name[d] if tasks.name else f"device {d}"
        allows = f"subgraphs_per_accelerator (--subgraphs-per-accelerator) allows {problem.subgraphs}"
        note = f"its placement needs {most + 1} subgraphs on {where}, and {allows}"
        return Outcome(problem, None, np.inf, bound, "heuristic", notes=(note,))
    layout = SubgraphLayout(found.device, slot)
    value = latency(problem, layout)
    if np.isinf(value):
        note = "the subgraphs of its placement wait for one another in a circle"
        return Outcome(problem, None, np.inf, bound, "heuristic", notes=(note,))
    outcome = outcome_of(problem, layout, value, bound, settings.ended(bound, value))
    return replace(outcome, parts=parts_at(tasks, found.device))
