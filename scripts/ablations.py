"""What each part of the methods wins: every case without one of the parts at a time.

A case is solved with all parts under a limit of seconds, and again without each part that was called, in the
same process and with kernels compiled. A part wins where without it the value is worse, the bound is lower,
or the run takes at least three times as long. The table has a row for each part. The searches of method
``dp`` have a script of their own, ``ladder_rungs.py``.

Exit code: 0; 2 a file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from bench_pipelines import two_servers
from grids import markdown_grid
from ladder_rungs import Run, lost
from outside_bench.cases import line_cases, worker_cases

import partitioner as pt
from partitioner.methods.dp.many_kinds_prices import EFFORT as PRICES
from partitioner.methods.ip.descent import EFFORT as DESCENT
from partitioner.methods.ip.descent import Descent
from partitioner.methods.pipeline_bound.paths import EFFORT as FILL_DRAIN
from partitioner.methods.solvers.backends.backend import Capability
from partitioner.methods.solvers.portfolio import Slot, slots_of
from partitioner.methods.virtual_stages.bound import EFFORT as PATH_BOUNDS
from partitioner.methods.virtual_stages.bound_walk import EFFORT as WALK
from partitioner.problem.arrays import Bools, Ints
from tests.random_workloads import random_workload

BAD_INPUT = 2
WARM = 5.0  # seconds, at most, of the run that compiles the kernels
METHODS = "partitioner.methods."
Call = Callable[..., Any]


@dataclass(frozen=True)
class Part:
    """A part of the methods, and the calls that it is.

    Parameters
    ----------
    name
        What it does.
    calls
        What each call returns instead where the part is left out: by module, below ``partitioner.methods``,
        and name in it.
    """

    name: str
    calls: Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """Cases that are solved in the same ways, and the parts that may serve them."""

    parts: tuple[Part, ...]
    ways: tuple[Mapping[str, Any], ...]
    devices: Callable[[pt.Devices], pt.Devices] = lambda devices: devices


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def _value(value: Any) -> Call:
    return lambda *_, **__: value


def _empty(*_: Any, **__: Any) -> Iterator[Any]:
    return iter(())


def _argument(place: int) -> Call:
    return lambda *given, **__: given[place]


def _fill_drain(**fields: Any) -> dict[str, Any]:
    effort = replace(FILL_DRAIN, **fields)
    return {"pipeline_bound.fill_drain:EFFORT": effort, "pipeline_bound.paths:EFFORT": effort}


def _waiting(descent: Descent) -> None:
    """Wait where the local search would run."""
    while not (descent.leaving or descent.late):
        time.sleep(DESCENT.slice)


def _none_too_heavy(_: Any, __: Any, highs: Ints, *___: Any) -> Bools:
    return np.zeros(len(highs), dtype=bool)


def _proving(backends: Sequence[Capability], workers: int, seed: int, **_: Any) -> list[Slot]:
    """Return slots of solvers that prove only."""
    return slots_of(backends, workers, seed, searches=False)


CHAINS = (
    Part("bound by cuts", {"dp.anytime:holds": _value(False)}),
    Part("annealing", {"dp.improvement:ChainAnnealing.run": _nothing}),
    Part("moves of borders", {"dp.improvement:BorderSearch.run": _nothing}),
)
SPLITS = (
    Part("least part", {"ip.solve:least_part": _argument(2)}),
    Part("bound of cyclic splits", {"ip.solve:least_cyclic": _value(0.0)}),
    Part("covering bound", {"bounds.cover:Covering.rise": _nothing}),
    Part("local search", {"ip.descent:Descent._run": _waiting}),
    Part("solvers", {"ip.solve:_slots": _value([])}),
    Part("neighbourhoods", {"ip.solve:slots_of": _proving}),
    Part("first chain", {"ip.solve:find_start": _nothing}),
)
LATENCY = (
    Part("serial bounds", {"latency.serial_bound:_serial_bounds": _empty}),
    Part("greedy split", {"latency.solve:fill": _nothing}),
    Part("sequences of blocks", {"latency.sequence.method:SequenceSearch.run": _nothing}),
    Part("beam search", {"latency.sequence.method:SequenceSearch._overlap": _value(True)}),
    Part("sequences around the best", {"latency.sequence.method:SequenceSearch._zoom": _nothing}),
    Part("local search", {"latency.search:LatencySearch.run": _nothing}),
    Part("solvers", {"latency.solve:_seconds_to_state": _value(np.inf)}),
)
STAGES = (
    Part("pairs of cuts", {"virtual_stages.search:_by_pairs": _argument(2)}),
    Part("loads of devices", {"virtual_stages.search:_by_loads": _argument(2)}),
    Part("all plans", {"virtual_stages.search:_completely": _argument(2)}),
    Part("moves of borders", {"virtual_stages.search:improved": _argument(1)}),
    Part("random moves", {"virtual_stages.search:shaken": _argument(1)}),
    Part("least sum of loads", {"virtual_stages.search:_least_sum": _value(-np.inf)}),
)
PATHS = (
    Part("bound by paths", {"virtual_stages.path_bounds:PathBounds.narrow": _empty}),
    Part("classes of cuts", {"virtual_stages.path_bounds:EFFORT": replace(PATH_BOUNDS, light=())}),
    Part("bound by a walk over chains", {"virtual_stages.bound:WALK": replace(WALK, first=0, steps=0)}),
    Part("moves of borders", {"virtual_stages.borders:BorderDescent.local_optima": _empty}),
    Part("annealing", {"virtual_stages.annealing:StageAnnealing.series": _empty}),
)
PIPELINES = (
    Part("fill and drain", {"pipeline_bound.fill_drain:FillDrainModel.searches": _empty}),
    Part("several pipelines of a state", _fill_drain(slots=(1,))),
    Part("passes in detail", _fill_drain(most_detail=0)),
    Part("pipelines of heavy supernodes", _fill_drain(light=())),
    Part("stages in series", {"pipeline_bound.series:series_bound": _value(0.0)}),
    Part("neighbours", {"virtual_stages.borders:boundary_moves": _empty}),
)
OPERATORS = (
    Part("local search", {"placers.plan_value:refined": _argument(1)}),
    Part("exact search", {"exact_makespan.both_ways:SearchBothWays.run": _nothing}),
)
CHAIN = {"split": "chain"}
KINDS = (
    Part("prices by sets of kinds", {"dp.many_kinds_prices:EFFORT": replace(PRICES, most_entries=0)}),
    Part("exchange of kinds", {"dp.many_kinds:ManyKindsSearch._exchange": _nothing}),
    Part("covering bound", {"dp.many_kinds:ManyKindsSearch.cover": _nothing}),
    Part("star bound", {"dp.exact:star_bound": lambda _, relaxation: relaxation.bound}),
    Part("shares of devices", {"dp.anytime:device_shares": lambda problem, _: np.zeros((2, problem.n))}),
    *CHAINS,
)
LEVELS = (
    Part("weights of segments", {"dp.levels_weights:Weights.too_heavy": _none_too_heavy}),
    Part("weights of transfers", {"dp.levels_weights:Weights._transfer_weight": _value(0.0)}),
    Part("bounds of what is left", {"dp.levels:Remainders": _nothing}),
    Part("looking ahead", {"dp.levels:looks_ahead": _value(False)}),
    Part("last groups first", {"dp.levels:Chain._close": _empty}),
    Part("any devices", {"dp.pipeline_links:_best_on_any_devices": _argument(2)}),
)


def _four_by_two(devices: pt.Devices) -> pt.Devices:
    """Return eight devices in four servers of two, with links between them that are 4 times slower."""
    kind = replace(max(devices.kinds, key=lambda kind: kind.count), count=8)
    return replace(devices, kinds=(kind,), levels=(pt.Level("server", {kind.name: 2}, 4.0),))


def _racks(devices: pt.Devices) -> pt.Devices:
    """Return these in two racks, with links between them that are 16 times slower."""
    servers = _four_by_two(devices)
    rack = pt.Level("rack", {servers.kinds[0].name: 4}, 16.0)
    return replace(servers, levels=(*servers.levels, rack))


FAMILIES = {
    "kinds": Family(KINDS, ({"split": "chain", "method": "dp"},)),
    "servers": Family(LEVELS, (CHAIN, CHAIN | {"replicas": 4}), lambda devices: two_servers(devices)[0]),
    "small servers": Family(LEVELS, (CHAIN, CHAIN | {"replicas": 4}), _four_by_two),
    "racks": Family(LEVELS, (CHAIN, CHAIN | {"replicas": 4}), _racks),
    "chains": Family(CHAINS, ({"split": "chain", "method": "dp"},)),
    "convex": Family(SPLITS, ({"split": "convex"},)),
    "free": Family(SPLITS, ({"split": "free"},)),
    "latency": Family(LATENCY, ({"objective": "latency"},)),
    "pairs": Family(LATENCY, ({"objective": "latency", "subgraphs_per_accelerator": 2},)),
    "stages": Family(
        STAGES,
        tuple(
            {"objective": "throughput", "schedule": name, "microbatches": 8}
            for name in ("interleaved_1f1b", "zbv")
        ),
    ),
    "rounds": Family(
        STAGES,
        tuple(
            {
                "objective": "throughput",
                "schedule": "interleaved_1f1b",
                "virtual_stages": count,
                "microbatches": 8,
            }
            for count in (3, 4)
        ),
    ),
    "paths": Family(
        PATHS, tuple({"schedule": name, "microbatches": 8} for name in ("interleaved_1f1b", "zbv"))
    ),
    "pipelines": Family(
        PIPELINES, tuple({"schedule": name, "microbatches": 8} for name in ("1f1b", "gpipe"))
    ),
    "operators": Family(OPERATORS, ({"objective": "makespan"},)),
}


def _found(place: str) -> tuple[Any, str]:
    """Return the module or class that a call is an attribute of, and its name."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    return reduce(getattr, owners, import_module(METHODS + module)), name


