"""Predicted and measured batches of two runtimes: the library's runner, and torch's own stages and schedules.

``python scripts/bench_predictions.py`` profiles four models that are sequences of layers, predicts a batch at
two cuts under two schedules, and runs each with two processes of one thread: by the library's runner, and by
torch.distributed.pipelining alone. Nothing is fitted to the rows: whole passes are measured in two processes
without a pipeline, what a runtime adds with two small pipelines of other layers, a message with gloo. All of
that and the runs are measured in turns, whose medians count: other programs slow down a machine for minutes.
Prints a row for each run, and the errors without these terms, with whole passes, and with all; --table writes
the rows to a file. The last figures are processor times, which say something beside other programs, too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import product
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
from partitioner.integrations.torch.verification.model_passes import WholePasses
from partitioner.integrations.torch.verification.runtime_costs import (
    CalibrationPipeline,
    runtime_corrections,
)
from partitioner.schedule import simulate

FEW, MANY = 2, 8  # microbatches
RUNNERS = ("library", "torch")
PLAIN = Corrections()
STEPS = ("operators", "whole passes", "all terms")
HEADS = ("model", "cut", "schedule", "runner", *STEPS, "measured", "error", "CPU of busiest rank", "error")


class Prepared(NamedTuple):
    """A model with its graph, and by cut the placement, the stages and the halves for torch's runner."""

    case: Case
    graph: pt.Graph
    cuts: Mapping[str, tuple[Mapping[Any, str], Any, Any]]


class Turn(NamedTuple):
    """What one turn measures: the corrections of runners, the whole passes of models, and the runs.

    Whole passes have their elapsed and their processor times. A run, by model, cut, schedule and runner, has
    the ms of a batch and the processor time of the busiest rank.
    """

    corrections: Mapping[str, Corrections]
    passes: Mapping[str, tuple[WholePasses, ...]]
    runs: Mapping[tuple[str, str, str, str], tuple[float, float]]


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


def prepared(case: Case, bandwidth: float, seconds: float) -> Prepared:
    """Return a model with its profile, cut in two ways."""
    scored: dict[str, Any] = {"loss": functional.mse_loss, "targets": (case.target,)}
    graph = profile(case.model, (case.sample,), bandwidth=bandwidth, time_limit=seconds, **scored).graph
    cuts = {}
    for cut in case.cuts:
        placement = placement_at(graph, cut)
        stages = stages_of(case.model, (case.sample,), graph, placement)
        cuts[str(cut)] = placement, stages, (case.model[:cut], case.model[cut:])
    return Prepared(case, graph, cuts)


def placement_at(graph: pt.Graph, layer: int) -> dict[Any, str]:
    """Return the placement whose second stage begins with a layer of the sequence."""
    forward = np.flatnonzero(~graph.backward).tolist()
    of_node = [str(graph.extras.nodes[i]["module"]).partition(".")[0] for i in forward]
    start = next(place for place, name in enumerate(of_node) if name.isdigit() and int(name) >= layer)
    return placed(graph, start)


def measured(models: Mapping[str, Prepared], latency: float, rounds: int) -> Turn:
    """Return what a turn measures; `latency` is the time of a message."""

    def plain(pipeline: CalibrationPipeline, microbatches: int) -> float:
        return plain_run(*pipeline, "1f1b", microbatches, rounds).batch

    ways = zip(RUNNERS, (None, plain), strict=True)
    corrections = {name: runtime_corrections(how, message=latency) for name, how in ways}
    passes, runs = {}, {}
    for name, model in models.items():
        scored: dict[str, Any] = {"loss": functional.mse_loss, "targets": (model.case.target,)}
        elapsed, processor = (
            whole_passes(model.case.model, (model.case.sample,), clock=clock, **scored)
            for clock in ("elapsed", "thread")
        )
        passes[name] = elapsed, processor
        for cut, schedule in product(model.cuts, SCHEDULES):
            for runner, found in _runs(model, cut, schedule, rounds).items():
                runs[name, cut, schedule, runner] = found
                print(name, cut, schedule, runner, *found, file=sys.stderr, flush=True)
    return Turn(corrections, passes, runs)


