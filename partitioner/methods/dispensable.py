"""Steps that a plan can do without: they are left out where they would compile kernels for too long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from partitioner.base.clock import METER
from partitioner.base.interruption import CompilationStopped
from partitioner.methods.method import Settings


@contextmanager
def dispensable(settings: Settings, step: str, left_out: list[str], known: bool = True) -> Iterator[None]:
    """Run a step, which ends early if it would compile a kernel once compiling has taken long enough.

    Parameters
    ----------
    settings
        Say when compiling has taken long enough: never in a deterministic run.
    step
        The step's name, which is added to `left_out` if the step ends early.
    left_out
        The names of the steps that were left out so far, for :func:`note_on`.
    known
        Whether there is a plan without the step; if not, the step may compile what it needs.

    Raises
    ------
    CompilationStopped
        If the user wants the run to end.
    """
    try:
        with METER.watched(partial(settings.on_compile, dispensable=known)):
            yield
    except CompilationStopped:
        if settings.interruption.asked:
            raise
        left_out.append(step)


def note_on(left_out: list[str], settings: Settings) -> tuple[str, ...]:
    """Return a note on the steps that were left out; none if there are none."""
    if not left_out:
        return ()
    spent = f"kernels had been compiled for {settings.clock.compiled:.0f} s before"
    steps = ", ".join(dict.fromkeys(left_out))
    return (f"left out because {spent}: {steps}; `partitioner warm-up` compiles all kernels",)
