"""Predicted and measured batches of two runtimes: the library's runner, and torch's own stages and schedules.

``python scripts/bench_predictions.py`` profiles four models that are sequences of layers, predicts a batch at
two cuts under two schedules, and runs each with two processes of one thread: by the library's runner, and by
torch.distributed.pipelining alone. Nothing is fitted to the rows: whole passes are measured in two processes
without a pipeline, what a runtime adds with two small pipelines of other layers, a message with gloo. Prints
a row for each run, and the errors without these terms, with whole passes, and with all; --table writes the
rows to a file. The last figures are processor times, which say something beside other programs, too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from grids import markdown_grid
from torch.nn import functional
from truth_bench.plain import SCHEDULES, plain_run
from truth_bench.runs import DEVICES, prepare
from truth_bench.sequences import SEQUENCES, Case
from truth_bench.splits import placed

import partitioner as pt
from partitioner.integrations.torch import links, profile
from partitioner.integrations.torch.pipelines import stages_of
from partitioner.integrations.torch.verification import Corrections, measure_pipeline, whole_passes
from partitioner.integrations.torch.verification.runtime_costs import (
    CalibrationPipeline,
    runtime_corrections,
)
from partitioner.schedule import simulate

FEW, MANY = 2, 8  # microbatches
RUNNERS = ("library", "torch")
STEPS = ("operators", "whole passes", "all terms")
HEADS = ("model", "cut", "schedule", "runner", *STEPS, "measured", "error", "CPU of busiest rank", "error")


class Machine(NamedTuple):
    """Bytes in a ms, and the corrections of each runner, without and with which batches are predicted."""

    bandwidth: float
    corrections: Mapping[str, Corrections]


class Graphs(NamedTuple):
    """The graph of a model with sums of operators, with whole passes, and with their processor times."""

    operators: pt.Graph
    passes: pt.Graph
    processor: pt.Graph


class Row(NamedTuple):
    """What was predicted step by step and measured of a batch, and the processor time of the busiest rank."""

    names: tuple[str, ...]
    predicted: tuple[float, ...]
    measured: float
    busiest: tuple[float, float]

    @property
    def errors(self) -> list[float]:
        """How far each prediction is from the measured batch."""
        return [each / self.measured - 1 for each in self.predicted]

    def cells(self) -> list[str]:
        """Return the row as texts."""
        times = [f"{each:.1f}" for each in (*self.predicted, self.measured)]
        cpu = f"{self.busiest[0]:.1f} / {self.busiest[1]:.1f}"
        return [*self.names, *times, f"{self.errors[-1]:+.1%}", cpu, f"{self.cpu_error:+.1%}"]

    @property
    def cpu_error(self) -> float:
        """How far the predicted processor time is from the measured one."""
        return self.busiest[0] / self.busiest[1] - 1


def machine(rounds: int) -> Machine:
    """Return what gloo and both runners cost on this machine."""
    found = links(DEVICES).transfers
    slope, latency = (float(np.array(each)[0, 1]) for each in (found.slope, found.intercept))

    def plain(pipeline: CalibrationPipeline, microbatches: int) -> float:
        return plain_run(*pipeline, "1f1b", microbatches, rounds).batch

    runners = zip(RUNNERS, (None, plain), strict=True)
    terms = {name: runtime_corrections(how, message=latency) for name, how in runners}
    return Machine(1 / slope, terms)


def graphs_of(case: Case, bandwidth: float, seconds: float) -> Graphs:
    """Return the graph of a model with the times that each step of the prediction takes."""
    args = (case.sample,)
    scored: dict[str, Any] = {"loss": functional.mse_loss, "targets": (case.target,)}
    given: dict[str, Any] = {"bandwidth": bandwidth * 1e3, "time_limit": seconds, **scored}
    graph = profile(case.model, args, **given).graph
    whole, processor = (
        whole_passes(case.model, args, clock=clock, **scored) for clock in ("elapsed", "thread")
    )
    return Graphs(graph, whole.applied(graph), processor.applied(graph))


def placement_at(graph: pt.Graph, layer: int) -> dict[Any, str]:
    """Return the placement whose second stage begins with a layer of the sequence."""
    forward = np.flatnonzero(~graph.backward).tolist()
    of_node = [str(graph.extras.nodes[i]["module"]).partition(".")[0] for i in forward]
    start = next(place for place, name in enumerate(of_node) if name.isdigit() and int(name) >= layer)
    return placed(graph, start)


def rows_of(name: str, case: Case, costs: Machine, seconds: float, rounds: int) -> Iterator[Row]:
    """Yield the rows of a model: both cuts, schedules and runners."""
    graphs = graphs_of(case, costs.bandwidth, seconds)
    for cut in case.cuts:
        placement = placement_at(graphs.operators, cut)
        stages = stages_of(case.model, (case.sample,), graphs.operators, placement)
        for schedule in SCHEDULES:
            given: dict[str, Any] = {"loss": functional.mse_loss, "target": case.target, "rounds": rounds}
            own = measure_pipeline(
                stages, (case.sample,), schedule=schedule, microbatches=(FEW, MANY), **given
            )
            halves = case.model[:cut], case.model[cut:]
            plain = plain_run(halves, case.sample, case.target, schedule, MANY, rounds)
            assert own.busiest is not None
            for runner, batch, cpu in (("library", own.batches[1], own.busiest), ("torch", *plain)):
                predicted, busiest = _predicted(graphs, placement, schedule, costs.corrections[runner])
                yield Row((name, str(cut), schedule, runner), predicted, batch, (busiest, cpu))


def _predicted(
    graphs: Graphs, placement: Mapping[Any, str], schedule: str, terms: Corrections
) -> tuple[tuple[float, ...], float]:
    """Return the batch by each step of the prediction, and the processor time of the busiest rank."""

    def batch(graph: pt.Graph, terms: Corrections) -> Any:
        given: dict[str, Any] = {"links": "direct", "pass_time": terms.pass_time}
        return simulate(terms.applied(graph), DEVICES, placement, schedule, MANY, **given)

    plain, passes = (batch(each, Corrections()).makespan for each in (graphs.operators, graphs.passes))
    used = batch(graphs.processor, Corrections())
    inside = np.bincount(used.table.row, (used.end - used.begin)[:, 1])
    return (plain, passes, batch(graphs.passes, terms).makespan), float(inside.max())


def summary(rows: list[Row]) -> Iterator[str]:
    """Yield the median and the worst error of each runner by each step."""
    for runner in RUNNERS:
        own = [row for row in rows if row.names[-1] == runner]
        for step, name in enumerate(STEPS):
            yield f"{runner}, {name}: {_spread([abs(row.errors[step]) for row in own])}"
        yield f"{runner}, CPU of the busiest rank: {_spread([abs(row.cpu_error) for row in own])}"


def _spread(errors: list[float]) -> str:
    return f"median {statistics.median(errors):.1%}, worst {max(errors):.1%} of {len(errors)} batches"


def main() -> None:
    """Run the models and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=list(SEQUENCES), choices=list(SEQUENCES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0, help="of a profile")
    parser.add_argument("--table", type=Path, help="a file that the rows are added to")
    options = parser.parse_args()
    prepare()
    warnings.filterwarnings("ignore")
    costs, rows = machine(options.rounds), []
    print(f"torch {torch.__version__}, load {os.getloadavg()[0]:.1f}, {costs}", flush=True)
    for name in options.models:
        torch.manual_seed(0)
        case = SEQUENCES[name]()
        case.model.train()
        for row in rows_of(name, case, costs, options.seconds, options.rounds):
            rows.append(row)
            print(*row.cells(), file=sys.stderr, flush=True)
    print(markdown_grid(HEADS, [row.cells() for row in rows]))
    print(*summary(rows), sep="\n")
    if options.table:
        options.table.write_text(markdown_grid(HEADS, [row.cells() for row in rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
