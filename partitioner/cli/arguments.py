"""The words and options of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from partitioner import __version__
from partitioner.base.registry import Registry
from partitioner.cli.plot import add_plot_options
from partitioner.errors import OptionError
from partitioner.evaluation.shape import SHAPES
from partitioner.methods.placing import GROUPERS
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import DEFAULT, OBJECTIVES
from partitioner.planning.options import GRANULARITIES
from partitioner.schedule.kinds.registry import KINDS
from partitioner.schedule.simulation import LINKS
from partitioner.workload.devices import COMMUNICATION_MODELS
from partitioner.workload.pipeline_settings import SCHEDULES

Command = Callable[[argparse.Namespace], None]
PLANNED = "plan, or else of the workload"
_Group = argparse._ArgumentGroup


def command_parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """The parser; `commands` has a function for every word."""
    parser = argparse.ArgumentParser(
        prog="partitioner", description="Split a neural network's graph over devices, with a proof."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    words = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_solve(words.add_parser("solve", help="find the best split of a workload"))
    _add_evaluate(words.add_parser("evaluate", help="compute and check a given placement"))
    _add_simulate(words.add_parser("simulate", help="run a schedule with the times of a plan"))
    _add_compare(words.add_parser("compare", help="run all methods on a workload and rank their plans"))
    _add_methods(words.add_parser("methods", help="list the methods, what each guarantees, and the backends"))
    _add_plot(words.add_parser("plot", help="draw a plan or its schedule into a file"))
    for name, command in commands.items():
        words.choices[name].set_defaults(run=command)
    return parser


def _known(names: Registry[Any], *further: str) -> Callable[[str], str]:
    """Return what argparse checks a name with, among them those of other distributions."""

    def check(name: str) -> str:
        try:
            names.check(names.word, name, *further)
        except OptionError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return name

    return check


def _add_solve(parser: argparse.ArgumentParser) -> None:
    _add_model(parser, DEFAULT)
    known = _known(METHODS, "auto")
    parser.add_argument("--method", default="auto", type=known, metavar="NAME", help="see methods (auto)")
    parser.add_argument("--split", choices=SHAPES, help="chain; latency: convex; gpipe, makespan: free")
    parser.add_argument("--backend", default="auto", help="the solver, for methods that can choose")
    parser.add_argument(
        "--contiguous-backward", action="store_true", help="convex: the backward part must be contiguous too"
    )
    parser.add_argument(
        "--scattered-cpus", action="store_true", help="convex: parts on CPUs need not be contiguous"
    )
    parser.add_argument("--time-limit", type=float, metavar="SECONDS")
    parser.add_argument("--gap", type=float, default=0.0, metavar="FRACTION", help="stop once this close")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--workers", type=int, metavar="N", help="cores to use")
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="count work in steps, not seconds: same plan each time",
    )
    parser.add_argument("--granularity", choices=GRANULARITIES, help="keep the nodes of a layer together?")
    parser.add_argument("--memory-budget", type=int, metavar="BYTES", help="for the exact search (4 GiB)")
    parser.add_argument("--orders", type=int, metavar="N", help="linear orders to try (12)")
    parser.add_argument(
        "--output", metavar="FILE", help="write the plan there as well, as JSON or as a writer does"
    )
    parser.add_argument("--replicas", type=int, metavar="N", help="devices that may share a stage (1)")
    _add_placing(parser)
    _add_format(parser)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    _add_model(parser, DEFAULT)
    parser.add_argument("--methods", metavar="A,B,C", help="these only (all that suit)")
    parser.add_argument("--split", choices=SHAPES, help="this one only (all that the methods know)")
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="of each method (%(default)g)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--workers", type=int, metavar="N", help="cores to use")
    parser.add_argument("--refine", action="store_true", help="improve placed operators by local search")
    _add_transfers(parser.add_argument_group("operators one by one (makespans, list schedulers)"))
    _add_format(parser)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_model(parser, None)
    parser.add_argument("plan", metavar="PLAN", help="a plan, or a split with fpgas and cpus")
    _add_transfers(parser.add_argument_group("operators one by one (makespans)"))
    parser.add_argument(
        "--bound", type=float, metavar="SECONDS", help="search so long for how far it is from the best"
    )
    _add_format(parser)


def _add_placing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("operators one by one (makespans, list schedulers)")
    group.add_argument("--refine", action="store_true", help="improve the placement by local search")
    group.add_argument(
        "--sct-threshold", type=float, metavar="X", help="for a favourite child of m-SCT (0.1)"
    )
    group.add_argument("--grouper", choices=GROUPERS, help="coplace: a node with its only successor (none)")
    group.add_argument("--fuse", action="store_true", help="Baechi's: contract edges inside groups")
    group.add_argument("--fusion-range", type=int, metavar="N", help="nodes of a cluster of Celeritas (200)")
    group.add_argument(
        "--fusion-memory", type=float, metavar="FRACTION", help="of a device, for a cluster (0.25)"
    )
    group.add_argument("--imbalance", type=float, metavar="FRACTION", help="of graph partitioners (0.01)")
    _add_transfers(group)


def _add_transfers(group: _Group) -> None:
    group.add_argument("--contention", action="store_true", help="one transfer at a time on a device")
    group.add_argument("--link-slope", type=float, metavar="X", help="time of a transfer for each cost")
    group.add_argument("--link-intercept", type=float, metavar="T", help="and beside")


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload JSON file, or a profile (.txt)")
    parser.add_argument("plan", metavar="PLAN", help="a plan, or a split with fpgas and cpus")
    known = ", ".join(KINDS)
    parser.add_argument(
        "--schedule",
        metavar="NAME",
        help=f"{known}, or a schedule of torch (.csv); by default the plan's, else 1f1b or inference",
    )
    parser.add_argument("--microbatches", type=int, metavar="N", help="samples that pass through")
    parser.add_argument("--links", default="host", choices=LINKS, help="tensors go by host memory (host)")
    parser.add_argument("--compare", action="store_true", help="rank all schedules")
    parser.add_argument("--output", metavar="TIMELINE.json", help="write the timeline there")
    parser.add_argument("--trace", metavar="TRACE.json", help="write a Chrome trace, for Perfetto")
    parser.add_argument("--csv", metavar="FILE.csv", help="write the schedule for torch")
    _add_devices(parser.add_argument_group(f"devices, in place of those of the {PLANNED}"))
    _add_profile(parser.add_argument_group("PipeDream's profiles"))
    _add_format(parser)


def _add_methods(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="all that is known of this method")
    parser.add_argument("--long", action="store_true", help="all that is known of every method")
    _add_format(parser)


def _add_model(parser: argparse.ArgumentParser, objective: str | None) -> None:
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload JSON file, or a profile (.txt)")
    usual = objective or f"that of the plan, else {DEFAULT}"
    named = f"{', '.join(OBJECTIVES.own)}; by default {usual}"
    parser.add_argument("--objective", default=objective, type=_known(OBJECTIVES), metavar="NAME", help=named)
    parser.add_argument(
        "--subgraphs-per-accelerator",
        type=int,
        metavar="N",
        help="of each pass, for latency (1)",
    )
    parser.add_argument("--schedule", choices=SCHEDULES, help="how many samples a stage holds in memory")
    parser.add_argument("--microbatches", type=int, metavar="N", help="samples in a batch")
    owner = "workload" if objective else PLANNED
    _add_devices(parser.add_argument_group(f"devices, in place of those of the {owner}"))
    _add_profile(parser.add_argument_group("PipeDream's profiles"))
    _add_constraints(parser.add_argument_group("constraints"))


def _add_plot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload JSON file, or a profile (.txt)")
    add_plot_options(parser)
    _add_devices(parser.add_argument_group(f"devices, in place of those of the {PLANNED}"))
    _add_profile(parser.add_argument_group("PipeDream's profiles"))


def _add_devices(group: _Group) -> None:
    group.add_argument("--devices", metavar="FILE", help="a devices JSON file")
    group.add_argument("--accelerators", type=int, metavar="N")
    group.add_argument("--memory", type=float, metavar="BYTES", help="of each accelerator")
    group.add_argument("--cpus", type=int, metavar="N")
    group.add_argument("--communication", choices=COMMUNICATION_MODELS, help="sequential")


def _add_profile(group: _Group) -> None:
    group.add_argument("--bandwidth", type=float, metavar="BYTES", help="per second")
    group.add_argument("--cpu-factor", type=float, metavar="X", help="how many times longer a CPU takes")
    group.add_argument("--inference", action="store_true", help="without the backward pass")


def _add_constraints(group: _Group) -> None:
    group.add_argument("--constraints", metavar="FILE", help="a constraints JSON file")
    group.add_argument("--stages", type=int, metavar="N", help="exactly so many")
    group.add_argument("--use-all-devices", action="store_true")
    group.add_argument("--neighbours-only", action="store_true", help="no edge may lead over a stage")


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", default="text", choices=("text", "json"))