def _runs(model: Prepared, cut: str, schedule: str, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the ms of a batch and the processor time of the busiest rank, by runner."""
    _, stages, halves = model.cuts[cut]
    sample, target = model.case.sample, model.case.target
    given: dict[str, Any] = {"loss": functional.mse_loss, "target": target, "rounds": rounds}
    own = measure_pipeline(stages, (sample,), schedule=schedule, microbatches=(FEW, MANY), **given)
    assert own.busiest is not None
    plain = plain_run(halves, sample, target, schedule, MANY, rounds)
    return dict(zip(RUNNERS, ((own.batches[1], own.busiest), (plain.batch, plain.busiest)), strict=True))


def medians(turns: Sequence[Turn]) -> Turn:
    """Return the turn that has the median of each figure."""
    first = turns[0]
    return Turn(
        {name: _middle(turn.corrections[name] for turn in turns) for name in first.corrections},
        {
            name: tuple(map(_middle, zip(*(turn.passes[name] for turn in turns), strict=True)))
            for name in first.passes
        },
        {key: _middle(turn.runs[key] for turn in turns) for key in first.runs},
    )


def _middle(found: Iterable[Any]) -> Any:
    """Return the record or tuple of numbers that has the median of each."""
    first, *others = found
    if isinstance(first, tuple):
        return tuple(map(statistics.median, zip(first, *others, strict=True)))
    return type(first)(*map(statistics.median, zip(*map(astuple, (first, *others)), strict=True)))


def row_of(names: tuple[str, str, str, str], model: Prepared, found: Turn) -> Row:
    """Return what is predicted step by step of a run, and what was measured."""
    name, cut, schedule, runner = names
    elapsed, processor = found.passes[name]
    placement, terms = model.cuts[cut][0], found.corrections[runner]

    def batch(graph: pt.Graph, terms: Corrections = PLAIN) -> Any:
        given: dict[str, Any] = {"links": "direct", "pass_time": terms.pass_time}
        return simulate(terms.applied(graph), DEVICES, placement, schedule, MANY, **given)

    graph, used = elapsed.applied(model.graph), batch(processor.applied(model.graph))
    steps = batch(model.graph).makespan, batch(graph).makespan, batch(graph, terms).makespan
    inside = np.bincount(used.table.row, (used.end - used.begin)[:, 1])
    took, busiest = found.runs[names]
    return Row(names, steps, took, (float(inside.max()), busiest))


def summary(rows: list[Row]) -> Iterator[str]:
    """Yield the median and the worst error of each runner by each step."""
    for runner in RUNNERS:
        own = [row for row in rows if row.names[-1] == runner]
        for step, name in enumerate(STEPS):
            yield f"{runner}, {name}: {_spread([abs(row.errors[step]) for row in own])}"
        yield f"{runner}, CPU of the busiest rank: {_spread([abs(row.cpu_error) for row in own])}"


def _spread(errors: list[float]) -> str:
    return f"median {statistics.median(errors):.1%}, worst {max(errors):.1%} of {len(errors)} batches"


def _case(name: str) -> Case:
    torch.manual_seed(0)
    case = SEQUENCES[name]()
    case.model.train()
    return case


def main() -> None:
    """Run the models and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=list(SEQUENCES), choices=list(SEQUENCES))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5, help="of a run in a turn")
    parser.add_argument("--seconds", type=float, default=3.0, help="of a profile")
    parser.add_argument("--table", type=Path, help="a file that the rows are added to")
    options = parser.parse_args()
    prepare()
    warnings.filterwarnings("ignore")
    found = links(DEVICES).transfers
    slope, latency = (float(np.array(each)[0, 1]) for each in (found.slope, found.intercept))
    models = {name: prepared(_case(name), 1e3 / slope, options.seconds) for name in options.models}
    turns = []
    for _ in range(options.turns):
        turns.append(measured(models, latency, options.rounds))
        print(f"load {os.getloadavg()[0]:.1f}, {turns[-1].corrections}", file=sys.stderr, flush=True)
    typical = medians(turns)
    rows = [row_of(names, models[names[0]], typical) for names in typical.runs]
    table = markdown_grid(HEADS, [row.cells() for row in rows])
    print(f"torch {torch.__version__}, medians of {options.turns} turns, {typical.corrections}")
    print(table, *summary(rows), sep="\n")
    if options.table:
        options.table.write_text(table + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
