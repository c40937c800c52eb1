"""Solve instances of other fields whose optima are known, and compare values, bounds and seconds.

Sets: salbp (line balancing, SALBP-2), alwabp (a kind of device for every worker), workers (random ones of 70
and 75 tasks; optima are not known), makespan (task graphs with transfers on equal processors), branching
(networks with wide branchings; optima are not known). Every set has tables and a summary line. Exit code: 0;
1 if a run has no plan, or a value or a bound that cannot be true; 2 if a file is missing or nothing is
selected; 130 if interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from outside_bench.cases import SETS, Case
from outside_bench.runs import Run, run
from outside_bench.writing import as_json, as_markdown, as_text
from rich.console import Console

FOLDER = Path(__file__).parents[2] / "shared" / "benchmarks"
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
        _benchmark(selected(options), options.limit, runs)
    except (OSError, ValueError) as error:
        print(f"bench_outside: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        code = INTERRUPTED
    if runs:
        print(WRITERS[options.format](runs))
    return code or (FAILED if any(run.failure or run.wrong for run in runs) else GOOD)


def selected(options: argparse.Namespace) -> list[Case]:
    """Return the instances of the sets whose names match the pattern, and of these every n-th.

    Raises
    ------
    ValueError
        If there is none.
    """
    every = [case for name in options.sets for case in SETS[name](options.folder)]
    found = [case for case in every if fnmatchcase(case.name, options.only)][:: options.every]
    if not found:
        sets = ", ".join(options.sets)
        raise ValueError(f"--only {options.only}: matches none of {len(every)} names ({sets})")
    return found


def _benchmark(cases: Sequence[Case], limit: float, runs: list[Run]) -> None:
    """Collect the run of every instance; progress goes to a terminal only."""
    console = Console(stderr=True)
    for place, case in enumerate(cases, 1):
        if console.is_terminal:
            console.print(f"{place} of {len(cases)}: {case.name}", style="dim")
        runs.append(run(case, limit))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench_outside", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=tuple(SETS), help="(all)")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names to run, such as 'ARC*' (all)")
    parser.add_argument("--every", type=_positive, default=1, metavar="N", help="run every N-th of them (1)")
    parser.add_argument("--limit", type=float, default=10.0, metavar="SECONDS", help="of each run (10)")
    words = "of the sets; branching is in ../workloads beside it (shared/benchmarks beside the checkout)"
    parser.add_argument("--folder", type=Path, default=FOLDER, help=words)
    parser.add_argument("--format", default="text", choices=tuple(WRITERS))
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be an integer of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
