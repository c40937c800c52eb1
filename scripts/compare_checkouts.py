"""Whether two checkouts of the package make the same plans, and how long each of them takes.

Every workload is solved for every objective, method, split and setting that both checkouts have, in one fresh
process for each checkout, in turn, on one core. No clock decides: there is no time limit, `deterministic` is
set, and the steps of the exact search are limited. Values, bounds, gaps, statuses, loads, memory, placements
and orders of execution must then be equal to the last digit; each difference is printed. A run that takes
longer than `--patience` is ended and not compared. With `--times N` each job is run once and then N times in
turn, and the medians of the seconds, their sums over the workloads and the ratios are printed in addition. A
setting is `plain`, or one option that the method takes account of: two replicas, or a schedule with 8
microbatches.

Exit code: 0 all plans are equal; 1 some differ; 2 a folder or a file cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from checkouts.jobs import Job, drawn, jobs_of, shared
from checkouts.process import Checkout, CheckoutError
from checkouts.tally import Tally
from rich.console import Console

INSTANCES = Path(__file__).resolve().parent.parent / "instances"
SAME, DIFFERENT, BAD_INPUT = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        files = [file.resolve() for file in options.workloads if _size(file) <= options.most_nodes]
        with Checkout(options.old) as old, Checkout(options.new) as new:
            jobs = jobs_of(shared(old.methods(), new.methods()), files, options.methods, options.objectives)
            if options.draw is not None:
                jobs = drawn(jobs, options.draw, options.seed)
            tally = compared(old, new, jobs, options)
    except (CheckoutError, OSError, ValueError) as error:
        print(f"compare_checkouts: {error}", file=sys.stderr)
        return BAD_INPUT
    print("\n".join(tally.lines()))
    return DIFFERENT if tally.different else SAME


def compared(old: Checkout, new: Checkout, jobs: Sequence[Job], options: argparse.Namespace) -> Tally:
    """Run the jobs on both checkouts in turn, and print each difference when it is found."""
    tally, console = Tally(), Console(stderr=True)
    for number, job in enumerate(jobs, 1):
        if console.is_terminal:
            console.print(f"{number} of {len(jobs)}: {job}", style="dim")
        first = old.run(job, options.seed, options.patience)
        second = first if first.stopped else new.run(job, options.seed, options.patience)
        found = tally.note(job, first, second)
        if found:
            print("\n  ".join([f"{job} differs", *found]), flush=True)
        if options.times and not second.stopped and first.plan is not None:
            tally.time(job, [_seconds(old, new, job, options) for _ in range(options.times)])
    return tally


def _seconds(old: Checkout, new: Checkout, job: Job, options: argparse.Namespace) -> tuple[float, float]:
    first, second = (each.run(job, options.seed, options.patience) for each in (old, new))
    return first.seconds, second.seconds


def _size(file: Path) -> int:
    """The number of nodes of a workload file; for a profile, of its lines."""
    text = file.read_text(encoding="utf-8")
    return len(json.loads(text)["nodes"]) if file.suffix == ".json" else len(text.splitlines())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="compare_checkouts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, metavar="OLD", help="the folder of one checkout")
    parser.add_argument("new", type=Path, metavar="NEW", help="the folder of the other checkout")
    files = [*sorted(INSTANCES.glob("*_*.json")), *sorted((INSTANCES / "profiles").glob("*.txt"))]
    for name, form, default, metavar, text in (
        ("--most-nodes", int, 10**9, "N", "leave larger workloads out (default: 10**9)"),
        ("--methods", _names, None, "A,B,C", "run only these methods (default: all)"),
        ("--objectives", _names, None, "A,B,C", "take only these objectives (default: all)"),
        ("--seed", int, 0, "N", "draw random numbers from this seed (default: 0)"),
        ("--draw", int, None, "N", "run this number of the jobs, drawn at random (default: all)"),
        ("--patience", float, 60.0, "SECONDS", "end a run that takes longer, compiling aside (default: 60)"),
        ("--times", int, 0, "N", "measure this many further runs of each job (default: 0)"),
    ):
        parser.add_argument(name, type=form, default=default, metavar=metavar, help=text)
    parser.add_argument(
        "--workloads",
        type=Path,
        nargs="+",
        default=files,
        metavar="FILE",
        help="solve these workload files or profiles (default: all in instances/)",
    )
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    sys.exit(main())
