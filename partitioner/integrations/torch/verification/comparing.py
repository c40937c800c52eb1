"""A prediction beside what was measured, with the error of each figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from rich.table import Table as TextTable
from rich.text import Text

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.evaluation.solution import AnySolution, PlanRecord, solution_of
from partitioner.evaluation.text.figures import amount, figure
from partitioner.evaluation.text.tables import figure_table, percentage, render
from partitioner.integrations.torch.verification.corrections import Corrections
from partitioner.integrations.torch.verification.measured import MeasuredRun
from partitioner.planning.evaluate import evaluate
from partitioner.schedule.simulation import simulate
from partitioner.schedule.timeline import Timeline
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.graph import Floats
from partitioner.workload.tied_weights import exchanged_once_in
from partitioner.workload.workload import Workload

AS_IT_IS = Corrections()
NOT_HELD = ("optimizer", "workspace")  # the run has no optimizer, and counts nothing inside operators


@dataclass(frozen=True)
class ComparedFigure:
    """A figure that was predicted and measured.

    Parameters
    ----------
    name
        What it is.
    predicted, measured
        Its values.
    unit
        ``"ms"``, ``"bytes"``, or ``"share"`` for a fraction.

    Examples
    --------
    >>> round(ComparedFigure("batch", 9.0, 10.0, "ms").error, 6)
    -0.1
    """

    name: str
    predicted: float
    measured: float
    unit: str

    @property
    def error(self) -> float:
        """How far the prediction is from the measurement: as a part of it, for a fraction the difference."""
        if self.unit == "share":
            return self.predicted - self.measured
        return self.predicted / self.measured - 1 if self.measured else float(bool(self.predicted))

    def cells(self) -> tuple[str, ...]:
        """Return the figure as the cells of a table."""
        form = {"ms": figure, "bytes": amount, "share": percentage}[self.unit]
        return self.name, form(self.predicted), form(self.measured), f"{self.error:+.1%}"


@dataclass(frozen=True, eq=False)
class RunComparison:
    """A plan's prediction beside a run of it; times are in ms, memory in bytes.

    Parameters
    ----------
    figures
        Time per sample and time of the batch as simulated with tensors that go from device to device; the
        evaluator's largest load, for which senders pay too, beside the time per sample; the processor time
        of the busiest rank; and for each device time inside its passes, bubble and memory.
    simulated
        The predicted timeline, of as many microbatches as the run's.
    run
        What was measured.
    workload, plan
        What the prediction was made of.
    """

    figures: tuple[ComparedFigure, ...]
    simulated: Timeline
    run: MeasuredRun
    workload: Workload
    plan: AnySolution

    def __getitem__(self, name: str) -> ComparedFigure:
        """Return the figure of a name, such as ``"time per sample"``."""
        return next(one for one in self.figures if one.name == name)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        rows = [asdict(one) | {"error": one.error} for one in self.figures]
        return {"figures": rows, "run": self.run.as_dict()}

    def summary(self) -> str:
        """Return the comparison as text; it says if the figures do not judge the prediction."""
        few, many = self.run.microbatches
        head = f"{self.run.schedule}, {many} microbatches (steady state from {few} to {many}), times in ms"
        table: TextTable = figure_table(False, ("figure",), ("predicted", "measured", "error"))
        for one in self.figures:
            table.add_row(*map(Text, one.cells()))
        doubt = [Text(f"not judged: {self.run.doubt}")] if self.run.doubt else []
        return render([Text(head), table, *doubt])


def compare_with_run(
    workload: Workload, plan: AnySolution, run: MeasuredRun, corrections: Corrections = AS_IT_IS
) -> RunComparison:
    """Return what the simulation predicts of a plan beside what was measured.

    Parameters
    ----------
    workload
        The graph that the plan is made for, with times in ms, and its devices.
    plan
        The plan, or the device of every node.
    run
        What :func:`partitioner.integrations.torch.verification.measure_pipeline` returned.
    corrections
        What was learnt from other runs.

    Raises
    ------
    WorkloadError
        If the run used other devices than the plan.
    """
    solution = solution_of(plan)
    if isinstance(solution, PlanRecord):
        workload = replace(workload, graph=solution.trained(workload.graph))
    few, many = simulated_batches(workload, plan, run, corrections)
    if set(many.devices) != set(run.timeline.devices):
        rule = f"must be those of the plan: {', '.join(many.devices)}"
        raise WorkloadError([Flaw("run", "devices", ", ".join(run.timeline.devices), rule)])
    more = run.microbatches[1] - run.microbatches[0]
    figures = (
        ComparedFigure("time per sample", (many.makespan - few.makespan) / more, run.time_per_sample, "ms"),
        ComparedFigure("batch", many.makespan, run.batches[1], "ms"),
        ComparedFigure("largest load", _largest_load(workload, plan, corrections), run.time_per_sample, "ms"),
        *_of_busiest(many, run),
        *_of_devices(many, run),
    )
    return RunComparison(figures, many, run, workload, plan)


def simulated_batches(
    workload: Workload, plan: AnySolution, run: MeasuredRun, corrections: Corrections = AS_IT_IS
) -> tuple[Timeline, Timeline]:
    """Return the predicted timelines of both numbers of microbatches of a run."""
    few, many = (_simulated(workload, plan, run, corrections, count) for count in run.microbatches)
    return few, many


def _simulated(
    workload: Workload, plan: AnySolution, run: MeasuredRun, corrections: Corrections, count: int
) -> Timeline:
    """Return the predicted timeline, with the memory that a run holds."""
    parts = workload.graph.parts.copy()
    parts[[MEMORY_PARTS.index(name) for name in NOT_HELD]] = 0.0
    graph = exchanged_once_in(replace(workload.graph, parts=parts), count)
    graph = corrections.applied(graph)
    return simulate(
        graph,
        workload.devices,
        solution_of(plan).placement,
        run.schedule,
        count,
        links="direct",
        pass_time=corrections.pass_time,
    )


def _largest_load(workload: Workload, plan: AnySolution, corrections: Corrections) -> float:
    found = evaluate(corrections.applied(workload.graph), workload.devices, solution_of(plan).placement)
    return max(entry.load for entry in found.loads)


def _of_busiest(simulated: Timeline, run: MeasuredRun) -> Iterator[ComparedFigure]:
    """Yield the processor time of the rank that uses most, where it was measured."""
    if run.busiest is not None:
        yield ComparedFigure("busiest rank, CPU", float(_inside(simulated).max()), run.busiest, "ms")


def _inside(simulated: Timeline) -> Floats:
    """Return the time that each device spends inside its passes."""
    inside = (simulated.end - simulated.begin)[:, 1]
    busy: Floats = np.bincount(simulated.table.row, inside, len(simulated.devices)).astype(np.float64)
    return busy


def _of_devices(simulated: Timeline, run: MeasuredRun) -> Iterator[ComparedFigure]:
    compute = _inside(simulated) / run.microbatches[1]
    for i, device in enumerate(simulated.devices):
        busy, makespan = float(compute[i]), simulated.makespan
        bubble = 1 - busy * run.microbatches[1] / makespan if makespan > 0 else 0.0
        yield ComparedFigure(f"{device}: busy per sample", busy, run.busy[device], "ms")
        yield ComparedFigure(f"{device}: bubble", bubble, run.bubble[device], "share")
        memory = float(simulated.peak_memory[i])
        yield ComparedFigure(f"{device}: memory", memory, run.memory[device], "bytes")
