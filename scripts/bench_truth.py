"""Predictions of pipelines beside real runs: models, cuts and schedules, with the error of each.

``python scripts/bench_truth.py`` runs every model at four cuts under three schedules on two processes of one
thread each, and prints a table with the median and the worst error. `--models` and `--cuts` choose a part.
A run beside which other programs used more than a tenth of the cores is marked and left out of the summary.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from truth_models import MODELS

import partitioner as pt
from partitioner.integrations.torch import profile
from partitioner.integrations.torch.pipelines import stages_of
from partitioner.integrations.torch.verification import RunComparison, compare_with_run, measure_pipeline

SCHEDULES = ("inference", "gpipe", "1f1b")
CUTS = ("best", "0.35", "0.5", "0.65")  # the plan of solve, and a part of the time of the forward pass
BANDWIDTH = 2e9  # bytes per second to memory and back, for tensors between two processes
DEVICES = pt.Devices.accelerated(2, cpus=0)
SECONDS = 6.0  # of a profile


def placement_at(graph: pt.Graph, cut: str) -> dict[Any, str]:
    """Return the placement that solve finds, or that cuts the forward pass at a part of its time."""
    if cut == "best":
        return dict(pt.solve(graph, DEVICES).placement)
    time, backward = graph.time[0], graph.backward
    limit, spent = float(cut) * float(time[~backward].sum()), 0.0
    home: dict[Any, str] = {}
    colour: dict[int, str] = {}
    for i, node in enumerate(graph.ids):
        if not backward[i]:
            home[node] = f"accelerator{int(spent >= limit)}"
            spent += float(time[i])
        if graph.color[i] >= 0:
            home[node] = colour.setdefault(int(graph.color[i]), home.get(node, "accelerator1"))
        home.setdefault(node, "accelerator1")
    return home


def compared(name: str, cuts: list[str], rounds: int) -> Iterator[tuple[str, str, RunComparison]]:
    """Yield the cut, the schedule and the comparison of each run of a model."""
    torch.manual_seed(0)
    model, args, loss, target = MODELS[name]()
    for training in (False, True):
        model.train(training)
        given: dict[str, Any] = {"loss": loss, "targets": (target,)} if training else {}
        graph = profile(
            model, args, bandwidth=BANDWIDTH, training=training, time_limit=SECONDS, clock="elapsed", **given
        ).graph
        for cut in cuts:
            placement = placement_at(graph, cut)
            stages = stages_of(model, args, graph, placement)
            for schedule in SCHEDULES[1:] if training else SCHEDULES[:1]:
                own: dict[str, Any] = {"loss": loss, "target": target} if training else {}
                run = measure_pipeline(stages, args, schedule=schedule, rounds=rounds, **own)
                yield cut, schedule, compare_with_run(pt.Workload(graph, DEVICES), placement, run)


def row(name: str, cut: str, schedule: str, found: RunComparison) -> str:
    """Return a line of the table."""
    cells = [f"{name:14}{cut:6}{schedule:10}"]
    for what in ("time per sample", "batch"):
        one = found[what]
        cells.append(f"{one.predicted:8.1f} {one.measured:8.1f} {one.error:+7.1%}")
    memory = max((abs(one.error) for one in found.figures if one.unit == "bytes"), default=0.0)
    foreign = "?" if found.run.foreign is None else f"{found.run.foreign:.0%}"
    return "  ".join(
        [*cells, f"memory {memory:5.1%}", f"foreign {foreign}", found.run.doubt and "not judged"]
    )


def main() -> None:
    """Run the models and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--cuts", nargs="*", default=list(CUTS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    errors: dict[str, list[float]] = {"time per sample": [], "batch": []}
    for name in options.models:
        for cut, schedule, found in compared(name, options.cuts, options.rounds):
            print(row(name, cut, schedule, found), flush=True)
            for what, known in errors.items():
                known += [] if found.run.doubt else [abs(found[what].error)]
    for what, known in errors.items():
        if known:
            print(
                f"{what}: median {statistics.median(known):.1%}, worst {max(known):.1%} of {len(known)} runs"
            )
        else:
            print(f"{what}: no run can be judged on this machine now")


if __name__ == "__main__":
    main()
