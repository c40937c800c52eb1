"""Run the command line: ``python -m partitioner``, or the program ``partitioner``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ends
LATER = 0.05  # seconds until a Ctrl-C that was lost is repeated


def run() -> NoReturn:
    """Run the program; Ctrl-C ends it without a traceback while modules are imported, too."""
    sys.unraisablehook = interrupt_again
    try:
        from partitioner.base.clock import collect_seldom
        from partitioner.cli import run as run_command

        collect_seldom()
        run_command()
    except (KeyboardInterrupt, RuntimeError) as error:
        # Up to Python 3.11 one in a method __set_name__, as of matplotlib's classes, becomes a RuntimeError.
        if KeyboardInterrupt not in (type(error), type(error.__cause__)):
            raise
        print("partitioner: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


def interrupt_again(lost: UnraisableHookArgs) -> None:
    """Repeat a Ctrl-C that came while LLVM, loading a kernel, called Python: such an exception is lost."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    import _thread
    import threading

    threading.Timer(LATER, _thread.interrupt_main).start()


if __name__ == "__main__":
    run()
