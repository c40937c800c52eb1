"""Calls of native and compiled code in a thread in which no signal handler can raise.

Solvers call back into Python for their messages and to turn results into Python objects, and so do
kernels that return arrays. If a signal handler raises there, its exception is lost, because native code
cannot pass it on. Handlers run in the main thread only, so the main thread leaves such calls to another
thread and waits.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def apart(call: Callable[[], T]) -> T:
    """Return what `call` returns, or raise what it raises; call it in another thread if this is the main one.

    An exception that a signal handler raises in the main thread is raised once the call has ended. Threads
    of :mod:`threading` are not used, because they are kept in weak sets, whose callbacks could also lose an
    exception.

    Examples
    --------
    >>> apart(lambda: 7)
    7
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    results: list[T] = []
    errors: list[BaseException] = []
    over: list[bool] = []
    ended = _thread.allocate_lock()
    ended.acquire()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            over.append(True)
            ended.release()

    _thread.start_new_thread(run, ())
    try:
        ended.acquire()
    except BaseException:
        if not over:  # else it is this thread that holds the lock
            ended.acquire()
        raise
    if errors:
        raise errors[0]
    return results[0]
