"""What a report shows of time: the schedule of a plan, or that of a pipeline with its stages."""

from __future__ import annotations

from partitioner.base.errors import PartitionerError
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.schedule import Schedule
from partitioner.results.plan import Plan
from partitioner.schedule.simulation import simulate
from partitioner.schedule.timeline import Timeline
from partitioner.workload.workload import Workload

MICROBATCHES = 16  # of a pipeline whose plan does not say it
MOST = 10_000  # passes that a picture shows, which take about 2 MB


def scheduled(
    workload: Workload,
    plan: Plan,
    evaluation: Evaluation,
    schedule: str | None,
    microbatches: int | None,
    links: str,
) -> Timeline | Schedule | str:
    """Return what runs when: for latency and makespans of operators the schedule of the evaluation.

    Any other plan is simulated as a pipeline. If that cannot be done, or its passes are too many for a
    picture, the result says why.

    Raises
    ------
    PartitionerError
        If the options ask for a schedule or a number of samples that cannot be simulated.
    """
    asked = schedule is not None or microbatches is not None
    if evaluation.schedule is not None and not asked:
        runs = evaluation.schedule.entries
        return _refused(len(runs), max(run.finish for run in runs), "runs") or evaluation.schedule
    count = next(n for n in (microbatches, plan.record.microbatches, MICROBATCHES) if n is not None)
    try:
        found = simulate(workload.graph, workload.devices, plan, schedule, count, links=links)
    except PartitionerError as error:
        if asked:
            raise
        return f"No schedule is shown: {error}."
    return _refused(len(found.table.stage), found.makespan, "passes") or found


def _refused(count: int, end: float, what: str) -> str:
    """Return why a schedule has no picture; empty if it has one."""
    if count > MOST:
        return f"No schedule is shown: {count:,} {what} are too many for a picture."
    return "" if end > 0 else "No schedule is shown: nothing takes time."
