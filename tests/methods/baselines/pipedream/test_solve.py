"""The method predicts what the planner does for the same layers, and its plans stand before the evaluator."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from architectures.plans import planner_layers

from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    OptionError,
    Plan,
    evaluate,
    load_pipedream,
    solve,
)
from partitioner.base.errors import WorkloadError
from partitioner.methods.baselines.pipedream.layers import Layers
from partitioner.methods.baselines.pipedream.plan import plan
from partitioner.workload.graph import Floats
from partitioner.workload.levels import Level
from tests.methods.baselines.pipedream.random_layers import chain, residual

SOUND: dict[str, Any] = {
    "time": [1.0, 2.0],
    "activation": [3.0, 4.0],
    "parameters": [0.0, 0.0],
    "edges": [(0, 1)],
}


def test_sound_columns_are_kept() -> None:
    layers = Layers(**SOUND)
    assert layers.time.tolist() == [1.0, 2.0] and layers.edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"time": []}, "at least one layer"),
        ({"activation": [3.0]}, r"activation = shape \(1,\): must have shape \(2,\)"),
        ({"parameters": [0.0, -1.0]}, "layer 1: parameters = -1.0"),
        ({"time": [float("inf"), 1.0]}, "layer 0: time = inf"),
        ({"edges": [(0, 2)]}, r"edges = \[0, 2\]: must be from 0 to 1"),
        ({"edges": [(0, 1), (1, 0)]}, "have a cycle"),
    ],
)
def test_broken_columns_are_named(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(WorkloadError, match=rule):
        Layers(**(SOUND | change))


PROFILES = sorted((Path(__file__).parents[4] / "instances" / "profiles").glob("*.txt"))
PCI_EXPRESS, MS_PER_SECOND, SLOWDOWN = 12e9, 1e3, 8.0


def training_graph(layers: Layers, bandwidth: float) -> Graph:
    """A forward and a backward node a layer, as profiles are read; a third of the time is forward."""
    n = len(layers)
    time, none = layers.time.tolist(), [0.0] * n
    edges = [(u, v) for u, v in layers.edges.tolist()]
    cost = [float(layers.activation[u]) / bandwidth for u, _ in edges]
    return Graph.from_arrays(
        {"gpu": [t / 3 for t in time] + [t * 2 / 3 for t in time]},
        edges + [(v + n, u + n) for u, v in edges],
        cost * 2,
        backward=[False] * n + [True] * n,
        color=[*range(n)] * 2,
        parameters=layers.parameters.tolist() + none,
        workspace=1.0,
    )


def read_activations(layers: Layers) -> Floats:
    """The activations that some layer reads."""
    return np.where(np.isin(np.arange(len(layers)), layers.edges[:, 0]), layers.activation, 0.0)


def wired(groups: list[int], bandwidth: float, **options: Any) -> Devices:
    """Devices of one kind; `groups` says how many of the level below are in a group, all of them last."""
    sizes = [math.prod(groups[: i + 1]) for i in range(len(groups))]
    levels = tuple(Level(f"level{i}", {"gpu": s}, SLOWDOWN ** (i + 1)) for i, s in enumerate(sizes[:-1]))
    return Devices((DeviceKind("gpu", sizes[-1], bandwidth=bandwidth),), levels=levels, **options)


def machines(groups: list[int], bandwidth: float) -> list[tuple[int, float]]:
    """The same as the planner is told it."""
    return [(group, bandwidth / SLOWDOWN**i) for i, group in enumerate(groups)]


def check(graph: Graph, devices: Devices, found: Plan) -> None:
    """The evaluator confirms the value from the plan's own words, and no rule is broken."""
    copies: dict[str, list[str]] = {}
    for load in found.devices:
        if load.replica_of:
            copies.setdefault(load.replica_of, []).append(load.name)
    again = evaluate(graph, devices, found.placement, replicas=copies, order=found.stages)
    assert again.feasible and again.value == found.value
    assert found.bound <= found.value


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("groups", [[8], [4, 2]], ids=["flat", "two levels"])
@pytest.mark.parametrize("replicas", [1, 8])
def test_profiles_are_planned_as_the_planner_does(path: Path, groups: list[int], replicas: int) -> None:
    workload = load_pipedream(path, bandwidth=PCI_EXPRESS, accelerators=8, trimmed=True)
    kind = replace(workload.devices.kinds[0], name="gpu", times="accelerator")
    devices = replace(wired(groups, 1.0), kinds=(kind,))
    found = solve(workload.graph, devices, method="pipedream", replicas=replicas)
    expected = plan(planner_layers(path), machines(groups, PCI_EXPRESS), straight=replicas == 1)
    assert found.statistics["predicted"] == pytest.approx(expected.time * MS_PER_SECOND, rel=1e-9)
    assert found.statistics["states"] == expected.states
    check(workload.graph, devices, found)


