"""Method ``virtual_stages``: the best pipelines with several stages on a device."""

from __future__ import annotations

import numpy as np

from partitioner.base.errors import InfeasibleError, OptionError
from partitioner.methods.method import Outcome, Settings, meets, no_split, out_of_time
from partitioner.methods.virtual_stages.model import CutCosts, VirtualModel, cuts_of, schedule_of
from partitioner.methods.virtual_stages.search import Best, search
from partitioner.problem.variants import ChainProblem, PipelineProblem
from partitioner.workload.virtual_stages.schedules import VIRTUAL


def only_kind(problem: PipelineProblem) -> int:
    """Return the only kind of the devices that pay for transfers, or else of all devices.

    Raises
    ------
    OptionError
        If there are several, or nodes are pinned to devices.
    """
    present = problem.count > 0
    kinds = np.flatnonzero(present & problem.pays)
    kinds = kinds if len(kinds) else np.flatnonzero(present)
    if len(kinds) != 1:
        words = f"schedule = {problem.pipeline.schedule!r}: needs devices of one kind"
        raise OptionError(f"{words}, there are {len(kinds)} kinds with devices")
    if len(problem.pipeline.pinned.items):
        rule = "does not support nodes that are pinned to a device"
        raise OptionError(f"schedule = {problem.pipeline.schedule!r}: {rule}")
    return int(kinds[0])


ONE_ORDER = "the graph has too many cuts: stages are between the cuts of one order"


def solve_virtual_stages(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best stages for every number of devices, of which all have equally many stages.

    V-shaped schedules are solved by a dynamic program over pairs of cuts, others by one over the loads of the
    devices; both are exact where no two stages of a device can share a tensor, and else give a bound. Small
    problems are then searched completely. Where a search is cut short, borders are moved by local search.

    Raises
    ------
    OptionError
        If the schedule has one stage on each device, or there are several kinds of device.
    """
    if not isinstance(problem, PipelineProblem) or problem.pipeline.schedule not in VIRTUAL:
        raise OptionError(f"method virtual_stages needs a schedule among {', '.join(VIRTUAL)}")
    kind = only_kind(problem)
    if not problem.allowed[kind].all():
        return no_split(problem)
    schedule, chunks = schedule_of(problem)
    counts = _counts(problem, kind)
    costs = CutCosts(problem, kind, cuts_of(problem, settings))
    best, work = Best(settings), float(problem.work()[kind].sum())
    for count in counts:
        if meets(work / count, best.value, settings.gap) or settings.expired:
            best.bound = min(best.bound, work / count)
            break
        search(VirtualModel(costs, schedule, count, chunks), best)
    notes = () if costs.cuts.complete else (ONE_ORDER,)
    if best.model is None or best.borders is None:
        proven = not settings.expired and costs.cuts.complete and np.isinf(best.bound)
        return no_split(problem) if proven else out_of_time(problem, settings, best.bound)
    bound = min(best.bound, best.value)
    return Outcome(
        problem,
        best.model.parts(best.borders),
        best.value,
        bound,
        settings.ended(bound, best.value),
        notes=notes,
        statistics={"cuts": len(costs.cuts), "plans": best.plans, "devices": best.model.devices},
    )


def _counts(problem: PipelineProblem, kind: int) -> list[int]:
    """Return the numbers of devices that may be used, largest first.

    Raises
    ------
    OptionError
        If the schedule runs the number of microbatches on none of them.
    InfeasibleError
        If there are fewer supernodes than stages of a device.
    """
    schedule, chunks = schedule_of(problem)
    if problem.n < chunks:
        words = f"schedule {schedule.name!r} needs {chunks} stages on each device"
        raise InfeasibleError(f"{words}, the graph has {problem.n} groups of nodes that may be apart")
    batch, limits, most = problem.pipeline.microbatches, problem.limits, int(problem.count[kind])
    assert batch is not None
    broken = {count: schedule.rule(count, batch) for count in range(most, 0, -1)}
    if all(broken.values()):
        raise OptionError(f"microbatches = {batch}: {broken[1]} for schedule {schedule.name!r}")
    return [
        count
        for count, rule in broken.items()
        if not rule
        and count * chunks <= problem.n
        and limits.stages in (0, count * chunks)
        and (count == most or not limits.all_devices)
    ]
