"""Calls of every public function with an argument or two that they may not have."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

import partitioner as pt
from partitioner.schedule import simulate
from partitioner.schedule.stash import stash
from tests.formats.test_fuzz import ODD
from trials.broken_files import contents, some_workload

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
QUICK = {"time_limit": 0.3}


class Entry(NamedTuple):
    """A public function, and arguments with which it works."""

    name: str
    call: Callable[..., Any]
    given: Mapping[str, Any]


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
    return pt.solve(digraph, pt.Devices.accelerated(2), **QUICK)  # type: ignore[arg-type]


@cache
def entries() -> list[Entry]:
    """Every public function with sound arguments."""
    graph, devices = some_workload()
    plan = pt.solve(graph, devices)
    columns = {
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
    both = {"graph": graph, "devices": devices}
    asked = {"method": "auto", "split": None, "backend": "auto", "gap": 0.1, "seed": 1, "workers": 1, **QUICK}
    chain = {"replicas": 2, "schedule": "1f1b", "microbatches": 4, "constraints": pt.Constraints(stages=2)}
    of_plan = {"placement": dict(plan.placement)}
    placing = {
        **{
            "transfers": pt.Transfers(1.0),
            "refine": True,
            "grouper": "coplace",
            "fuse": True,
            "imbalance": 0.1,
        },
        **{"sct_threshold": 0.2, "fusion_range": 5, "fusion_memory": 0.5, "uniform": True},
    }
    search = {"memory_budget": 10**6, "step_limit": 10**6, "orders": 3, "granularity": "layer"}
    simple = {"objective": "throughput", "warm_start": dict(plan.placement), "on_progress": None}
    return [
        Entry("solve", pt.solve, {**both, **asked, **simple, **search}),
        Entry(
            "solve, split",
            pt.solve,
            {**both, "split": "free", "contiguous_cpus": True, **QUICK, "workers": 1},
        ),
        Entry("solve, chain", pt.solve, {**both, **chain, **QUICK}),
        Entry("solve, batch", pt.solve, {**both, "objective": "batch", "microbatches": 4, **QUICK}),
        Entry(
            "solve, makespan",
            pt.solve,
            {**both, "objective": "makespan", "method": "m-sct", **placing, **QUICK},
        ),
        Entry("solve, scheduled", pt.solve, {**both, "objective": "makespan", **chain, **QUICK}),
        Entry(
            "solve, latency",
            pt.solve,
            {**both, "objective": "latency", "method": "latency_dp", "subgraphs_per_accelerator": 2, **QUICK},
        ),
        Entry("evaluate", pt.evaluate, {**both, **of_plan, "objective": "throughput", "split": "chain"}),
        Entry(
            "evaluate, pipeline",
            pt.evaluate,
            {**both, **of_plan, "order": list(plan.stages), **chain, "replicas": {}},
        ),
        Entry(
            "evaluate, latency",
            pt.evaluate,
            {
                **{**both, **of_plan, "objective": "latency", "limited_cpus": True},
                **{"subgraphs_per_accelerator": 2, "subgraphs": dict.fromkeys(graph.ids, 0)},
            },
        ),
        Entry(
            "evaluate, makespan",
            pt.evaluate,
            {
                **{**both, **of_plan, "objective": "makespan"},
                **{"transfers": pt.Transfers(1.0), "execution_order": list(graph.ids)},
            },
        ),
        Entry(
            "certify", pt.certify, {**both, "placement": plan, "objective": "throughput", "gap": 0.0, **QUICK}
        ),
        Entry(
            "simulate",
            simulate,
            {
                **both,
                "plan": plan,
                "schedule": "1f1b",
                "microbatches": 3,
                "links": "host",
                "input_share": 0.5,
            },
        ),
        Entry(
            "compare_schedules",
            pt.compare_schedules,
            {**both, "plan": plan, "microbatches": 3, "memory": None},
        ),
        Entry(
            "compare_methods",
            pt.compare_methods,
            {**both, "methods": ["dp", "heft"], "objective": "throughput", "seed": 0, "split": None, **QUICK},
        ),
        Entry("data_parallel", pt.data_parallel, {"graph": graph, "replicas": 2, "gradient_cost": 0.5}),
        Entry(
            "split_operations",
            pt.split_operations,
            {
                **both,
                "dimensions": {2: [pt.Dimension("batch")]},
                "largest_split": 2,
                "split_time": 0.1,
                **QUICK,
            },
        ),
        Entry(
            "stash", stash, {"schedule": "1f1b", "stage": 0, "stages": 3, "microbatches": 4, "replicas": 2}
        ),
        Entry("Graph.from_arrays", graph_of, columns),
        Entry(
            "from_networkx",
            digraph_of,
            {
                "time": {"accelerator": 1.0},
                "size": 1.0,
                "backward": False,
                "color": 1,
                "allowed": ["accelerator"],
            },
        ),
        Entry(
            "DeviceKind",
            devices_of,
            {
                **{"name": "gpu", "count": 2, "memory": 1e4, "pays_communication": True, "times": "cpu"},
                **{"time_factor": 2.0, "transfer_factor": 0.5, "bandwidth": 3.0},
            },
        ),
        Entry(
            "Devices",
            pt.Devices,
            {"kinds": devices.kinds, "communication": "duplex", "levels": (), "synchronisation": "added"},
        ),
        Entry(
            "Devices.accelerated",
            pt.Devices.accelerated,
            {"accelerators": 2, "memory": 1.0, "cpus": 1, "communication": "duplex"},
        ),
        Entry(
            "Level", level_of, {"name": "server", "devices": {"accelerator": 1, "cpu": 1}, "slowdown": 2.0}
        ),
        Entry("Constraints", constrained, dict(contents()["constraints"]) | {"use_all_devices": False}),
        Entry("Transfers", transferred, {"slope": 1.0, "intercept": 0.5, "contention": True}),
        Entry("Placer", placed, {"priority": "upward_rank", "choose": "earliest_finish", "insertion": True}),
        Entry(
            "Dimension", pt.Dimension, {"name": "batch", "divides_input": True, "divides_parameters": False}
        ),
        Entry("Workload", pt.Workload, {**both, "name": "x"}),
        Entry("load", pt.load, {"path": "workload.json", "communication": "duplex"}),
        Entry("load_plan", pt.load_plan, {"path": "plan.json"}),
        Entry("load_timeline", pt.load_timeline, {"path": "timeline.json"}),
        Entry("load_placement", pt.load_placement, {"path": "split.json", **both}),
        Entry(
            "load_pipedream",
            pt.load_pipedream,
            {
                "path": "profile.txt",
                "bandwidth": 1e6,
                "accelerators": 2,
                "memory": 1e9,
                "cpus": 1,
                "cpu_factor": 5.0,
            },
        ),
        Entry("Plan.save", plan.save, {"path": "saved.json"}),
    ]


def some_call(rng: random.Random) -> tuple[Entry, dict[str, Any]]:
    """A public function with arguments of which one or two are odd."""
    entry = rng.choice(entries())
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
