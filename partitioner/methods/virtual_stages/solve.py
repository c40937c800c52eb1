"""Method ``virtual_stages``: the best pipelines with several stages on a device."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from partitioner.base.errors import InfeasibleError, OptionError
from partitioner.methods.method import Outcome, Settings, meets, no_split, out_of_time
from partitioner.methods.virtual_stages.cut_costs import CutCosts, StageCuts, cuts_of
from partitioner.methods.virtual_stages.model import DealtStages, VirtualModel, schedule_of
from partitioner.methods.virtual_stages.search import Best, least_busy, search
from partitioner.methods.virtual_stages.ways import WayCosts
from partitioner.problem.variants import AlternativesProblem, ChainProblem, PipelineProblem
from partitioner.workload.virtual_stages.schedules import VIRTUAL


def usable_kinds(problem: PipelineProblem) -> list[int]:
    """Return the kinds of all devices, or of those that pay for transfers where devices have several stages.

    With two stages on each device bounds that count a host, too, are 1 to 21 % lower after the same seconds.

    Raises
    ------
    OptionError
        If nodes are pinned to devices.
    """
    if len(problem.pipeline.pinned.items):
        rule = "does not support nodes that are pinned to a device"
        raise OptionError(f"schedule = {problem.pipeline.schedule!r}: {rule}")
    present = problem.count > 0
    chosen = present & problem.pays
    if schedule_of(problem)[1] == 1 or not chosen.any():
        chosen = present
    found: list[int] = np.flatnonzero(chosen).tolist()
    return found


ONE_ORDER = "the graph has too many cuts: stages are between the cuts of one order"


def solve_virtual_stages(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best stages for every number of devices, of which all have equally many stages.

    Two stages on each device are found by a dynamic program over pairs of cuts, others by one over the loads
    of the devices; both choose the order of unlike devices. The first is exact, the second where no two
    stages of a device can share a tensor; else it gives a bound, and small problems are searched completely.
    Where a search is cut short, borders are moved by local search.

    Raises
    ------
    OptionError
        If the schedule has one stage on each device, or nodes are pinned to devices.
    """
    if not isinstance(problem, PipelineProblem) or problem.pipeline.schedule not in VIRTUAL:
        raise OptionError(f"method virtual_stages needs a schedule among {', '.join(VIRTUAL)}")
    kinds = usable_kinds(problem)
    if not problem.allowed[kinds].any(axis=0).all():
        return no_split(problem)
    (schedule, chunks), counts = schedule_of(problem), _counts(problem, kinds)
    cuts, best = cuts_of(problem, settings), Best(settings)
    known = dict[int | None, Sequence[CutCosts]]()
    for count in counts:
        gap = _gap(problem, count, schedule.vee)
        if gap not in known:
            known[gap] = _costs(problem, kinds, cuts, gap)
        model = VirtualModel(known[gap], schedule, count, chunks)
        if meets(least_busy(model), best.value, settings.gap) or settings.expired:
            best.bound = min(best.bound, least_busy(model))
            break
        search(model, best)
    notes = () if cuts.complete else (ONE_ORDER,)
    if best.model is None or best.stages is None:
        proven = not settings.expired and cuts.complete and np.isinf(best.bound)
        return no_split(problem) if proven else out_of_time(problem, settings, best.bound)
    bound = min(best.bound, best.value)
    return Outcome(
        problem,
        best.model.parts(best.stages),
        best.value,
        bound,
        settings.ended(bound, best.value),
        notes=notes,
        statistics={"cuts": len(cuts), "plans": best.plans, "devices": best.model.devices},
        alternatives=_names(problem, best.model, best.stages),
    )


def _costs(
    problem: PipelineProblem, kinds: Sequence[int], cuts: StageCuts, gap: int | None
) -> Sequence[CutCosts]:
    """Return the costs of stages on each kind, and for each number of devices that can run one together."""
    if not isinstance(problem, AlternativesProblem):
        return [CutCosts(problem, kind, cuts) for kind in kinds]
    degrees = np.unique(problem.ways.degree).tolist()
    return [WayCosts(problem, kind, cuts, degree=degree, gap=gap) for kind, degree in product(kinds, degrees)]


def _gap(problem: PipelineProblem, devices: int, vee: bool) -> int | None:
    """Return how many stages lie between two of a device, None if none need; 0 if that has no effect."""
    if not isinstance(problem, AlternativesProblem) or not len(problem.ways.link):
        return 0
    return None if vee else devices - 1


def _names(problem: PipelineProblem, model: VirtualModel, stages: DealtStages) -> dict[int, str]:
    """Return the names of the alternatives of nodes by their positions."""
    if not isinstance(problem, AlternativesProblem):
        return {}
    return {node: name for each in model.ways(stages) for node, name in problem.ways.names(each.way).items()}


def _counts(problem: PipelineProblem, kinds: list[int]) -> list[int]:
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
    batch, limits, most = problem.pipeline.microbatches, problem.limits, int(problem.count[kinds].sum())
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
        and (count == most or not limits.all_devices or isinstance(problem, AlternativesProblem))
    ]
