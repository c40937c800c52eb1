"""Compare solvers and settings on convex and free splits of workload files.

Settings are the backends of the integer program, its automatic choice, and the local searches alone.
With --output every finished run is added to a file, and runs that the file holds are not repeated.
Exit code: 0; 1 if a run ended without a plan; 2 if files are missing or bad; 130 if interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ip_bench.runs import SPLITS, Limits, Run, Task, can_run, run, settings
from ip_bench.store import append_run, read_runs
from ip_bench.writing import as_json, as_markdown, as_text
from paper_tables.published import read_published
from rich.console import Console

from partitioner import PartitionerError
from partitioner.methods.registry import METHODS

WRITERS = {"text": as_text, "markdown": as_markdown, "json": as_json}
GOOD, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        The words after the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    options = _parser().parse_args(arguments)
    runs: list[Run] = []
    code = GOOD
    try:
        _benchmark(options, runs)
    except (OSError, ValueError, PartitionerError) as error:
        print(f"bench_ip: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        code = INTERRUPTED
    if runs:
        reference = options.reference or options.files[0].resolve().parents[2] / "reference"
        print(WRITERS[options.format](runs, read_published(reference).table1))
    return code or (FAILED if any(run.failure for run in runs) else GOOD)


def _benchmark(options: argparse.Namespace, runs: list[Run]) -> None:
    """Run what is not done yet, and collect all runs; progress goes to a terminal only."""
    known = {} if options.output is None else read_runs(options.output)
    console = Console(stderr=True)
    tasks = _tasks(options)
    for place, (task, file) in enumerate(tasks, 1):
        if task not in known:
            if console.is_terminal:
                words = f"{place} of {len(tasks)}: {task.workload}, {task.split}, {task.setting}"
                console.print(words, style="dim")
            known[task] = run(task, file)
            if options.output is not None:
                append_run(options.output, known[task])
        runs.append(known[task])


def _tasks(options: argparse.Namespace) -> list[tuple[Task, Path]]:
    for file in options.files:
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file")
    limits = Limits(options.time_limit, options.gap, options.seed, options.workers, options.objective)
    return [
        (Task(file.stem, split, setting, limits), file)
        for file in options.files
        for split in options.splits
        for setting in options.backends
        if can_run(setting, split)
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench_ip", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a workload file")
    splits, backends = ",".join(SPLITS), ",".join(settings())
    parser.add_argument("--splits", type=_chosen(SPLITS), default=SPLITS, metavar=splits)
    parser.add_argument("--backends", type=_chosen(settings()), default=("auto",), metavar=backends)
    parser.add_argument("--objective", default="throughput", choices=METHODS["ip"].objectives)
    parser.add_argument("--time-limit", type=float, default=300.0, metavar="SECONDS", help="a run (300)")
    parser.add_argument("--gap", type=float, default=0.01, metavar="FRACTION", help="when to stop (0.01)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--workers", type=int, metavar="N", help="cores to use (all)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON lines, one for each finished run")
    words = "folder of table1.json (default: reference/ beside the workloads' folder, if it is there)"
    parser.add_argument("--reference", type=Path, metavar="FOLDER", help=words)
    parser.add_argument("--format", default="text", choices=tuple(WRITERS))
    return parser


def _chosen(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """What reads some of the known words, with commas between them."""

    def read(text: str) -> tuple[str, ...]:
        words = tuple(known) if text == "all" else tuple(text.split(","))
        unknown = [word for word in words if word not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]}: choose from all, {', '.join(known)}")
        return words

    return read


if __name__ == "__main__":
    sys.exit(main())
