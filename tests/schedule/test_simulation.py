"""The simulation keeps to the model of the devices, wastes no time, and agrees with the evaluator."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, Level, WorkloadError, evaluate, solve
from partitioner.schedule import Table, simulate
from partitioner.schedule.passes import split_backward
from partitioner.schedule.reading import read_passes
from partitioner.workload.devices import COMMUNICATION_MODELS
from partitioner.workload.in_flight import stash
from tests.oracle_pipelines import atoms, chains
from tests.random_pipelines import random_case
from tests.schedule.lines import equal_stages, random_line
from tests.schedule.replay import contradictions, recomputed

NAMES = ("single_stream", "gpipe", "1f1b", "1f1b_async", "zb-h1")


def anywhere(rng: np.random.Generator, graph: Graph, devices: Devices) -> dict[Any, str]:
    """Every node on any device of a kind that has times for it."""
    names = [name for name in devices.names if devices.kinds[devices.kind_of(name)[0]].row in graph.kinds]  # type: ignore[index]
    return {node: names[int(rng.integers(len(names)))] for node in graph.ids}


@pytest.mark.parametrize("communication", COMMUNICATION_MODELS)
@pytest.mark.parametrize("schedule", NAMES)
def test_operations_are_possible(schedule: str, communication: str) -> None:
    rng = np.random.default_rng(3)
    for stages, microbatches in itertools.product((1, 3, 4), (1, 6)):
        line = random_line(rng, stages, communication=communication)
        found = simulate(*line, schedule, microbatches)
        passes = read_passes(*line)
        passes = split_backward(passes, 0.5) if schedule == "zb-h1" else passes
        assert np.isfinite(found.end).all()
        assert contradictions(found, passes, communication) == []


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zb-h1"])
def test_nothing_waits_longer_than_it_must(schedule: str) -> None:
    rng = np.random.default_rng(4)
    for stages in (1, 2, 3, 5):
        line = random_line(rng, stages)
        found = simulate(*line, schedule, 6)
        passes = read_passes(*line)
        passes = split_backward(passes, 0.5) if schedule == "zb-h1" else passes
        expected = recomputed(found, passes)
        assert np.allclose(list(expected.values()), found.begin[:, 0], rtol=1e-12)


def test_free_splits_are_possible_and_waste_nothing() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        case = random_case(rng, ())
        placement = anywhere(rng, case.graph, case.devices)
        passes = read_passes(case.graph, case.devices, placement)
        found = simulate(case.graph, case.devices, placement, "1f1b" if passes.trains else "inference", 5)
        assert contradictions(found, passes, case.devices.communication) == []
        if case.devices.communication == "sequential":
            expected = recomputed(found, passes)
            assert np.allclose(list(expected.values()), found.begin[:, 0], rtol=1e-12)


def test_the_bound_is_the_evaluators_load() -> None:
    """On any placement, with kinds, levels, and any model of communication."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        case = random_case(rng, ("kinds", "levels"))
        placement = anywhere(rng, case.graph, case.devices)
        expected = evaluate(case.graph, case.devices, placement).value
        found = simulate(case.graph, case.devices, placement, "single_stream", 2)
        assert np.isclose(found.bound, expected, rtol=1e-9, atol=1e-12)


