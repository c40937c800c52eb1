"""Replicas exchange weights once a batch, after their last pass, for the time of an all-reduce in a ring."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Level, OptionError
from partitioner.schedule import Timeline, simulate
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from tests.methods.slow_parameters import slow
from tests.schedule.lines import Line, random_line
from tests.schedule.test_copies import random_copies

Case = tuple[Line, dict[str, list[str]], str, int, dict[str, float]]
Passes = dict[tuple[str, str, int, str, int], tuple[float, float]]


def parts_of(timeline: Timeline, exchange: bool) -> Passes:
    """When every part of a pass begins and ends: of exchanges, or of all others."""
    return {
        (o.device, o.part, o.stage, o.direction, o.microbatch): (o.start, o.end)
        for o in timeline.operations()
        if (o.part == "sync") == exchange
    }


def random_case(rng: np.random.Generator) -> Case:
    """A pipeline with copies of one stage, a schedule, a batch, and the time of an exchange by device."""
    stages, more = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    graph, _, placement = random_line(rng, stages)
    slowdown, bandwidth = float(rng.choice([1.0, 3.0])), float(rng.choice([0.5, 2.0]))
    devices = Devices(
        (DeviceKind("gpu", stages + more, bandwidth=bandwidth),),
        str(rng.choice(["sequential", "overlapped", "duplex"])),
        (Level("server", {"gpu": 1}, slowdown),),
        str(rng.choice(["added", "overlapped"])),
    )
    first, r = f"gpu{rng.integers(stages)}", 1 + more
    copies = [first, *(f"gpu{stages + i}" for i in range(more))]
    weights = sum(graph.parts[0][i] for i, home in placement.items() if home == first)
    ring = 2 * (r - 1) * (weights / r) * slowdown / bandwidth
    schedule = str(rng.choice(["gpipe", "1f1b", "zb-h1", "single_stream"]))
    times = dict.fromkeys(copies, float(ring))
    return Line(graph, devices, placement), {first: copies[1:]}, schedule, int(rng.integers(1, 9)), times


@pytest.mark.parametrize("count", [200, slow(2500)])
def test_the_exchange_is_the_last_of_each_copy_and_changes_nothing_else(count: int) -> None:
    """By its formula, after the last pass of a device; all other parts run as without an exchange.

    It waits for the transfer out of that pass only where a device does one thing at a time.
    """
    rng = np.random.default_rng(3)
    for _ in range(count):
        line, replicas, schedule, batch, times = random_case(rng)
        graph, devices, placement = line
        silent = replace(devices, kinds=(replace(devices.kinds[0], bandwidth=None),))
        found = simulate(*line, schedule, batch, replicas=replicas)
        without = simulate(graph, silent, placement, schedule, batch, replicas=replicas)
        assert parts_of(found, False) == parts_of(without, False)
        ends: dict[str, float] = defaultdict(float)
        one_by_one = devices.communication == "sequential" and devices.synchronisation == "added"
        for (device, part, *_), (_, end) in parts_of(without, False).items():
            if one_by_one or part == "compute":
                ends[device] = max(ends[device], end)
        expected = {name: (ends[name], ends[name] + times[name]) for name in times if name in ends}
        exchanged = {key[0]: span for key, span in parts_of(found, True).items()}
        assert exchanged.keys() == {name for name in expected if times[name] > 0}
        assert all(np.allclose(exchanged[name], expected[name]) for name in exchanged)
        late = simulate(*line, schedule, batch, replicas=replicas, late_exchange=True)
        assert np.isclose(found.makespan, max([without.makespan, *(end for _, end in expected.values())]))
        assert np.isclose(late.makespan, without.makespan + max(times[name] for name in expected))
        assert parts_of(late, False) == parts_of(without, False)


@pytest.mark.parametrize("count", [100, slow(2000)])
def test_copies_of_a_pipeline_with_several_stages_on_a_device_exchange_once(count: int) -> None:
    """Each device exchanges the weights of all its stages."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        name = str(rng.choice(sorted(VIRTUAL)))
        graph, devices, solution, _, batch, copies = random_copies(rng, name, bandwidth=2.0)
        exchanged = parts_of(simulate(graph, devices, solution, name, batch), True)
        for (device, *_), (start, end) in exchanged.items():
            lead = f"gpu{int(device[3:]) // copies * copies}"
            own = [i for i, node in enumerate(graph.ids) if solution.placement[node] == lead]
            assert np.isclose(end - start, 2 * (copies - 1) / copies * graph.parts[0][own].sum() / 2.0)
        assert len({device for device, *_ in exchanged}) == len(exchanged)


def test_an_asynchronous_schedule_and_the_exchange_of_the_paper_pay_for_every_sample() -> None:
    line, replicas, *_ = random_case(np.random.default_rng(1))
    graph, devices, placement = line
    asynchronous = simulate(*line, "1f1b_async", 6, replicas=replicas)
    paper = simulate(graph, replace(devices, exchange="paper"), placement, "1f1b", 6, replicas=replicas)
    for timeline in (asynchronous, paper):
        assert len(parts_of(timeline, True)) == 6
        assert "replicas exchange weights for every sample" in timeline.notes


def test_a_late_exchange_is_yes_or_no() -> None:
    line, replicas, *_ = random_case(np.random.default_rng(1))
    with pytest.raises(OptionError, match="late_exchange = 1: must be True or False"):
        simulate(*line, "1f1b", 6, replicas=replicas, late_exchange=1)  # type: ignore[arg-type]