@pytest.mark.parametrize("count", [30, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("groups", [[1], [4], [2, 2], [2, 2, 2]], ids=str)
def test_random_graphs_are_planned_as_the_planner_does(groups: list[int], count: int) -> None:
    """Straight and replicated, in every model of communication; with idle devices only where it must.

    Every layer takes time, so that none is merged; in a graph results that nobody reads have no cost.
    """
    rng, idle, replicated = random.Random(len(groups)), 0, 0
    for case in range(count):
        layers, bandwidth = (chain, residual)[case % 2](rng, rng.randint(2, 7)), rng.choice((0.5, 10.0, 99.0))
        layers = replace(layers, time=layers.time + 1, activation=read_activations(layers))
        models = {"communication": rng.choice(("sequential", "overlapped", "duplex"))}
        models["synchronisation"] = rng.choice(("added", "overlapped"))
        graph, devices = training_graph(layers, bandwidth), wired(groups, bandwidth, **models)
        replicas = rng.choice((1, math.prod(groups)))
        found = solve(graph, devices, method="pipedream", replicas=replicas)
        asked: dict[str, Any] = {"straight": replicas == 1}
        most = [min(groups[0], len(layers))] if replicas == len(groups) == 1 else groups
        try:
            expected = plan(layers, machines(most, bandwidth), **asked)
        except InfeasibleError:
            expected = plan(layers, machines(most, bandwidth), fewer_machines=True, **asked)
            idle += len(found.notes) == 1 and "idle" in found.notes[0]
        assert found.statistics["predicted"] == pytest.approx(expected.time, rel=1e-9), case
        check(graph, devices, found)
        replicated += any(load.replica_of for load in found.devices)
    assert (idle > 0) == (len(groups) > 1) and (replicated > count / 15) == (groups != [1])


@pytest.mark.parametrize("count", [12, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("groups", "replicas"), [([4], 4), ([4], 1), ([2, 2], 1)])
def test_our_optimum_is_never_worse(groups: list[int], replicas: int, count: int) -> None:
    """In the model that all plans are judged by, where we search every layout that PipeDream may choose."""
    rng, better = random.Random(8), 0
    for case in range(count):
        layers, bandwidth = (chain, residual)[case % 2](rng, rng.randint(2, 6)), rng.choice((0.5, 10.0))
        layers = replace(layers, time=layers.time + 1)
        graph, devices = training_graph(layers, bandwidth), wired(groups, bandwidth)
        theirs, ours = (
            solve(graph, devices, method=method, replicas=replicas) for method in ("pipedream", "pipeline")
        )
        assert ours.status == "optimal"
        assert theirs.bound <= ours.value * (1 + 1e-9) and ours.value <= theirs.value * (1 + 1e-9)
        better += ours.value < 0.9 * theirs.value
    assert better > count / 6


def test_replicas_over_groups_hold_the_same_devices_of_each() -> None:
    """In a group of two a stage a device takes 40, and 24 with a second group, which exchanges little."""
    layers = Layers([40.0, 40.0], [10.0, 10.0], [1.0, 1.0], [(0, 1)])  # type: ignore[arg-type]
    found = solve(training_graph(layers, 2.0), wired([2, 2], 2.0), method="pipedream", replicas=4)
    groups = {load.name: load.replica_of for load in found.devices}
    assert found.statistics["predicted"] == 24.0
    assert found.stages == ("gpu0", "gpu1")
    assert groups == {"gpu0": None, "gpu1": None, "gpu2": "gpu0", "gpu3": "gpu1"}


def test_two_sources_are_planned_over_all_cuts() -> None:
    """Steps from a alone reach no state with b in it, as nothing of a leads there."""
    graph = Graph.from_arrays({"gpu": [3.0, 3.0]}, ids="ab")
    found = solve(graph, wired([2], 1.0), method="pipedream")
    assert found.value == found.statistics["predicted"] == 3.0
    assert "all cuts" in found.notes[0]


def test_other_kinds_stay_idle() -> None:
    graph = Graph.from_arrays({"gpu": [3.0, 3.0], "cpu": [1.0, 1.0]}, [(0, 1)])
    devices = Devices((DeviceKind("cpu", 1, pays_communication=False), DeviceKind("gpu", 2)))
    found = solve(graph, devices, method="pipedream")
    assert found.stages == ("gpu0", "gpu1") and "one kind of device" in found.notes[0]
    alone = solve(graph, Devices((devices.kinds[0],)), method="pipedream")
    assert (alone.value, alone.stages, alone.notes) == (2.0, ("cpu0",), ())


def test_a_node_that_may_not_run_is_named() -> None:
    graph = Graph.from_arrays(
        {"gpu": [3.0, 3.0], "cpu": [1.0, 1.0]}, [(0, 1)], allowed={"gpu": [True, False]}
    )
    devices = Devices((DeviceKind("gpu", 2), DeviceKind("cpu", 1, pays_communication=False)))
    with pytest.raises(OptionError, match="one kind of device, which may not run node 1 in the order"):
        solve(graph, devices, method="pipedream")


def test_limits_that_it_does_not_know_leave_no_plan() -> None:
    """Its plan is one stage on all devices; or of two stages one with two nodes."""
    graph = Graph.from_arrays({"gpu": [8.0, 1.0, 1.0]}, [(0, 1), (1, 2)], size=4.0)
    with pytest.raises(NoPlanFound, match="stage on 4 devices, more than the replicas allowed"):
        solve(graph, wired([4], 1e9), method="pipedream", replicas=2)
    devices = Devices((DeviceKind("gpu", 2, memory=7.0), DeviceKind("cpu", 1, times="gpu")))
    with pytest.raises(NoPlanFound, match="puts 8 on a device with a memory of 7"):
        solve(graph, devices, method="pipedream")


def test_where_the_planner_ends_there_is_no_plan() -> None:
    """13 independent layers can be cut in 8,191 ways; one layer cannot be two stages."""
    wide = Graph.from_arrays({"gpu": [1.0] * 13})
    with pytest.raises(NoPlanFound, match="cut at more than 5,000 places"):
        solve(wide, wired([2], 1.0), method="pipedream")
    alone = Graph.from_arrays({"gpu": [1.0]})
    with pytest.raises(NoPlanFound, match="finds no pipeline over these devices"):
        solve(alone, wired([2, 2], 1.0), method="pipedream")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"schedule": "1f1b"}, "schedules mean nothing to method pipedream"),
        ({"objective": "latency", "split": "chain"}, "objective 'latency' is not available"),
        ({"split": "free"}, "split 'free' is not available"),
    ],
)
def test_what_it_cannot_do_is_refused(options: dict[str, Any], text: str) -> None:
    graph = Graph.from_arrays({"gpu": [3.0, 3.0]}, [(0, 1)])
    with pytest.raises(OptionError, match=text):
        solve(graph, wired([2], 1.0), method="pipedream", **options)
