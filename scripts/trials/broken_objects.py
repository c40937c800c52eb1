"""Calls of every public function with an argument or two that they may not have."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import partitioner as pt
from tests.formats.test_fuzz import ODD
from trials.broken_files import some_workload
from trials.broken_verbs import QUICK, Entry, verbs

STRANGE: tuple[Any, ...] = (
    *(object(), b"x", float("nan"), float("inf"), -float("inf"), 2**31, 10**11, 1e-300, 1e300, set(), len),
    *(
        Path(),
        np.array([]),
        np.array([[1.0, float("nan")]]),
        np.float64(3),
        (1, 2),
        "no",
        {1: 2},
        "a" * 10**5,
    ),
    *(
        range(3),
        iter([1, 2]),
        Exception,
        type,
        1j,
        np.int64(2),
        np.bool_(True),
        [None],
        {"a": None},
        "\n",
        -(2**63),
    ),
)


COLUMNS: dict[str, Any] = {
    "time": {"accelerator": [1.0, 2.0, 3.0], "cpu": [2.0, 4.0, 6.0]},
    "edges": [(0, 1), (1, 2)],
    "cost": [0.5, 0.25],
    "ids": [0, 1, 2],
    "size": [1.0, 2.0, 3.0],
    "backward": [False, False, True],
    "allowed": {"cpu": [True, True, False]},
    "color": [1, None, 1],
    "layer": ["a", "a", None],
    "names": ["x", "y", "z"],
    "parameters": [1.0, 0.0, 2.0],
    "activations": 1.0,
}
ATTRIBUTES: dict[str, Any] = {
    **{"time": {"accelerator": 1.0}, "size": 1.0, "backward": False, "color": 1},
    **{"layer": 2, "allowed": ["accelerator"], "name": "x", "parameters": 1.0},
}
DEMANDS: dict[str, Any] = {
    **{"pin": {1: "accelerator0", "layer 4": "accelerator"}, "forbid": {2: ["cpu"]}, "together": [[3, 2]]},
    **{"nodes_per_stage": (1, None), "layers_per_stage": (None, 5), "stages": 2, "use_all_devices": False},
}
KIND: dict[str, Any] = {
    **{"name": "gpu", "count": 2, "memory": 1e4, "pays_communication": True, "times": "cpu"},
    **{"time_factor": 2.0, "transfer_factor": 0.5, "bandwidth": 3.0},
}


def devices_of(**fields: Any) -> pt.Plan:
    """Solve with a kind of these fields."""
    graph, _ = some_workload()
    return pt.solve(graph, pt.Devices((pt.DeviceKind(**fields),)), **QUICK)


def level_of(**fields: Any) -> pt.Plan:
    """Solve with a level of these fields."""
    graph, devices = some_workload()
    return pt.solve(graph, pt.Devices(devices.kinds, levels=(pt.Level(**fields),)), **QUICK)


def constrained(**fields: Any) -> pt.Plan:
    """Solve under constraints."""
    return pt.solve(*some_workload(), constraints=pt.Constraints(**fields), **QUICK)


def transferred(**fields: Any) -> pt.Plan:
    """Place operators with transfers."""
    transfers = pt.Transfers(**fields)
    return pt.solve(*some_workload(), "makespan", method="heft", transfers=transfers, **QUICK)


def placed(**fields: Any) -> pt.Plan:
    """Place operators by a list scheduler of one's own."""
    return pt.solve(*some_workload(), "makespan", method="list", placer=pt.Placer(**fields), **QUICK)


def graph_of(**columns: Any) -> pt.Plan:
    """Make a graph from arrays and solve."""
    graph = pt.Graph.from_arrays(**columns)
    return pt.solve(graph, pt.Devices.accelerated(2, cpus=1), **QUICK)


def digraph_of(**attributes: Any) -> pt.Plan:
    """Make a graph from a node's attributes in networkx and solve."""
    digraph = nx.DiGraph([("a", "b")])
    digraph.add_nodes_from("ab", **attributes)
    return pt.solve(digraph, pt.Devices.accelerated(2), **QUICK)


@cache
def nouns() -> list[Entry]:
    """Everything that is made or read, with sound arguments."""
    graph, devices = some_workload()
    both = {"graph": graph, "devices": devices}

    def entry(title: str, call: Callable[..., Any], /, **given: Any) -> Entry:
        return Entry(title, call, given)

    profile = {"bandwidth": 1e6, "accelerators": 2, "memory": 1e9, "cpus": 1, "cpu_factor": 5.0}
    return [
        Entry("Graph.from_arrays", graph_of, COLUMNS),
        Entry("from_networkx", digraph_of, ATTRIBUTES),
        Entry("DeviceKind", devices_of, KIND),
        Entry("Constraints", constrained, DEMANDS),
        entry("Devices", pt.Devices, kinds=devices.kinds, communication="duplex", levels=()),
        entry("Devices.accelerated", pt.Devices.accelerated, accelerators=2, memory=1.0, cpus=1),
        entry("Level", level_of, name="server", devices={"accelerator": 1, "cpu": 1}, slowdown=2.0),
        entry("Transfers", transferred, slope=1.0, intercept=0.5, contention=True),
        entry("Placer", placed, priority="upward_rank", choose="earliest_finish", insertion=True),
        entry("Dimension", pt.Dimension, name="batch", divides_input=True, divides_parameters=False),
        entry("Workload", pt.Workload, **both, name="x"),
        entry("load", pt.load, path="workload.json", communication="duplex"),
        entry("load_plan", pt.load_plan, path="plan.json"),
        entry("load_timeline", pt.load_timeline, path="timeline.json"),
        entry("load_placement", pt.load_placement, path="split.json", **both),
        entry("load_pipedream", pt.load_pipedream, path="profile.txt", **profile),
    ]


def some_call(rng: random.Random) -> tuple[Entry, dict[str, Any]]:
    """A public function with arguments of which one or two are odd."""
    entry = rng.choice([*verbs(), *nouns()])
    given = dict(entry.given)
    for name in rng.sample(sorted(given), rng.choice((1, 1, 1, min(2, len(given))))):
        given[name] = _odd(given[name], rng)
    return entry, given


def _odd(sound: Any, rng: random.Random) -> Any:
    """Something else, or the same with one thing in it changed."""
    if isinstance(sound, list | dict) and sound and rng.random() < 0.6:
        changed = copy.copy(sound)
        key = rng.choice(list(changed) if isinstance(changed, dict) else range(len(changed)))
        changed[key] = _odd(changed[key], rng)
        return changed
    return rng.choice(STRANGE if rng.random() < 0.5 else ODD)
