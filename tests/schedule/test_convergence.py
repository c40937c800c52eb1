"""Time per sample tends to the objective: the largest load, and for GPipe that of each pass (Section 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partitioner import Graph, evaluate, load, solve
from partitioner.schedule import simulate
from partitioner.schedule.reading import read_passes
from partitioner.workload.devices import Devices
from tests.random_pipelines import Case, random_case

NETWORKS = (
    "bert3",
    "bert6",
    "bert12",
    "bert24",
    "gnmt",
    "inceptionv3",
    "resnet50_layer",
    "resnet50_operator",
)
QUICK = ("bert3_inference", "bert3_training", "gnmt_training")
WORKLOADS = [f"{network}_{use}" for network in NETWORKS for use in ("inference", "training")]


def verify(graph: Graph, devices: Devices, placement: Any, microbatches: int, each: int = 1) -> None:
    """The time per sample exceeds the objective by less than one part in samples for each virtual stage."""
    passes = read_passes(graph, devices, placement)
    stages = passes.stages if passes.line else len(passes)
    objectives = {"1f1b": "throughput", "gpipe": "gpipe"} if passes.trains else {"inference": "throughput"}
    for schedule, objective in objectives.items():
        found = simulate(graph, devices, placement, schedule, microbatches)
        value = evaluate(graph, devices, placement, objective).value
        assert found.time_per_sample < value * (1 + each * stages / microbatches)
        assert found.time_per_sample >= found.bound * (1 - 1e-9)


def line(case: Case, placement: Any) -> bool:
    """Does 1F1B limit how many samples are in flight?"""
    return read_passes(case.graph, case.devices, placement).line


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(w, marks=pytest.mark.slow) for w in WORKLOADS if w not in QUICK)]
)
def test_contiguous_splits_of_published_workloads(published: Path, name: str) -> None:
    workload = load(published / "throughput" / f"{name}.json")
    plan = solve(workload.graph, workload.devices, method="dpl")
    for microbatches in (8, 64, 1024):
        verify(workload.graph, workload.devices, plan.placement, microbatches)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_free_splits_of_published_workloads(published: Path, name: str) -> None:
    workload = load(published / "throughput" / f"{name}.json")
    plan = solve(workload.graph, workload.devices, method="local_search", split="free", time_limit=1)
    for microbatches in (64, 1024):
        verify(workload.graph, workload.devices, plan.placement, microbatches)


@pytest.mark.parametrize("count", [40, pytest.param(120, marks=pytest.mark.slow)])
def test_any_placement_of_random_graphs(count: int) -> None:
    """Where transfers run beside the processing, each has a round of its own: three for a virtual stage."""
    rng = np.random.default_rng(13)
    done = 0
    while done < count:
        case = random_case(rng, ())
        names = case.devices.names
        placement = {node: names[int(rng.integers(len(names)))] for node in case.graph.ids}
        value = evaluate(case.graph, case.devices, placement).value
        beside = case.devices.communication != "sequential"
        if value > 0 and not (beside and case.graph.backward.any() and line(case, placement)):
            verify(case.graph, case.devices, placement, 30, 3 if beside else 1)
            done += 1
