"""How well profiles of models of torch repeat, and how near the sum of the operators is to a real step.

Each model is profiled twice, in training and in inference, with one thread; between the two a real step of
it is timed by the same clock, the median of as many steps as a profile has rounds. `differ` is how far the
sums of the two profiles are apart, `off` how far the first sum is from the real step. `plans` are the times
per sample of the plans that solve finds with either profile, as pipelines of two processes, and how far they
are apart. Needs torch. Exit code: 0; 1 with --check if two profiles or their plans differ by more than 5 %.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from grids import markdown_grid
from truth_bench.models import MODELS, Case
from truth_bench.runs import ProfiledModel, circumstances, prepare, solved

import partitioner as pt
from partitioner.integrations.torch import profile
from partitioner.integrations.torch.verification import MeasuredRun

ALLOWED, BANDWIDTH = 0.05, 2e9
GOOD, APART = 0, 1
CLOCKS: dict[str, Callable[[], float]] = {"thread": time.thread_time, "elapsed": time.perf_counter}
HEADS = ("model", "pass", "rounds", "first ms", "second ms", "differ", "real step ms", "off", "plans")


class Repeated(NamedTuple):
    """Two profiles of a model: their rounds and sums in ms, a real step, and the runs of both plans."""

    model: str
    training: bool
    rounds: int
    first: float
    second: float
    step: float
    runs: tuple[MeasuredRun, ...]

    @property
    def apart(self) -> float:
        """How far the sums are apart."""
        return abs(self.second / self.first - 1)

    @property
    def plans_apart(self) -> float:
        """How far the times per sample of the plans are apart; 0 if it is one plan."""
        times = [run.time_per_sample for run in self.runs]
        return abs(times[-1] / times[0] - 1)

    def row(self) -> tuple[str, ...]:
        """Return a line of the table."""
        kind = "training" if self.training else "inference"
        sums = f"{self.first:.2f}", f"{self.second:.2f}", f"{self.apart:.1%}"
        step = f"{self.step:.2f}", f"{self.first / self.step - 1:+.1%}"
        return self.model, kind, str(self.rounds), *sums, *step, self._plans()

    def _plans(self) -> str:
        if len(self.runs) == 1:
            return "the same"
        doubt = "?" if any(run.doubt for run in self.runs) else ""
        times = ", ".join(f"{run.time_per_sample:.1f}" for run in self.runs)
        return f"{times} ({self.plans_apart:.1%}{doubt})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--clock", choices=CLOCKS, default="thread", help="the clock (default: thread)")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds a profile (default: 10)")
    parser.add_argument("--check", action="store_true", help="fail if figures differ by more than 5 %%")
    options = parser.parse_args(arguments)
    prepare()
    warnings.filterwarnings("ignore")
    found = []
    for name in options.models:
        for training in (True, False):
            torch.manual_seed(0)
            found.append(measured(name, MODELS[name](), training, options.clock, options.time_limit))
            print(*found[-1].row(), file=sys.stderr, flush=True)
    print(f"{circumstances([run for each in found for run in each.runs])}\n")
    print(markdown_grid(list(HEADS), [each.row() for each in found]))
    apart, plans = max(each.apart for each in found), max(each.plans_apart for each in found)
    print(f"\nlargest difference of two profiles: {apart:.1%}, of their plans: {plans:.1%}")
    return APART if options.check and max(apart, plans) > ALLOWED else GOOD


def measured(name: str, case: Case, training: bool, clock: str, time_limit: float) -> Repeated:
    """Return two profiles of a model with a real step between them, and the runs of their plans."""
    model, args, loss, target = case
    model.train(training)
    given: dict[str, Any] = {"loss": loss, "targets": (target,)} if training else {}
    given |= {"bandwidth": BANDWIDTH, "training": training, "clock": clock, "time_limit": time_limit}
    first = profile(model, args, **given).graph
    rounds = int(first.extras.top["rounds"])
    step = _real_step(case, training, CLOCKS[clock], rounds)
    second = profile(model, args, **given).graph
    runs = _runs_of_plans(case, training, first, second)
    return Repeated(name, training, rounds, float(first.time.sum()), float(second.time.sum()), step, runs)


def _real_step(case: Case, training: bool, clock: Callable[[], float], rounds: int) -> float:
    model, args, loss, target = case
    times = []
    for _ in range(rounds + 2):
        model.zero_grad(set_to_none=True)
        started = clock()
        with torch.set_grad_enabled(training):
            output = model(*args)
            if training:
                loss(output, target).backward()
        times.append((clock() - started) * 1e3)
    return statistics.median(times[2:])


def _runs_of_plans(case: Case, training: bool, first: pt.Graph, second: pt.Graph) -> tuple[MeasuredRun, ...]:
    """Return a run of the plan of each profile; one run if they are the same plan."""
    model, args, loss, target = case
    profiled = ProfiledModel(model, args, {"loss": loss, "target": target} if training else {}, first)
    plans = [solved(graph) for graph in (first, second)]
    different = plans if plans[0] != plans[1] else plans[:1]
    return tuple(profiled.run(plan, profiled.schedules[-1], 3) for plan in different)


if __name__ == "__main__":
    sys.exit(main())
