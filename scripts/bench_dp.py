"""Measure the dynamic programs on workload files: size, seconds, peak memory.

With --reference-program the same files are given, in turn, to a compiled copy of the paper's program.
Exit code: 0; 1 if a workload could not be solved or the reference program found a smaller value.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dp_bench.measure import Reference, baseline_bytes, compile_seconds, measure
from dp_bench.session import WorkerFailed
from dp_bench.writing import Report, as_json, as_markdown, as_text
from rich.console import Console

WRITERS = {"text": as_text, "markdown": as_markdown, "json": as_json}
GOOD, FAILED, BAD_USAGE = 0, 1, 2


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
    missing = [path for path in (*options.files, options.reference_program) if path and not path.is_file()]
    if missing:
        print(f"bench_dp: {missing[0]}: no such file", file=sys.stderr)
        return BAD_USAGE
    try:
        report = run(options)
    except WorkerFailed as error:
        print(f"bench_dp: {error}", file=sys.stderr)
        return FAILED
    print(WRITERS[options.format](report))
    return GOOD if all(result.good for result in report.results) else FAILED


def run(options: argparse.Namespace) -> Report:
    """Measure every file; progress goes to a terminal only."""
    program = options.reference_program
    reference = None if program is None else Reference(program, options.reference_timeout)
    console = Console(stderr=True)
    baseline = baseline_bytes(options.method)
    results = []
    measure(options.files[0], options.method, 0, None)  # compiles the kernels if they are not yet
    for place, file in enumerate(options.files, 1):
        if console.is_terminal:
            console.print(f"{place} of {len(options.files)}: {file.stem}", style="dim")
        results.append(measure(file, options.method, options.repeat, reference))
    compiling = compile_seconds(options.method, options.files[0]) if options.compile else None
    return Report(options.method, options.repeat, results, baseline, compiling)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench_dp", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a workload file")
    parser.add_argument("--method", default="dp", choices=("dp", "dpl"))
    parser.add_argument("--repeat", type=_positive, default=5, metavar="N", help="timed runs of each (5)")
    parser.add_argument("--compile", action="store_true", help="measure compiling the kernels as well")
    parser.add_argument(
        "--reference-program",
        type=Path,
        metavar="PATH",
        help="reads a workload on standard input, prints a JSON object with maxLoad",
    )
    parser.add_argument(
        "--reference-timeout",
        type=float,
        default=3600.0,
        metavar="SECONDS",
        help="limit of each of its runs (%(default)g)",
    )
    parser.add_argument("--format", default="text", choices=tuple(WRITERS))
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
