"""The time that a run has left; the time in which kernels are compiled does not count."""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

OBJECTS = 50_000  # new objects between two searches for cycles; Python's default is 700


def _nothing() -> None:
    pass


def collect_seldom() -> None:
    """Let Python search for unreachable cycles of objects less often; for processes of this package alone.

    While a kernel compiles, the searches visit all that numba has made: a tenth of the time.
    """
    gc.set_threshold(OBJECTS)


class CompileMeter:
    """A counter of the seconds in which this process compiles kernels, while at least one run watches it.

    Numba holds a lock, so that only one thread compiles at a time. Other threads that need a kernel wait
    for this lock. Therefore the seconds count for every run.

    Attributes
    ----------
    kernels
        How many kernels were compiled so far, those of numba's library not counted.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent, self._since = 0.0, math.inf
        self._depth = self._runs = self.kernels = 0
        self._attach, self._detach = _nothing, _nothing
        self._of_thread = threading.local()

    @property
    def seconds(self) -> float:
        """Seconds so far, including those of a compilation that is still running."""
        with self._lock:
            return self._spent + max(0.0, time.perf_counter() - self._since)

    def connect(self, attach: Callable[[], None], detach: Callable[[], None]) -> None:
        """Set the functions that begin and end listening to the compiler; called once numba is loaded."""
        with self._lock:
            self._attach, self._detach = attach, detach
            if self._runs:
                attach()

    @contextmanager
    def watched(self, on_compile: Callable[[], None]) -> Iterator[None]:
        """Count during a ``with`` block; call `on_compile` before this thread compiles a kernel there."""
        listeners: list[Callable[[], None]] = self._of_thread.__dict__.setdefault("listeners", [])
        listeners.append(on_compile)
        self._join(1)
        try:
            yield
        finally:
            self._join(-1)
            listeners.pop()

    def _join(self, change: int) -> None:
        with self._lock:
            before, self._runs = self._runs, self._runs + change
            if not before:
                self._attach()
            if not self._runs:
                self._detach()

    def begin(self) -> None:
        """Note that the compilation of a kernel begins; it may be nested in that of another kernel."""
        self._depth += 1
        self.kernels += 1
        if self._depth > 1:
            return
        with self._lock:
            self._since = time.perf_counter()
        for on_compile in getattr(self._of_thread, "listeners", [])[-1:]:
            on_compile()

    def end(self) -> None:
        """Note that the compilation of a kernel has ended or was given up."""
        self._depth = max(0, self._depth - 1)
        if not self._depth:
            with self._lock:
                self._spent += max(0.0, time.perf_counter() - self._since)
                self._since = math.inf


METER = CompileMeter()


@dataclass(frozen=True)
class Clock:
    """The time limit of one run.

    Parameters
    ----------
    limit
        Seconds that the run may take, without compilation; infinity for no limit.
    compiling
        Seconds of compilation after which no step that a plan can do without compiles more; infinity for no
        limit.
    started, compiled_before
        Reading of ``time.perf_counter`` at the start of the run, and of `METER.seconds` then.

    Examples
    --------
    >>> Clock(60.0).left > 59.0, Clock().deadline is None
    (True, True)
    """

    limit: float = math.inf
    compiling: float = math.inf
    started: float = field(default_factory=time.perf_counter)
    compiled_before: float = field(default_factory=lambda: METER.seconds)

    @property
    def compiled(self) -> float:
        """Seconds that the compilation of kernels has taken since the start of the run."""
        return METER.seconds - self.compiled_before

    @property
    def may_compile(self) -> bool:
        """Whether steps that a plan can do without may compile kernels."""
        return self.compiled <= self.compiling

    @property
    def deadline(self) -> float | None:
        """Reading of ``time.perf_counter`` at which to stop, if nothing more is compiled; None: no limit."""
        return None if self.limit == math.inf else self.started + self.limit + self.compiled

    @property
    def left(self) -> float:
        """Seconds that are left; infinity without a limit."""
        deadline = self.deadline
        return math.inf if deadline is None else max(0.0, deadline - time.perf_counter())

    @property
    def over(self) -> float:
        """Seconds since the limit was reached; 0 before that."""
        deadline = self.deadline
        return 0.0 if deadline is None else max(0.0, time.perf_counter() - deadline)

    @property
    def expired(self) -> bool:
        """Whether the limit is reached."""
        return self.left == 0.0

    def at_most(self, seconds: float) -> Clock:
        """Return a clock that starts now and ends after `seconds`, but not later than this clock."""
        return Clock(min(seconds, self.left), self.compiling - self.compiled)
