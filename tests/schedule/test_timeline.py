"""Figures of random timelines: busy is the union of what a device does, and files come back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, PartitionerError, load_timeline
from partitioner.schedule import Timeline, simulate
from partitioner.schedule.simulation import LINKS
from partitioner.workload.devices import COMMUNICATION_MODELS, SYNCHRONISATIONS
from tests.random_pipelines import random_case

TRAINING = ("single_stream", "gpipe", "1f1b", "1f1b_async", "zb-h1", "interleaved")
INFERENCE = ("single_stream", "inference")


def timelines(seed: int, count: int, whole: bool) -> Iterator[Timeline]:
    """Random pipelines with replicas and random placements; times are whole numbers or any others."""
    rng = np.random.default_rng(seed)
    while count:
        made = _line(rng, whole) if rng.random() < 0.7 else _anywhere(rng)
        graph, devices, placement, replicas = made
        for schedule in TRAINING if graph.backward.any() else INFERENCE:
            links, share = str(rng.choice(LINKS)), float(rng.choice([0.0, 0.3, 0.5, 1.0]))
            try:
                yield simulate(
                    *(graph, devices, placement, schedule, int(rng.integers(1, 9))),
                    replicas=replicas or None,
                    links=links,
                    input_share=share,
                )
            except PartitionerError:  # the schedule does not suit the split
                continue
            count -= 1
            if not count:
                return


Made = tuple[Graph, Devices, dict[int, str], dict[str, list[str]]]


def _line(rng: np.random.Generator, whole: bool) -> Made:
    """A path with shortcuts, its backward pass, and a few stages with replicas."""
    stages = int(rng.integers(1, 6))
    half = stages * int(rng.integers(1, 3))
    n = 2 * half
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < 0.2]
    round_to = 0 if whole else 17
    parts: dict[str, Any] = {
        part: rng.uniform(0, 2, n).round(round_to) for part in ("parameters", "activations")
    }
    graph = Graph.from_arrays(
        {"gpu": rng.uniform(0, 9, n).round(round_to)},
        edges,
        rng.uniform(0, 4, len(edges)).round(round_to),
        backward=np.arange(n) >= half,
        **parts,
    )
    degree = [int(rng.integers(2, 4)) if rng.random() < 0.4 else 1 for _ in range(stages)]
    spare = iter(range(stages, sum(degree)))
    replicas = {f"gpu{i}": [f"gpu{next(spare)}" for _ in range(r - 1)] for i, r in enumerate(degree) if r > 1}
    kind = DeviceKind("gpu", sum(degree), bandwidth=float(rng.choice([1.0, 2.0, 3.0])))
    models = str(rng.choice(COMMUNICATION_MODELS)), str(rng.choice(SYNCHRONISATIONS))
    devices = Devices((kind,), models[0], synchronisation=models[1])
    placement = {i: f"gpu{min(i, n - 1 - i) * stages // half}" for i in range(n)}
    return graph, devices, placement, replicas


def _anywhere(rng: np.random.Generator) -> Made:
    """A random case with every node on any device."""
    case = random_case(rng, ("kinds", "levels", "memory"))
    names = case.devices.names
    placement = {node: names[int(rng.integers(len(names)))] for node in range(len(case.graph))}
    return case.graph, case.devices, placement, {}


def union(spans: list[tuple[float, float]]) -> Fraction:
    """The measure of the union, exactly."""
    total, reached = Fraction(0), Fraction(-1)
    for begin, end in sorted((Fraction(a), Fraction(b)) for a, b in spans):
        total += max(Fraction(0), end - max(begin, reached))
        reached = max(reached, end)
    return total


def check_figures(found: Timeline) -> None:
    makespan = Fraction(found.makespan)
    for name, busy, bubble in zip(found.devices, found.busy, found.bubble, strict=True):
        covered = union([(o.start, o.end) for o in found.operations() if o.device == name])
        assert busy == pytest.approx(float(covered), rel=1e-12, abs=1e-12)
        assert bubble == pytest.approx(float(1 - covered / makespan) if makespan else 0.0, abs=1e-12)
        assert 0 <= bubble <= 1


@pytest.mark.parametrize("count", [50, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("whole", [True, False])
def test_busy_is_the_union_of_what_a_device_does(whole: bool, count: int) -> None:
    for found in timelines(1, count, whole):
        check_figures(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_busy_is_the_union_in_thousands_of_pipelines(seed: int) -> None:
    for found in timelines(seed, 2000, seed % 2 == 0):
        check_figures(found)


def check_file(found: Timeline, path: Path) -> None:
    found.save(path)
    assert load_timeline(path).to_json() == found.to_json()


@pytest.mark.parametrize(
    ("seed", "count"),
    [(20, 50), *(pytest.param(*some, marks=pytest.mark.slow) for some in ((20, 400), (21, 2_500)))],
)
def test_random_timelines_come_back_from_their_files(tmp_path: Path, seed: int, count: int) -> None:
    for found in timelines(seed, count, False):
        check_file(found, tmp_path / "timeline.json")


def test_parts_that_fill_the_makespan_leave_no_bubble() -> None:
    """Pieces of 0.1 that add up to more than their end by rounding."""
    graph = Graph.from_arrays({"gpu": [0.1, 0.2, 0.3]}, [(0, 1), (1, 2)])
    found = simulate(graph, Devices((DeviceKind("gpu", 1),)), dict.fromkeys(range(3), "gpu0"), "inference", 9)
    assert found.bubble.tolist() == [0.0]
    assert found.busy.tolist() == [found.makespan]
