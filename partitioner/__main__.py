"""Run the command line: ``python -m partitioner``, or the program ``partitioner``."""

import sys
from typing import NoReturn

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ends


def run() -> NoReturn:
    """Run the program; Ctrl-C ends it without a traceback while it is imported, too."""
    try:
        from partitioner.cli import run as run_command
    except KeyboardInterrupt:
        print("partitioner: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    run_command()


if __name__ == "__main__":
    run()
