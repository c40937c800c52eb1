"""The call of a solver, in which any error becomes an answer."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from partitioner.methods.solvers.backends.backend import Answer


def guarded(solve: Callable[[], Answer]) -> Answer:
    """Return the answer of a solver; ``"failed"``, with the error's message, if it raises an error.

    Examples
    --------
    >>> guarded(lambda: Answer("optimal", [1.0, 0 / 0]))
    Answer(stop='failed', values=None, bound=-inf, native='ZeroDivisionError: division by zero')
    """
    try:
        return solve()
    except Exception:  # solvers raise all kinds of errors; OR-Tools, for example, raises AttributeError
        return Answer("failed", native=traceback.format_exc().strip().splitlines()[-1])
