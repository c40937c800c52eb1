"""What is done with a file of each format: it is read, and what was read is used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import partitioner as pt
from partitioner.analysis.sweeps.journal import Journal
from partitioner.analysis.sweeps.result import SweepResult
from partitioner.formats.constraints import load_constraints
from partitioner.formats.devices import load_devices, load_transfers
from partitioner.formats.torch_schedule import load_torch_schedule
from partitioner.schedule import simulate
from trials.broken_files import some_workload


def read_workload(path: Path) -> None:
    """Load and solve in two ways."""
    workload = pt.load(path)
    if len(workload.graph) <= 12:
        pt.solve(workload.graph, workload.devices, time_limit=1.0).summary(80)
        pt.solve(workload.graph, workload.devices, "makespan", method="heft", time_limit=0.3).to_json()


def read_devices(path: Path) -> None:
    """Load devices and transfers, and solve."""
    graph, _ = some_workload()
    devices, transfers = load_devices(path), load_transfers(path)
    if sum(kind.count for kind in devices.kinds) <= 64:
        pt.solve(graph, devices, time_limit=5.0).summary(80)
        given: dict[str, Any] = {} if transfers is None else {"transfers": transfers}
        pt.solve(graph, devices, "makespan", method="heft", time_limit=0.3, **given)


def read_constraints(path: Path) -> None:
    """Load and solve."""
    graph, devices = some_workload()
    pt.solve(graph, devices, constraints=load_constraints(path, graph), time_limit=1.0)


def read_plan(path: Path) -> None:
    """Load as a plan, show, and evaluate as a placement."""
    graph, devices = some_workload()
    plan = pt.load_plan(path)
    plan.summary(80)
    plan.to_json()
    pt.evaluate(graph, devices, pt.load_placement(path, graph, devices))
    simulate(graph, devices, plan, "1f1b", 2)


def read_split(path: Path) -> None:
    """Load as a placement and evaluate."""
    graph, devices = some_workload()
    placement = pt.load_placement(path, graph, devices)
    for objective in ("throughput", "latency", "makespan"):
        pt.evaluate(graph, devices, placement, objective)


def read_timeline(path: Path) -> None:
    """Load and write again."""
    pt.load_timeline(path).to_json()


def read_table(path: Path) -> None:
    """Load and simulate."""
    graph, devices = some_workload()
    placement = pt.solve(graph, devices)
    simulate(graph, devices, placement, load_torch_schedule(path, devices.names[:2]), None)


def read_profile(path: Path) -> None:
    """Load with and without the backward pass and solve."""
    for training in (True, False):
        found = pt.load_pipedream(path, bandwidth=1e6, accelerators=2, training=training, trimmed=training)
        pt.solve(found.graph, found.devices, time_limit=1.0)


KIND = pt.DeviceKind("A100", 2)


def read_journal(path: Path) -> None:
    """Load, show and write in other formats."""
    with closing(Journal(path)) as journal:
        rows = tuple(journal.rows.values())
    result = SweepResult(rows, len(rows), len(rows), 0.0)
    result.summary(80)
    result.to_json()
    for row in rows[:3]:
        result.front(row.workload, row.objective)
    result.save(path.with_name("again.csv"))


def read_metis(path: Path) -> None:
    """Load the folder of all kinds and solve."""
    found = pt.load(path.parents[1], batch=1, degree=1, bandwidth=1e9, devices=pt.Devices((KIND,)))
    pt.solve(found.graph, found.devices, time_limit=1.0)


def read_model(path: Path) -> None:
    """Load a model of ONNX and solve."""
    found = pt.load(path, bandwidth=1e9, accelerators=2, dims={"batch": 2})
    pt.solve(found.graph, found.devices, time_limit=1.0)


READERS: dict[str, Callable[[Path], None]] = {
    "workload": read_workload,
    "devices": read_devices,
    "constraints": read_constraints,
    "plan": read_plan,
    "latency": read_plan,
    "makespan": read_plan,
    "split": read_split,
    "timeline": read_timeline,
    "table": read_table,
    "profile": read_profile,
    "journal": read_journal,
    "metis": read_metis,
    **({} if find_spec("onnx") is None else {"model": read_model}),
}
