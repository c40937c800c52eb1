"""Plans with several stages on each device, beside the usual ways to deal the layers of a model, simulated.

The usual ways: equally many numbered layers in every stage; equally many modules, where embedding and head
count as a layer each (torchtitan's default); and the stages of the best plan with one stage on each device,
each cut again into pieces of even work. Devices are equal and have no memory limit.

Exit code: 0; 1 if a plan is slower than the best of these or its memory is not as simulated; 2 if files are
missing or bad, or have nodes that equal devices cannot run: the table is then that of the others.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from grids import markdown_grid, text_grid

import partitioner as pt
from partitioner.methods.virtual_stages.borders import StageBorders
from partitioner.problem.contract import contract
from partitioner.problem.fit import fit
from partitioner.problem.goal import Goal
from partitioner.schedule import Timeline, simulate
from partitioner.workload.constraints import NONE
from partitioner.workload.modules import modules_of
from partitioner.workload.resolved_constraints import demands_of
from partitioner.workload.virtual_stages.schedules import VIRTUAL

GOOD, WORSE, BAD_INPUT = 0, 1, 2
TOLERANCE = 1e-9
HEADS = (
    *("workload", "schedule", "stages", "limit s", "equal layers", "equal modules", "cut again", "plan"),
    *("gain", "gap", "memory", "CPU s"),
)


@dataclass(frozen=True)
class Row:
    """The makespans of one workload and schedule with `stages` on each device, in `limit` seconds.

    `memory` is the evaluator's peak over the simulation's, `seconds` the time of the processor for the plan.
    """

    workload: str
    schedule: str
    stages: int
    limit: float
    usual: tuple[float, ...]
    plan: pt.Plan
    memory: float
    seconds: float

    @property
    def gain(self) -> float:
        """The best of the usual ways over the plan."""
        return min(self.usual) / self.plan.value

    def cells(self) -> list[str]:
        """The row as texts."""
        times = [f"{value:.5g}" for value in (*self.usual, self.plan.value)]
        shares = f"{self.gain:.3f}", f"{self.plan.gap:.1%}", f"{self.memory:.4f}", f"{self.seconds:.1f}"
        return [self.workload, self.schedule, str(self.stages), f"{self.limit:g}", *times, *shares]


class Dealt:
    """The usual ways to deal a graph's nodes over stages."""

    def __init__(self, graph: pt.Graph, devices: pt.Devices, schedule: str, chunks: int, batch: int) -> None:
        self.graph, self.devices, self.schedule, self.batch = graph, devices, schedule, batch
        self.chunks, self.count = chunks, devices.kinds[0].count
        self.problem = contract(fit(graph, devices, demands_of(graph, devices, NONE)), devices, Goal())

    def equal_layers(self, numbered: bool) -> float:
        """Return the makespan of stages of equally many modules, or equally many with a number."""
        modules = modules_of(self.graph)
        counts = np.array([not numbered or any(c.isdigit() for c in name) for name in modules.names])
        counts = counts if counts.any() else np.ones_like(counts)
        share = np.append(counts, False) / np.append(np.bincount(modules.of[modules.of >= 0]), 1)
        weight = np.bincount(self.problem.member, share[modules.of], self.problem.n)
        return self.makespan(StageBorders.even(weight.astype(np.float64), np.ones(self.count * self.chunks)))

    def cut_again(self) -> float:
        """Return the makespan of the stages of the best plan for one stage on each device, cut again."""
        plan = pt.solve(self.graph, self.devices)
        place = {device: i for i, device in enumerate(plan.stages)}
        stage = np.zeros(self.problem.n, dtype=np.int64)
        stage[self.problem.member] = [place[plan.placement[node]] for node in self.graph.ids]
        work = self.problem.time[0].sum(axis=0)
        return self.makespan(StageBorders.of(stage).cut_again(work, self.chunks))

    def makespan(self, borders: StageBorders) -> float:
        """Return the simulated makespan of stages; infinity if there are too few of them."""
        if borders.stages != self.count * self.chunks:
            return np.inf
        order = tuple(f"gpu{rank}" for rank in VIRTUAL[self.schedule].ranks(self.count, self.chunks))
        where = borders.stage[self.problem.member].tolist()
        stage_of = dict(zip(self.graph.ids, where, strict=True))
        placement = {node: order[number] for node, number in stage_of.items()}
        solution = pt.Solution(placement, order=order, stage_of=stage_of)
        return simulate(self.graph, self.devices, solution, self.schedule, self.batch).makespan


def measured(path: Path, name: str, stages: int, devices: int, batch: int, seconds: float) -> Row:
    """Solve one workload for one schedule and number of stages, and simulate the usual ways."""
    graph = pt.load(path).graph
    kinds = (pt.DeviceKind("gpu", devices, times=graph.kinds[0]),)
    gpus, chunks = pt.Devices(kinds), VIRTUAL[name].chunks_for(stages)
    begin = time.process_time()
    plan = pt.solve(
        graph, gpus, "makespan", schedule=name, virtual_stages=chunks, microbatches=batch, time_limit=seconds
    )
    spent = time.process_time() - begin
    dealt = Dealt(graph, gpus, name, chunks, batch)
    usual = dealt.equal_layers(True), dealt.equal_layers(False), dealt.cut_again()
    memory = _memory(plan, simulate(graph, gpus, plan))
    return Row(path.stem, name, chunks, seconds, usual, plan, memory, spent)


def _memory(plan: pt.Plan, timeline: Timeline) -> float:
    """Return the largest ratio of a device's memory in the plan to that in the simulation."""
    held = {load.name: load.memory for load in plan.devices}
    pairs = zip(timeline.devices, timeline.peak_memory.tolist(), strict=True)
    return max((held[name] / peak if peak > 0 else 1.0 for name, peak in pairs), default=1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, help="workloads with backward nodes")
    parser.add_argument("--schedules", nargs="+", default=["interleaved_1f1b", "zbv"], choices=VIRTUAL)
    parser.add_argument("--stages", nargs="+", type=int, default=[2], help="stages on each device (2)")
    parser.add_argument("--devices", type=int, default=4, help="equal devices (4)")
    parser.add_argument("--microbatches", type=int, default=16, help="samples of a batch (16)")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for each plan (20)")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    refused = False
    for path, name, stages in product(options.files, options.schedules, options.stages):
        try:
            given = options.devices, options.microbatches, options.time_limit
            rows.append(measured(path, name, stages, *given))
            print(*rows[-1].cells(), file=sys.stderr, flush=True)
        except pt.PartitionerError as error:
            print(f"{path}, {name}, {stages} stages: {error}", file=sys.stderr, flush=True)
            refused = True
    grid = markdown_grid if options.markdown else text_grid
    print(grid(HEADS, [row.cells() for row in rows]))
    sound = all(row.gain >= 1 - TOLERANCE and row.memory >= 1 - TOLERANCE for row in rows)
    return BAD_INPUT if refused else GOOD if sound else WORSE


if __name__ == "__main__":
    sys.exit(main())
