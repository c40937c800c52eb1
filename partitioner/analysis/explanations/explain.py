"""The public function `explain`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx

from partitioner.analysis.explanations.borders import moves_of
from partitioner.analysis.explanations.bottleneck import bottlenecks_of
from partitioner.analysis.explanations.critical_path import critical_path_of
from partitioner.analysis.explanations.explanation import Explanation
from partitioner.analysis.explanations.memory import MemoryUse, largest_excess, memory_of
from partitioner.analysis.explanations.question import PlanQuestion, question_of
from partitioner.analysis.explanations.what_ifs.answers import UNLIMITED, WhatIf, WhatIfs
from partitioner.analysis.explanations.what_ifs.changes import AGAIN, CHANGES, changes_of
from partitioner.base.argument_types import check_word, require_callable, require_items
from partitioner.base.clock import Clock
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import AnySolution
from partitioner.methods.method import Progress
from partitioner.planning.options import check_values
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.networkx_graph import from_networkx

TIME_LIMIT = 60.0  # seconds for all changes together, by default


def explain(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices | None,
    plan: AnySolution,
    *,
    what_if: Sequence[str] | None = None,
    time_limit: float | None = TIME_LIMIT,
    gap: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
) -> Explanation:
    """Explain why a plan takes as long as it does, and what would change that.

    The explanation names the device that determines the value, what its load is made of (for objective
    ``"capacity"`` its memory), what keeps nodes from leaving it, how full the devices are, and what changes
    of the question would buy. Each change is a call of :func:`partitioner.solve` with the objective, split
    and options of the plan.

    Parameters
    ----------
    graph, devices
        The workload; None for the devices that the plan is made for.
    plan
        A plan, a :class:`partitioner.Solution`, or a device name for every node id. A placement that is no
        plan is explained for objective ``"throughput"``.
    what_if
        The changes to try, in any order: ``"one_more_device"`` (of the bottleneck's kind; with levels one
        more group of the outermost level), ``"more_memory"`` (10 % more on every device that has a limit),
        ``"unlimited_memory"``, ``"faster_links"`` (transfers take half the time), ``"one_more_replica"``
        (one more device may share each stage), ``"other_schedule"`` (each of the others, if the plan is made
        for a schedule). None: all; an empty sequence: none. A plan that is not proven optimal is
        solved again as it is, too, unless no change is asked for.
    time_limit
        Seconds for all changes together, of which each takes an equal share of what is left; None for no
        limit.
    gap, seed, workers, on_progress, stop
        As for :func:`partitioner.solve`, for each change.

    Returns
    -------
    Explanation
        Frozen data with `summary` and `to_json`.

    Raises
    ------
    WorkloadError
        If the plan does not fit the graph and the devices.
    OptionError
        If an option has a value that it may not have.

    Examples
    --------
    >>> from partitioner.planning.solve import solve
    >>> graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
    >>> devices = Devices.accelerated(2)
    >>> found = explain(graph, devices, solve(graph, devices), what_if=["one_more_device"])
    >>> found.bottlenecks[0].device, found.bottlenecks[0].compute, found.what_ifs[0].value
    ('accelerator0', 3.0, 3.5)
    """
    require_callable(on_progress=on_progress)
    check_values(time_limit=time_limit, gap=gap, seed=seed, workers=workers)
    names = tuple(CHANGES) if what_if is None else tuple(require_items("what_if", what_if))
    for name in names:
        check_word("what_if", name, CHANGES)
    graph = graph if isinstance(graph, Graph) else from_networkx(graph)
    question = question_of(graph, devices, plan)
    evaluation = question.evaluation()
    value, split = question.value(evaluation), question.split(evaluation)
    changes = changes_of(question, evaluation, names)
    if names and (question.bound is None or question.better(question.bound, value) or evaluation.violations):
        changes.insert(0, AGAIN)
    solver = WhatIfs(
        question,
        split,
        value,
        clock=Clock(math.inf if time_limit is None else time_limit),
        interruption=Interruption(stop),
        report=on_progress,
        options={"gap": gap, "seed": seed, "workers": workers},
    )
    with solver.interruption:
        answers = solver.answers(changes)
    return _explanation(question, evaluation, value, answers)


def _explanation(
    question: PlanQuestion, evaluation: Evaluation, value: float, answers: tuple[WhatIf, ...]
) -> Explanation:
    """Return the explanation of an evaluated plan with the answers to changed questions."""
    schedule = evaluation.schedule
    found = () if schedule is not None else bottlenecks_of(question, evaluation)
    return Explanation(
        objective=question.asked.name,
        split=question.split(evaluation),
        value=value,
        bound=None if evaluation.violations else _bound(question, value, answers),
        violations=evaluation.violations,
        stages=len(question.order(evaluation)),
        communication=question.devices.communication,
        bottlenecks=found,
        path=None if schedule is None else critical_path_of(schedule),
        moves=tuple(dict.fromkeys(move for one in found for move in moves_of(question, evaluation, one))),
        memory=memory_of(evaluation),
        excess=_excess(question, answers),
        what_ifs=answers,
        time_unit=question.graph.extras.time_unit or "",
        parts=question.parts(evaluation, value),
        time_per_sample=evaluation.bottleneck.load if question.maximised else None,
    )


def _bound(question: PlanQuestion, value: float, answers: Sequence[WhatIf]) -> float | None:
    """Return the best bound that is known, no better than the value itself; None without one."""
    solved = [one.bound for one in answers if not one.name and one.bound is not None]
    known = [bound for bound in (question.bound, *solved) if bound is not None]
    if not known:
        return None
    return max(value, min(known)) if question.maximised else min(value, max(known))


def _excess(question: PlanQuestion, answers: Sequence[WhatIf]) -> MemoryUse | None:
    """Return by what the best plan without a memory limit exceeds the memory, None if it is not known."""
    plans = [one.plan for one in answers if one.name == UNLIMITED and one.plan is not None]
    return largest_excess(plans[0].devices, question.devices) if plans else None
