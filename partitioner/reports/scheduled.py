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
MOST = 10_000  # passes that a picture shows; so many take about 2 MB
TOO_MANY = "No schedule is shown: {} are too many for a picture."


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
        runs = len(evaluation.schedule.entries)
        return evaluation.schedule if runs <= MOST else TOO_MANY.format(f"{runs:,} runs")
    count = next(n for n in (microbatches, plan.record.microbatches, MICROBATCHES) if n is not None)
    try:
        found = simulate(workload.graph, workload.devices, plan, schedule, count, links=links)
    except PartitionerError as error:
        if asked:
            raise
        return f"No schedule is shown: {error}."
    passes = len(found.table.stage)
    return found if passes <= MOST else TOO_MANY.format(f"{passes:,} passes")
