"""Time a sweep beside the same solves in a loop written by hand, on processes and on a local cluster of Dask.

The product is 20 workloads of the folder of instances, 5 pools and 2 objectives. The loop over processes is
the ``map`` of a ``ProcessPoolExecutor``, that over a cluster the ``map`` of Dask's ``Client``; both read a
file once a process and keep nothing on disk. The sweep writes its rows. Each side starts its own processes.
Seconds are those of the wall and of the processor, with all processes. Compile all kernels before, with
``partitioner warm-up``.
Exit code: 0; 1 if rows differ or a sweep takes more than 1.2 times the wall seconds of its loop.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from grids import markdown_grid, text_grid

import partitioner as pt
from partitioner.analysis.sweeps.processes import LOCAL, dask_executor
from partitioner.formats.devices_in_place import changed

INSTANCES = Path(__file__).parents[1] / "instances"
HARDEST = ("gnmt_operator", "inceptionv3_operator", "moe_small", "moe_mixtral")
POOLS = (2, 3, 4, 6, 8)
OBJECTIVES = ("throughput", "gpipe")
MOST = 1.2
COLUMNS = [
    "on",
    "tasks",
    "rows",
    "loop, wall s",
    "sweep, wall s",
    "ratio",
    "loop, CPU s",
    "sweep, CPU s",
    "ratio",
]
GOOD, FAILED = 0, 1


class Asked(NamedTuple):
    """A solve: a file of a workload, the number of accelerators, the objective."""

    path: str
    accelerators: int
    objective: str


Found = list[tuple[str, int, str, float, str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="processes of each side (2)")
    parser.add_argument("--workloads", type=int, default=20, metavar="N", help="workloads, at most 20 (20)")
    parser.add_argument(
        "--rounds",
        type=int,
        default=1,
        metavar="N",
        help="runs of each side, every second one with the sweep first (1)",
    )
    parser.add_argument("--on", choices=SIDES, nargs="+", default=list(SIDES), help="where to run (both)")
    parser.add_argument("--markdown", action="store_true", help="write markdown (default: aligned columns)")
    options = parser.parse_args(arguments)
    rows, good = [], True
    for number in range(options.rounds):
        for name in options.on:
            cells, fine = compared(name, files()[: options.workloads], options.processes, number % 2 == 1)
            rows.append(cells)
            good &= fine
            print(*cells, file=sys.stderr, flush=True)
    print((markdown_grid if options.markdown else text_grid)(COLUMNS, rows))
    return GOOD if good else FAILED


def files() -> list[str]:
    """Return the files of the workloads."""
    known = sorted(path for path in INSTANCES.glob("*.json") if path.stem != "index")
    return [str(path) for path in known if not path.stem.startswith(HARDEST)]


Side = Callable[[list[str], int], Found]


def compared(name: str, paths: list[str], processes: int, turned: bool) -> tuple[list[str], bool]:
    """Return the cells of a side, and whether the rows are the same and the sweep is fast enough.

    With `turned` the sweep runs before the loop.
    """
    step = -1 if turned else 1
    runs = [timed(partial(side, paths, processes)) for side in SIDES[name][::step]]
    (first, wall, cpu), (second, wall_swept, cpu_swept) = runs[::step]
    figures = (wall, wall_swept, wall_swept / wall, cpu, cpu_swept, cpu_swept / cpu)
    cells = [name, str(len(first)), "same" if first == second else "differ"]
    cells += [f"{figure:.2f}" for figure in figures]
    return cells, first == second and wall_swept <= MOST * wall


def timed(call: Callable[[], Found]) -> tuple[Found, float, float]:
    """Return what a call returns, its seconds, and those of the processor in all of its processes."""
    began, before = time.perf_counter(), sum(os.times()[:4])
    found = call()
    return found, time.perf_counter() - began, sum(os.times()[:4]) - before


def product(paths: list[str]) -> list[Asked]:
    """Return the solves in the order of a sweep."""
    return [Asked(path, count, objective) for path in paths for count in POOLS for objective in OBJECTIVES]


@lru_cache(1)
def read(path: str) -> pt.Workload:
    """Return the workload in a file."""
    return pt.load(path)


def solved(asked: Asked) -> tuple[str, int, str, float, str]:
    """Solve once, as a loop written by hand does."""
    workload = read(asked.path)
    devices = changed(workload.devices, accelerators=asked.accelerators)
    what = workload.name, len(devices.names), asked.objective
    try:
        plan = pt.solve(workload.graph, devices, asked.objective, workers=1)
    except (pt.InfeasibleError, pt.WorkloadError):
        return *what, 0.0, "infeasible"
    return *what, plan.value, plan.status


def loop_on_processes(paths: list[str], processes: int) -> Found:
    """Return the rows of a loop over processes."""
    with ProcessPoolExecutor(processes, get_context("spawn")) as executor:
        return list(executor.map(solved, product(paths)))


def loop_on_dask(paths: list[str], processes: int) -> Found:
    """Return the rows of a loop over a local cluster."""
    from distributed import Client, LocalCluster

    local = LocalCluster(
        n_workers=processes, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
    )
    with local as cluster, Client(cluster) as client:
        found: Found = client.gather(client.map(solved, product(paths), pure=False))
        return found


def sweep_on_processes(paths: list[str], processes: int) -> Found:
    """Return the rows of a sweep over processes."""
    return swept_rows(paths, processes=processes)


def sweep_on_dask(paths: list[str], processes: int) -> Found:
    """Return the rows of a sweep over a local cluster."""
    with dask_executor(LOCAL, processes) as executor:
        return swept_rows(paths, executor=executor)


def swept_rows(paths: list[str], **how: object) -> Found:
    """Return the rows of a sweep that writes them to a file."""
    pools = [pt.DevicePool(accelerators=count) for count in POOLS]
    with tempfile.TemporaryDirectory() as folder:
        found = pt.sweep(
            paths,
            pools,
            {"objective": OBJECTIVES},
            results=Path(folder) / "rows.jsonl",
            warm_up=False,
            **how,  # type: ignore[arg-type]
        )
    return [(row.workload, row.devices, row.objective, row.value or 0.0, row.status) for row in found.rows]


SIDES: dict[str, tuple[Side, Side]] = {
    "processes": (loop_on_processes, sweep_on_processes),
    "Dask": (loop_on_dask, sweep_on_dask),
}


if __name__ == "__main__":
    sys.exit(main())
