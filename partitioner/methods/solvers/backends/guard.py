"""One place where solvers are called: whatever one raises becomes an answer."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from partitioner.methods.solvers.backends.backend import Answer


def guarded(solve: Callable[[], Answer]) -> Answer:
    """Return the answer of a solver; ``"failed"``, with its last words, if it raises an error.

    Examples
    --------
    >>> guarded(lambda: Answer("optimal", [1.0, 0 / 0]))
    Answer(stop='failed', values=None, bound=-inf, native='ZeroDivisionError: division by zero')
    """
    try:
        return solve()
    except Exception:  # solvers raise what they like, among others AttributeError out of OR-Tools
        return Answer("failed", native=traceback.format_exc().strip().splitlines()[-1])
