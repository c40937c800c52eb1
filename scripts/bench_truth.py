"""Predictions of pipelines beside real runs: models, cuts and schedules, with the error of each.

``python scripts/bench_truth.py`` runs every model at four cuts under three schedules on two processes of one
thread each, and prints a table with the median and the worst error. Corrections are fitted to runs of the
same model at two other cuts, without GPipe, which are not in the table. `--models` and `--cuts` choose a
part. A run beside which other programs used more than a tenth of the cores is done again; if it was so both
times it is marked and left out of the summary. With --any-load neither is done.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from grids import markdown_grid
from truth_bench.options import begin, cases, parser, tries
from truth_bench.runs import DEVICES, ProfiledModel, circumstances, solved
from truth_bench.splits import at_time

import partitioner as pt
from partitioner.integrations.torch.verification import (
    Corrections,
    MeasuredRun,
    RunComparison,
    compare_with_run,
    fit_corrections,
)

CUTS = ("solve", "0.35", "0.5", "0.65")  # the plan of solve, and a part of the time of the forward pass
FITTED = ("0.3", "0.7")
TIMES = ("time per sample", "batch")
HEADS = ("model", "cut", "schedule", *TIMES, "memory", "foreign", "")


class Run(NamedTuple):
    """A measured run of a model."""

    model: str
    case: ProfiledModel
    cut: str
    placement: Mapping[Any, str]
    measured: MeasuredRun


def placement_at(graph: pt.Graph, cut: str) -> Mapping[Any, str]:
    """Return the placement that solve finds, or that cuts the forward pass at a part of its time."""
    return solved(graph) if cut == "solve" else at_time(graph, float(cut))


def runs_of(name: str, case: ProfiledModel, options: argparse.Namespace) -> Iterator[Run]:
    """Yield the measured runs of a model at the cuts that are asked for."""
    schedules = dict.fromkeys(options.fitted, case.schedules[-1:])
    for cut in [*options.fitted, *options.cuts]:
        placement = placement_at(case.graph, cut)
        for schedule in schedules.get(cut, case.schedules):
            yield Run(
                name, case, cut, placement, case.run(placement, schedule, options.rounds, tries(options))
            )


def compared(run: Run, corrections: Corrections, any_load: bool) -> RunComparison:
    """Return a run beside its prediction with corrected costs; with `any_load` it judges in any case."""
    measured = replace(run.measured, foreign=0.0) if any_load else run.measured
    return compare_with_run(pt.Workload(run.case.graph, DEVICES), run.placement, measured, corrections)


def row(run: Run, found: RunComparison) -> list[str]:
    """Return a line of the table."""
    times = [
        f"{found[what].predicted:.1f} / {found[what].measured:.1f} ({found[what].error:+.1%})"
        for what in TIMES
    ]
    foreign = "?" if run.measured.foreign is None else f"{run.measured.foreign:.0%}"
    doubt = "not judged" if found.run.doubt else ""
    names = [run.model, run.cut, run.measured.schedule]
    return [*names, *times, f"{_memory(found):+.1%}", foreign, doubt]


def _memory(found: RunComparison) -> float:
    """Return the largest error of the memory of a device."""
    return max((one.error for one in found.figures if one.unit == "bytes"), key=abs)


def summary(found: list[RunComparison]) -> Iterator[str]:
    """Yield the median and the worst error of the times and the memory of runs that judge."""
    judged = [one for one in found if not one.run.doubt]
    if not judged:
        yield "no run can be judged on this machine now"
        return
    errors = {what: [abs(one[what].error) for one in judged] for what in TIMES}
    errors["memory"] = [abs(_memory(one)) for one in judged]
    for what, known in errors.items():
        yield f"{what}: median {statistics.median(known):.1%}, worst {max(known):.1%} of {len(known)} runs"


def main() -> None:
    """Run the models and print the table."""
    options = _options()
    started, bandwidth = time.monotonic(), begin()
    runs: list[Run] = []
    for name, case in cases(options, bandwidth):
        for run in runs_of(name, case, options):
            runs.append(run)
            plain = compared(run, Corrections(), options.any_load)
            print(*row(run, plain), file=sys.stderr, flush=True)
    print(circumstances([run.measured for run in runs]))
    print(f"{bandwidth / 1e9:.2f} GB/s between two processes")
    report(runs, options.fitted, options.any_load)
    print(f"\n{time.monotonic() - started:.0f} s in all")


def _options() -> argparse.Namespace:
    found = parser(__doc__)
    found.add_argument("--cuts", nargs="*", default=list(CUTS))
    found.add_argument(
        "--fitted", nargs="*", default=list(FITTED), help="cuts that corrections are fitted to"
    )
    return found.parse_args()


def report(runs: list[Run], fitted: list[str], any_load: bool) -> None:
    """Print the corrections of each model, and the table of all runs that they are not fitted to."""
    tested = [run for run in runs if run.cut not in fitted]
    learnt = {run.model: Corrections() for run in runs}
    for name in learnt:
        own = [run for run in runs if run.cut in fitted and run.model == name]
        learnt[name] = learnt_from([compared(run, Corrections(), any_load) for run in own])
        print(f"{name}, {len(own)} other runs: {learnt[name]}")
    found = [compared(run, learnt[run.model], any_load) for run in tested]
    print(f"\n{markdown_grid(HEADS, [row(run, one) for run, one in zip(tested, found, strict=True)])}")
    print("\nwith corrections:", *summary(found), sep="\n")
    print("\nwithout:", *summary([compared(run, Corrections(), any_load) for run in tested]), sep="\n")


def learnt_from(runs: list[RunComparison]) -> Corrections:
    """Return the corrections that runs give; none if too few of them judge."""
    try:
        return fit_corrections(runs)
    except pt.OptionError as error:
        print(error, file=sys.stderr)
        return Corrections()


if __name__ == "__main__":
    main()
