"""The command line: ``partitioner solve``, ``partitioner evaluate``, ``partitioner methods``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import NoReturn

from partitioner.devices import COMMUNICATION_MODELS
from partitioner.errors import InfeasibleError, NoPlanFound, PartitionerError
from partitioner.evaluate import OBJECTIVES, evaluate
from partitioner.evaluation.shape import SHAPES
from partitioner.formats.msr import load
from partitioner.formats.placement import load_placement
from partitioner.methods.registry import METHODS
from partitioner.options import GRANULARITIES
from partitioner.progress import ProgressLine
from partitioner.report import evaluation_table, methods_table
from partitioner.solve import solve

DONE, BAD_INPUT, INFEASIBLE, NOTHING_FOUND, INTERRUPTED = 0, 2, 3, 4, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        The words after the program's name; by default those of the process.

    Returns
    -------
    int
        0 a plan or evaluation; 2 bad input or usage; 3 proven infeasible; 4 no plan found within
        the limits; 130 interrupted without a plan.
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except KeyboardInterrupt:
        return _fail("interrupted before there was a plan", INTERRUPTED)
    except InfeasibleError as error:
        return _fail(f"infeasible: {error}", INFEASIBLE)
    except NoPlanFound as error:
        return _fail(str(error), NOTHING_FOUND)
    except PartitionerError as error:
        return _fail(str(error), BAD_INPUT)
    return DONE


def _fail(message: str, code: int) -> int:
    print(f"partitioner: {message}", file=sys.stderr)
    return code


def _solve(options: argparse.Namespace) -> None:
    workload = load(options.workload, options.communication)
    chosen = {name: getattr(options, name) for name in ("granularity", "memory_budget", "orders")}
    with ProgressLine() as line:
        plan = solve(
            workload.graph,
            workload.devices,
            options.objective,
            method=options.method,
            split=options.split,
            backend=options.backend,
            time_limit=options.time_limit,
            gap=options.gap,
            seed=options.seed,
            workers=options.workers,
            on_progress=line.show,
            **{name: value for name, value in chosen.items() if value is not None},
        )
    print(plan.to_json() if options.format == "json" else plan.summary())
    if options.output:
        plan.save(options.output)


def _evaluate(options: argparse.Namespace) -> None:
    workload = load(options.workload, options.communication)
    placement = load_placement(options.plan, workload.graph, workload.devices)
    evaluation = evaluate(workload.graph, workload.devices, placement, options.objective)
    if options.format == "json":
        print(json.dumps(asdict(evaluation) | {"feasible": evaluation.feasible}, indent=1))
    else:
        print(evaluation_table(evaluation))


def _methods(options: argparse.Namespace) -> None:
    if options.format == "json":
        print(json.dumps([asdict(info) for info in METHODS.values()], indent=1))
    else:
        print(methods_table(list(METHODS.values())))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="partitioner", description="Split a neural network's graph over devices, with a proof."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_solve(commands.add_parser("solve", help="find the best split of a workload"))
    _add_evaluate(commands.add_parser("evaluate", help="compute and check a given placement"))
    methods = commands.add_parser("methods", help="list the methods and what each guarantees")
    _add_format(methods)
    methods.set_defaults(run=_methods)
    return parser


def _add_solve(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_solve)
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload JSON file")
    _add_model(parser, ("throughput", "gpipe", "latency"))
    parser.add_argument("--method", default="auto", choices=("auto", *METHODS))
    parser.add_argument("--split", default="chain", choices=SHAPES)
    parser.add_argument("--backend", default="auto", help="the solver, for methods that can choose")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS")
    parser.add_argument("--gap", type=float, default=0.0, metavar="FRACTION", help="stop once this close")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--workers", type=int, metavar="N", help="cores to use")
    parser.add_argument("--granularity", choices=GRANULARITIES, help="keep the nodes of a layer together?")
    parser.add_argument("--memory-budget", type=int, metavar="BYTES", help="for the exact search (4 GiB)")
    parser.add_argument("--orders", type=int, metavar="N", help="linear orders to try (12)")
    parser.add_argument("--output", metavar="PLAN.json", help="write the plan there as well")
    _add_format(parser)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_evaluate)
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload JSON file")
    parser.add_argument("plan", metavar="PLAN", help="a plan, or a split with fpgas and cpus")
    _add_model(parser, OBJECTIVES)
    _add_format(parser)


def _add_model(parser: argparse.ArgumentParser, objectives: Sequence[str]) -> None:
    parser.add_argument("--objective", default="throughput", choices=objectives)
    parser.add_argument("--communication", default="sequential", choices=COMMUNICATION_MODELS)


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", default="text", choices=("text", "json"))


def run() -> NoReturn:
    """Entry point of the ``partitioner`` program."""
    sys.exit(main())