def replicated(rng: np.random.Generator) -> tuple[tuple[Any, Any, Any], dict[str, list[str]]]:
    """A line with two stages, the first or second one on further devices."""
    graph, _, placement = random_line(rng, 2)
    more = int(rng.integers(1, 4))
    level = Level("server", {"gpu": 1}, 2.0)
    kind = DeviceKind("gpu", 2 + more, bandwidth=2.0)
    devices = Devices((kind,), levels=(level,), synchronisation=str(rng.choice(["added", "overlapped"])))
    return (graph, devices, placement), {f"gpu{rng.integers(2)}": [f"gpu{2 + i}" for i in range(more)]}


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_replicas_take_samples_in_turn_and_exchange_weights(schedule: str) -> None:
    """Each sample is on one replica; time per sample is at least the evaluator's load and tends to it."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        line, replicas = replicated(rng)
        value = evaluate(*line, replicas=replicas, schedule=schedule, microbatches=240).value
        found = simulate(*line, schedule, 240, replicas=replicas)
        assert np.isclose(found.bound, value, rtol=1e-9)
        assert found.time_per_sample >= found.bound * (1 - 1e-9)
        for lead, further in replicas.items():
            homes = {
                operation.microbatch % (1 + len(further)): operation.device
                for operation in found.operations()
                if operation.device in (lead, *further)
            }
            assert len(set(homes.values())) == 1 + len(further)
    assert {o.part for o in found.operations()} == {"in", "compute", "out", "sync"}


def test_replicas_reach_the_load_where_the_degrees_divide() -> None:
    """A stage on two devices before one on one device, of half its load."""
    graph, _, placement = equal_stages(2)
    slow = Graph.from_arrays({"gpu": [2.0, 1.0, 1.0, 2.0]}, [(0, 1), (1, 2), (2, 3)], backward=graph.backward)
    devices = Devices((DeviceKind("gpu", 3),))
    found = simulate(slow, devices, placement, "1f1b", 400, replicas={"gpu0": ["gpu2"]})
    assert found.bound == 2.0
    assert found.time_per_sample <= 2.0 * (1 + 3 / 400)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "1f1b_async"])
@pytest.mark.parametrize("degrees", [(1, 1, 1), (2, 1, 1), (1, 2, 3), (3, 1, 2), (1, 4, 1)])
def test_replicas_hold_what_the_rules_say(schedule: str, degrees: tuple[int, ...]) -> None:
    graph, _, placement = equal_stages(3)
    further = iter(range(3, sum(degrees)))
    replicas = {f"gpu{i}": [f"gpu{next(further)}" for _ in range(r - 1)] for i, r in enumerate(degrees)}
    devices = Devices((DeviceKind("gpu", sum(degrees)),))
    found = simulate(graph, devices, placement, schedule, 24, replicas=replicas)
    held = dict(zip(found.devices, found.in_flight.tolist(), strict=True))
    for stage in range(3):
        expected = stash(schedule, stage, 3, 24, degrees).activations
        assert {held[name] for name in (f"gpu{stage}", *replicas[f"gpu{stage}"])} == {expected}


def test_inference_holds_one_sample() -> None:
    line = random_line(np.random.default_rng(14), 3, trains=False)
    found = simulate(*line, "inference", 9)
    assert found.in_flight.tolist() == [1, 1, 1]
    judged = evaluate(*line, schedule="inference")
    assert np.allclose(found.peak_memory, [load.memory for load in judged.loads], rtol=1e-12)


def test_a_plan_brings_its_replicas_and_its_order() -> None:
    graph, _, _ = equal_stages(2, forward=3.0)
    devices = Devices((DeviceKind("gpu", 3),))
    plan = solve(graph, devices, replicas=3)
    found = simulate(graph, devices, plan, "1f1b", 60)
    assert plan.replicas and len(found.devices) > len(plan.stages)
    assert np.isclose(found.bound, plan.value, rtol=1e-9)
    assert found.efficiency > 0.9


def test_memory_is_the_evaluators_under_the_schedule() -> None:
    """Chains with every part of the memory: the peak of the simulation is what the rules count."""
    rng = np.random.default_rng(8)
    for stages, schedule in itertools.product((1, 2, 4), ("gpipe", "1f1b", "1f1b_async")):
        line = random_line(rng, stages)
        found = simulate(*line, schedule, 12)
        judged = evaluate(*line, schedule=schedule, microbatches=12)
        expected = {load.name: load.memory for load in judged.loads}
        assert np.allclose(found.peak_memory, [expected[name] for name in found.devices], rtol=1e-12)


def test_memory_over_time_begins_and_ends_without_samples() -> None:
    line = random_line(np.random.default_rng(9), 3)
    found = simulate(*line, "1f1b_async", 8)
    for (time, used), peak in zip(found.memory, found.peak_memory, strict=True):
        assert (np.diff(time) >= 0).all()
        assert used[0] == used[-1] == used.min()
        assert used.max() == peak > used[0]


def test_a_single_stream_is_the_latency_of_chains() -> None:
    """On a path both stages and subgraphs run one after the other, with the same transfers."""
    rng = np.random.default_rng(10)
    for stages in (1, 2, 5):
        line = random_line(rng, stages, trains=False)
        latency = evaluate(*line, "latency").value
        assert np.isclose(simulate(*line, "single_stream", 7).makespan, 7 * latency, rtol=1e-12)


def test_direct_links_keep_only_the_receiver_busy() -> None:
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], cost=3.0)
    line = graph, Devices((DeviceKind("gpu", 2),)), {0: "gpu0", 1: "gpu1"}
    host, direct = (simulate(*line, "inference", 10, links=links) for links in ("host", "direct"))
    assert (host.makespan, direct.makespan) == (1 + 3 + 10 * 4, 1 + 10 * 4)
    assert direct.busy.tolist() == [10, 40]
    assert {o.part for o in direct.operations() if o.device == "gpu0"} == {"compute"}


def test_slow_links_take_their_time() -> None:
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], cost=1.0)
    devices = Devices((DeviceKind("gpu", 2),), levels=(Level("server", {"gpu": 1}, 5.0),))
    found = simulate(graph, devices, {0: "gpu0", 1: "gpu1"}, "inference", 1)
    assert found.makespan == 1 + 5 + 5 + 1


def test_transfers_run_beside_the_processing() -> None:
    graph = Graph.from_arrays({"gpu": [2.0, 2.0, 2.0]}, [(0, 1), (1, 2)], cost=1.0)
    place = {i: f"gpu{i}" for i in range(3)}
    kinds = (DeviceKind("gpu", 3),)
    for communication, steady in (("sequential", 4.0), ("overlapped", 2.0), ("duplex", 2.0)):
        devices = Devices(kinds, communication)
        long, short = (simulate(graph, devices, place, "inference", m).makespan for m in (200, 100))
        assert (long - short) / 100 == steady


def test_a_table_of_ones_own_runs() -> None:
    rows = Table.from_rows({"gpu0": ["0F0", "0F1", "0B0", "0B1"], "gpu1": ["1F0", "1B0", "1F1", "1B1"]})
    assert simulate(*equal_stages(2), rows).makespan == 6


def test_stages_in_a_given_order() -> None:
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [])
    line = graph, Devices((DeviceKind("gpu", 2),)), {0: "gpu0", 1: "gpu1"}
    assert read_passes(*line, order=["gpu1", "gpu0"]).stage_devices() == [1, 0]
    with pytest.raises(WorkloadError, match="gpu0 comes after gpu1 in the order"):
        simulate(*equal_stages(2), "1f1b", 2, order=["gpu1", "gpu0"])


def test_nodes_without_times_are_refused() -> None:
    graph = Graph.from_arrays({"gpu": [1.0]}, [])
    devices = Devices((DeviceKind("gpu", 1), DeviceKind("cpu", 1)))
    with pytest.raises(WorkloadError, match="node 0: has no time on cpu0"):
        simulate(graph, devices, {0: "cpu0"}, "inference", 1)


def test_random_chains_never_deadlock() -> None:
    """With replicas of any degrees, and graphs whose passes are partly empty."""
    rng = np.random.default_rng(11)
    for _ in range(40):
        case = random_case(rng, ("replicas",))
        found = chains(case.graph, atoms(case.graph, case.constraints), 2, case.constraints)
        kind = max(case.devices.kinds, key=lambda kind: kind.count)
        if not len(found) or kind.count < 3 or not case.graph.backward.any():
            continue
        split = found[int(rng.integers(len(found)))]
        placement = {node: kind.device(int(i)) for node, i in zip(case.graph.ids, split, strict=True)}
        replicas = {kind.device(int(rng.integers(2))): [kind.device(i) for i in range(2, kind.count)]}
        for schedule in NAMES[:4]:
            assert np.isfinite(
                simulate(case.graph, case.devices, placement, schedule, 7, replicas=replicas).makespan
            )
