"""Which placers a portfolio needs: on how many graphs each is the best one, and the only one.

The makespans of all placers, before local search, on workload files (all their devices, accelerators only,
and with contention) and on random graphs of operators (`operator_graphs.py`, with and without contention).
`only` counts the graphs on which every other placer is worse; the last two columns say by how much the next
best one is then, in per cent. Exit code: 0.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from grids import markdown_grid
from operator_graphs import devices, operator_graph

import partitioner as pt
from partitioner.methods.catalogue import PLACERS, USERS_OWN

NOT_ALONE = ("portfolio", USERS_OWN)
NAMES = tuple(info.name for info in PLACERS if info.name not in NOT_ALONE)
RANDOM = ((300, 5.0, 4), (300, 50.0, 4), (1000, 10.0, 8), (1000, 50.0, 4), (3000, 33.0, 4))
EQUAL = 1 + 1e-9
CONTENTION = pt.Transfers(contention=True)
Asked = tuple[pt.Graph, pt.Devices, pt.Transfers]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="bench_portfolio", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="workloads")
    parser.add_argument("--seeds", type=int, default=8, metavar="N", help="random graphs of each size (8)")
    options = parser.parse_args(arguments)
    values = [found for asked in cases(options.files, options.seeds) if (found := makespans(*asked))]
    print(f"{len(values)} graphs")
    print(markdown_grid(["placer", "best", "only", "median %", "most %"], [row(n, values) for n in NAMES]))
    return 0


def cases(files: Sequence[Path], seeds: int) -> Iterator[Asked]:
    """Yield what each placer is asked."""
    for file in files:
        workload = pt.load(file)
        machine = workload.devices
        if machine is None:
            continue
        yield workload.graph, machine, pt.Transfers()
        yield workload.graph, machine, CONTENTION
        kinds = tuple(kind for kind in machine.kinds if kind.name != "cpu")
        if len(kinds) < len(machine.kinds):
            yield workload.graph, replace(machine, kinds=kinds), pt.Transfers()
    for seed in range(seeds):
        for nodes, ccr, count in RANDOM:
            graph = operator_graph(nodes, seed, ccr=ccr)
            yield from ((graph, devices(count), transfers) for transfers in (pt.Transfers(), CONTENTION))


def makespans(graph: pt.Graph, machine: pt.Devices, transfers: pt.Transfers) -> dict[str, float]:
    """The makespan by each placer that finds a placement; none if the graph has no order of its passes."""
    found = {}
    for name in NAMES:
        try:
            found[name] = pt.solve(graph, machine, "makespan", method=name, transfers=transfers).value
        except pt.NoPlanFound:
            continue
        except (pt.InfeasibleError, pt.WorkloadError):
            return {}
    return found


def row(name: str, values: Sequence[dict[str, float]]) -> list[str]:
    """The row of a placer: where it is the best one, the only best one, and how far ahead it is there."""
    best = [found for found in values if found.get(name, math.inf) <= min(found.values()) * EQUAL]
    rest = [min((value for other, value in each.items() if other != name), default=math.inf) for each in best]
    ahead = [100 * (other / each[name] - 1) for each, other in zip(best, rest, strict=True)]
    only = [share for share in ahead if share > 1e-7]
    shares = [f"{statistics.median(only):.1f}", f"{max(only):.1f}"] if only else ["-", "-"]
    return [name, str(len(best)), str(len(only)), *shares]


if __name__ == "__main__":
    sys.exit(main())
