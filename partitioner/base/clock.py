"""How much time a run has left, where the compiling of kernels takes none of it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


def _nothing() -> None:
    pass


class CompileMeter:
    """Counts the seconds in which this process compiles kernels, as long as some run watches.

    Only one thread compiles at a time, since numba holds a lock; those that wait for it wait for kernels
    too, so that the seconds count for every run.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent, self._since = 0.0, math.inf
        self._depth = self._runs = 0
        self._attach, self._detach = _nothing, _nothing
        self._of_thread = threading.local()

    @property
    def seconds(self) -> float:
        """Seconds so far, those of a compilation that is under way included."""
        with self._lock:
            return self._spent + max(0.0, time.perf_counter() - self._since)

    def connect(self, attach: Callable[[], None], detach: Callable[[], None]) -> None:
        """Say how to begin and end listening to the compiler, once it is loaded."""
        with self._lock:
            self._attach, self._detach = attach, detach
            if self._runs:
                attach()

    @contextmanager
    def watched(self, on_compile: Callable[[], None]) -> Iterator[None]:
        """Count during the block, and call `on_compile` before this thread compiles a kernel in it."""
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
        """Note that a kernel is about to be compiled, maybe while another one is."""
        self._depth += 1
        if self._depth > 1:
            return
        with self._lock:
            self._since = time.perf_counter()
        for on_compile in getattr(self._of_thread, "listeners", [])[-1:]:
            on_compile()

    def end(self) -> None:
        """Note that a kernel has been compiled, or that this was given up."""
        self._depth = max(0, self._depth - 1)
        if not self._depth:
            with self._lock:
                self._spent += max(0.0, time.perf_counter() - self._since)
                self._since = math.inf


METER = CompileMeter()


@dataclass(frozen=True)
class Clock:
    """The time of one run.

    Parameters
    ----------
    limit
        Seconds that the run may take; infinity for no limit.
    started, compiled_before
        When it began, and what had been compiled by then.

    Examples
    --------
    >>> Clock(60.0).left > 59.0, Clock().deadline is None
    (True, True)
    """

    limit: float = math.inf
    started: float = field(default_factory=time.perf_counter)
    compiled_before: float = field(default_factory=lambda: METER.seconds)

    @property
    def compiled(self) -> float:
        """Seconds that went into compiling kernels so far."""
        return METER.seconds - self.compiled_before

    @property
    def deadline(self) -> float | None:
        """Reading of ``time.perf_counter`` at which to stop, as things are; None without a limit."""
        return None if self.limit == math.inf else self.started + self.limit + self.compiled

    @property
    def left(self) -> float:
        """Seconds that are left; infinity without a limit."""
        deadline = self.deadline
        return math.inf if deadline is None else max(0.0, deadline - time.perf_counter())

    @property
    def expired(self) -> bool:
        """Whether the limit is reached."""
        return self.left == 0.0

    def at_most(self, seconds: float) -> Clock:
        """Return a clock that begins now and ends after `seconds`, or with this one if that is sooner."""
        return Clock(min(seconds, self.left))
