"""How long the methods that place operators one by one take, and how that grows with the graph.

Random graphs of the sizes that Celeritas measures on (`operator_graphs.py`). Every method runs `--repeat`
times on each, after one call on a small graph that compiles or loads its kernels; the table has the medians
of the seconds of the method alone (of m-SCT without its linear program) and of the whole `solve`, and the
slope of the logarithms between the smallest and the largest graph: 1 is linear, 2 quadratic. Methods whose
program is not installed are left out, with a line that says how to get it. Exit code: 0; 2 if a method is
unknown.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from grids import markdown_grid
from operator_graphs import SIZES, devices, operator_graph

import partitioner as pt
from partitioner.methods.catalogue import USERS_OWN
from partitioner.methods.method import Settings
from partitioner.methods.placers.found import Found, PlaceTasks
from partitioner.methods.registry import METHODS
from partitioner.problem.contract import contract
from partitioner.problem.fit import fit
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import OperatorProblem
from partitioner.workload.constraints import NONE
from partitioner.workload.resolved_constraints import demands_of

SMALL = 300
GOOD, BAD_INPUT = 0, 2
Seconds = tuple[float, float]


def placers() -> tuple[str, ...]:
    """The methods that place operators one by one for makespans."""
    return tuple(
        name
        for name, info in METHODS.items()
        if info.places_operators and "makespan" in info.objectives and name != USERS_OWN
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    names = options.methods or placers()
    unknown = [name for name in names if name not in METHODS or "operators" not in METHODS[name].features]
    if unknown:
        print(f"bench_placers: {unknown[0]}: choose from {', '.join(placers())}", file=sys.stderr)
        return BAD_INPUT
    heads = ["method", "of which", *(f"{nodes:,}" for nodes in options.nodes), "slope"]
    rows = list[list[str]]()
    for name in names:
        try:
            rows += measure(name, options)
        except pt.BackendUnavailable as error:
            print(f"bench_placers: {name} is left out: {error}", file=sys.stderr)
    print(markdown_grid(heads, rows))
    return GOOD


def measure(name: str, options: argparse.Namespace) -> list[list[str]]:
    """The two rows of a method: seconds of the placer alone and of the whole call."""
    timed(name, operator_graph(SMALL, options.seed), options)
    ratio = dict(SIZES.values())
    found: list[Seconds] = []
    for nodes in options.nodes:
        graph = operator_graph(nodes, options.seed, ccr=ratio.get(nodes, 50.0))
        runs = [timed(name, graph, options) for _ in range(options.repeat)]
        found.append((statistics.median(a for a, _ in runs), statistics.median(b for _, b in runs)))
    words = ("placer", "whole call")
    return [[name, word, *_cells([each[i] for each in found], options.nodes)] for i, word in enumerate(words)]


def timed(name: str, graph: pt.Graph, options: argparse.Namespace) -> Seconds:
    """Seconds of the placer alone and of the whole call; not numbers if it finds no plan."""
    transfers, machine = pt.Transfers(contention=options.contention), devices(options.devices)
    alone = _placer(name, graph, machine, transfers)
    started = time.perf_counter()
    found = alone()
    placed = time.perf_counter()
    try:
        pt.solve(graph, machine, "makespan", method=name, transfers=transfers)
    except (pt.NoPlanFound, pt.InfeasibleError):
        return math.nan, math.nan
    program = found.statistics.get("lp_seconds", 0.0) if isinstance(found, Found) else 0.0
    return placed - started - program, time.perf_counter() - placed


def _placer(name: str, graph: pt.Graph, machine: pt.Devices, transfers: pt.Transfers) -> Callable[[], object]:
    """The method, without its bound and its timing where it consists of these and a placer."""
    fitted = fit(graph, machine, demands_of(graph, machine, NONE))
    problem = contract(fitted, machine, Goal(Measure.LAST_OPERATOR, "free", transfers=transfers))
    method, settings = METHODS[name].load(), Settings(placing=pt.Placing(transfers=transfers))
    place: PlaceTasks | None = getattr(method, "place", None)
    if place is None or not isinstance(problem, OperatorProblem):
        return partial(method, problem, settings)
    return partial(place, problem.tasks, settings)


def _cells(seconds: Sequence[float], nodes: Sequence[int]) -> list[str]:
    """The seconds and their slope."""
    growth = "-"
    if len(nodes) > 1 and all(map(math.isfinite, (seconds[0], seconds[-1]))):
        growth = f"{math.log(seconds[-1] / seconds[0]) / math.log(nodes[-1] / nodes[0]):.2f}"
    return [*("no plan" if math.isnan(each) else f"{each:.2f}" for each in seconds), growth]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench_placers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("methods", nargs="*", metavar="METHOD", help=f"of {', '.join(placers())} (all)")
    sizes = sorted(nodes for nodes, _ in SIZES.values())
    parser.add_argument("--nodes", type=int, nargs="+", default=sizes, metavar="N", help="of the graphs")
    parser.add_argument("--devices", type=int, default=4, metavar="N", help="(4)")
    parser.add_argument("--contention", action="store_true", help="one transfer at a time on each device")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="timed runs of each (3)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the graphs (0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
