"""Requests to stop, by Ctrl-C or by the caller: the run ends at its next check with its best plan so far."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Protocol

from partitioner.base.clock import Clock
from partitioner.base.errors import OptionError, shown


class StopEvent(Protocol):
    """An object that tells a run to stop, such as a ``threading.Event``."""

    def is_set(self) -> bool:
        """Whether the run should stop."""
        ...


class CompilationStopped(Exception):  # noqa: N818 - not an error
    """A request to stop that arrived before the run compiled a kernel."""


class Interruption:
    """A ``with`` block that catches the first Ctrl-C; the second one raises ``KeyboardInterrupt``.

    An exception in the middle of compiled code would lose the best plan so far. Ctrl-C is not caught
    outside the main thread, nor if the program has set a handler for it.

    Parameters
    ----------
    stop
        The caller's request to stop; None if there is none.

    Raises
    ------
    OptionError
        If `stop` has no method ``is_set``.

    Attributes
    ----------
    by_keyboard
        True once Ctrl-C was pressed.
    """

    def __init__(self, stop: StopEvent | None = None) -> None:
        if stop is not None and (isinstance(stop, type) or not callable(getattr(stop, "is_set", None))):
            raise OptionError(f"stop = {shown(stop)}: must be a threading.Event, or have a method is_set")
        self.stop = stop
        self.by_keyboard = self._catching = False

    @property
    def asked(self) -> bool:
        """True once Ctrl-C was pressed or the caller's event is set."""
        return self.by_keyboard or (self.stop is not None and self.stop.is_set())

    def is_set(self) -> bool:
        """Whether the run should stop; a nested run can take this object as its `stop`."""
        return self.asked

    def __enter__(self) -> Interruption:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._catch)
            self._catching = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._release()

    def _catch(self, number: int, frame: FrameType | None) -> None:
        self.by_keyboard = True
        self._release()

    def _release(self) -> None:
        if self._catching:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._catching = False


class EndsInTime:
    """A search that ends with the best so far when its time is over or a stop is asked for.

    Attributes
    ----------
    clock, interruption
        When to end.
    whole
        Whether it was never asked to end.
    """

    clock: Clock
    interruption: Interruption
    whole: bool

    def ends(self) -> bool:
        """Return whether to end now, and note it."""
        ended = self.clock.expired or self.interruption.is_set()
        self.whole = self.whole and not ended
        return ended