@contextmanager
def patched(parts: Sequence[Part], without: str, called: set[str]) -> Iterator[None]:
    """Leave a part out, and note the others: when they are called, or at once if they are numbers."""

    def noting(name: str, usual: Call) -> Call:
        def call(*given: Any, **named: Any) -> Any:
            called.add(name)
            return usual(*given, **named)

        return call

    with ExitStack() as stack:
        for part in parts:
            for place, other in part.calls.items():
                owner, name = _found(place)
                usual = getattr(owner, name)
                if part.name == without:
                    new = other
                elif callable(usual):
                    new = noting(part.name, usual)
                else:  # a record of numbers may be read at any time
                    called.add(part.name)
                    continue
                stack.enter_context(patch.object(owner, name, new))
        yield


def run(
    workload: pt.Workload, family: Family, way: Mapping[str, Any], limit: float, without: str = ""
) -> Run:
    """Solve a workload in one way without one of the parts."""
    called: set[str] = set()
    began = time.perf_counter()
    with patched(family.parts, without, called):
        try:
            plan = pt.solve(workload.graph, family.devices(workload.devices), time_limit=limit, **way)
            value, bound = plan.value, plan.bound
        except pt.NoPlanFound:
            value, bound = np.inf, 0.0
    return Run(value, bound, time.perf_counter() - began, tuple(sorted(called)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    family = FAMILIES[options.family]
    try:
        workloads = dict(_workloads(options))
    except (OSError, pt.PartitionerError) as error:
        print(f"ablations: {error}", file=sys.stderr)
        return BAD_INPUT
    parts = [part.name for part in family.parts]
    tried: dict[str, int] = dict.fromkeys(parts, 0)
    wins: dict[str, list[str]] = {name: [] for name in parts}
    for name, workload in workloads.items():
        for way in family.ways:
            label = f"{name} {way.get('schedule', '')} {way.get('virtual_stages', '')}".strip()
            try:
                run(workload, family, way, min(options.limit, WARM))  # compiles the kernels
            except pt.PartitionerError:  # there is no plan
                continue
            whole = run(workload, family, way, options.limit)
            print(f"{label}: {whole}", file=sys.stderr, flush=True)
            for part in parts:
                if part not in whole.tried or (options.parts and part not in options.parts):
                    continue
                tried[part] += 1
                loss = lost(whole, run(workload, family, way, options.limit, part))
                wins[part] += [f"{label}: {loss}"] if loss else []
                print(f"  {part} | {loss}", file=sys.stderr, flush=True)
    rows = [[name, str(tried[name]), str(len(wins[name])), "; ".join(wins[name])] for name in parts]
    print(markdown_grid(["part", "called", "wins", "without it"], rows))
    return 0


def _workloads(options: argparse.Namespace) -> Iterator[tuple[str, pt.Workload]]:
    for file in options.workloads:
        yield f"{file.parent.name}/{file.stem}", pt.load(file)
    if options.benchmarks is not None:
        lines, workers = list(line_cases(options.benchmarks)), list(worker_cases(options.benchmarks))
        for case in [*lines[:: options.every], *workers[:: options.every]]:
            yield case.name, case.load()
    for seed in range(options.random):
        rng = np.random.default_rng([seed, options.nodes])
        with suppress(pt.WorkloadError):  # some nodes may run nowhere
            yield f"random {seed}", pt.Workload(*random_workload(rng, options.nodes, options.devices))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ablations", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--workloads", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--benchmarks", type=Path, metavar="FOLDER", help="assembly lines and workers, too")
    parser.add_argument("--every", type=int, default=20, metavar="N", help="take each N-th of these")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="random graphs, too")
    parser.add_argument("--nodes", type=int, default=40, metavar="N", help="the most nodes of these")
    parser.add_argument("--devices", type=int, default=6, metavar="N", help="and the most devices")
    parser.add_argument("--parts", nargs="*", default=[], metavar="NAME", help="only these")
    parser.add_argument("--limit", type=float, default=10.0, metavar="SECONDS", help="of each run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
