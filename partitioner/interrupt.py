"""Ctrl-C as a wish to stop: the run ends at its next look, with what it has."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interruption:
    """Catches the first Ctrl-C inside a ``with`` block; the second one interrupts as usual.

    An exception in the middle of compiled code would lose the plan in hand. Outside the main thread,
    or where the program has a handler of its own, nothing is caught.

    Attributes
    ----------
    asked
        True once Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.asked = False
        self._catching = False

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
        self.asked = True
        self._release()

    def _release(self) -> None:
        if self._catching:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._catching = False
