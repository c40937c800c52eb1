"""The instances of a folder of outside benchmarks, each with what is known of its optimum."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import partitioner as pt
from outside_bench.task_files import line_balancing, random_workers, worker_assignment

WORKLOADS = Path("..", "workloads", "branching")  # from the folder of benchmarks
UNIT_TRANSFERS = pt.Transfers(slope=1.0, intercept=0.0)


@dataclass(frozen=True)
class Case:
    """One instance.

    Parameters
    ----------
    table
        The title of the table that it belongs to.
    name
        Its name, unique in its set.
    low, high
        Known bounds of the optimum, equal where it is known; no numbers where nothing is known.
    load
        Reads its graph and its devices.
    arguments
        Further arguments of ``partitioner.solve``.
    """

    table: str
    name: str
    low: float
    high: float
    load: Callable[[], pt.Workload]
    arguments: Mapping[str, Any] = field(default_factory=dict)


def line_cases(folder: Path) -> Iterator[Case]:
    """Yield the instances of SALBP-2, first those of graphs whose ideals were counted to the end."""
    counts = {row["file"]: row["ideals(cap 3e6)"] for row in _rows(folder / "salbp" / "graphs.csv")}
    rows = _rows(folder / "salbp" / "salbp2_optima.csv")
    for row in sorted(rows, key=lambda row: counts[row["file"]].startswith(">")):
        few = not counts[row["file"]].startswith(">")
        stations = int(row["stations"])
        yield Case(
            f"SALBP-2, {'at most' if few else 'more than'} 3 million ideals",
            f"{row['file']} {stations}",
            float(row["c_low"]),
            float(row["c_high"]),
            partial(line_balancing, folder / "salbp" / f"{row['file']}.IN2", stations),
        )


def worker_cases(folder: Path) -> Iterator[Case]:
    """Yield the instances of ALWABP-2: a kind of one device for every worker."""
    for row in _rows(folder / "alwabp" / "instances.csv"):
        yield Case(
            f"ALWABP-2, {row['name']}",
            f"{row['name']} {row['num']}",
            float(row["LB"]),
            float(row["UB"]),
            partial(worker_assignment, folder / "alwabp" / row["name"] / row["num"]),
        )


def random_worker_cases(folder: Path) -> Iterator[Case]:
    """Yield random assignments of 70 or 75 tasks to 10 to 19 workers, whose optima are not known."""
    lines = (("TONGE70", 10), ("TONGE70", 17), ("WEE-MAG", 11), ("WEE-MAG", 19))
    for seed, ((name, workers), unlike, cannot) in enumerate(product(lines, (False, True), (0.1, 0.2))):
        yield Case(
            f"Random workers, {name}",
            f"{name} {workers} {'1..t' if not unlike else 't..3t'} {cannot:.0%}",
            math.nan,
            math.nan,
            partial(random_workers, folder / "salbp" / f"{name}.IN2", workers, unlike, cannot, seed),
        )


def task_graph_cases(folder: Path) -> Iterator[Case]:
    """Yield the task graphs with transfers, to be scheduled on equal processors."""
    lines = (folder / "makespan" / "task_graphs.jsonl").read_text(encoding="utf-8").splitlines()
    for record in map(json.loads, filter(None, lines)):
        length = float(record["length"])
        arguments = {"objective": "makespan", "transfers": UNIT_TRANSFERS}
        load = partial(_task_graph, record)
        yield Case("Task graphs, makespan", record["name"], length, length, load, arguments)


def branching_cases(folder: Path) -> Iterator[Case]:
    """Yield the networks with wide branchings, whose optima are not known."""
    for file in sorted((folder / WORKLOADS).glob("*.json")):
        yield Case("Wide branchings", file.stem, math.nan, math.nan, partial(pt.load, file))


SETS = {
    "salbp": line_cases,
    "alwabp": worker_cases,
    "workers": random_worker_cases,
    "makespan": task_graph_cases,
    "branching": branching_cases,
}


def _task_graph(record: Mapping[str, Any]) -> pt.Workload:
    edges = [(start, end) for start, end, _ in record["edges"]]
    cost = [float(cost) for *_, cost in record["edges"]]
    times = {"accelerator": [float(weight) for weight in record["weights"]]}
    return pt.Workload(pt.Graph.from_arrays(times, edges, cost), pt.Devices.accelerated(record["processors"]))


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))
