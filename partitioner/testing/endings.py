"""Runs that are ended: by a time limit, by the caller's event, by Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from partitioner.base.clock import Clock
from partitioner.testing.failures import LateEnd
from partitioner.testing.question import Question, RunResult

LIMIT = 0.5  # seconds, of a run and until it is asked to stop
GRACE = 1.0  # seconds that a run may take to end


def check_time_limit(question: Question) -> None:
    """Ask with a time limit; compiling kernels is not counted.

    Raises
    ------
    MethodFailure
        If the run takes a second more than the limit, or its answer is not sound.
    """
    _check(question, f"the time limit of {LIMIT:g} s", lambda: question.ask(time_limit=LIMIT))


def check_stop(question: Question) -> None:
    """Ask without a limit, and set the event of the call.

    Raises
    ------
    MethodFailure
        If the run goes on for a second, or its answer is not sound.
    """

    def ask() -> RunResult:
        event = threading.Event()
        timer = threading.Timer(LIMIT, event.set)
        timer.start()
        try:
            return question.ask(stop=event)
        finally:
            timer.cancel()

    _check(question, f"the event that was set after {LIMIT:g} s", ask)


def check_ctrl_c(question: Question) -> None:
    """Ask without a limit, and send the signal of Ctrl-C.

    Nothing is asked where the signal cannot be sent: outside the main thread, where the program has a handler
    of its own, and on systems without ``signal.pthread_kill``.

    Raises
    ------
    MethodFailure
        If the run goes on for a second, or its answer is not sound.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if ours and main and hasattr(signal, "pthread_kill"):
        _check(question, f"Ctrl-C after {LIMIT:g} s", lambda: _interrupted(question))


def _interrupted(question: Question) -> RunResult:
    """Return the answer; the signal may come when the run has just ended."""
    thread = threading.get_ident()
    timer = threading.Timer(LIMIT, lambda: signal.pthread_kill(thread, signal.SIGINT))
    try:
        timer.start()
        try:
            return question.ask()
        finally:
            timer.cancel()
            timer.join()
    except KeyboardInterrupt:
        return RunResult(None, "interrupted")


def _check(question: Question, what: str, ask: Callable[[], RunResult]) -> None:
    """Ask, and once more if that takes too long, since loading modules takes time, too."""
    seconds = 0.0
    for _ in range(2):
        clock = Clock()
        answer = ask()
        seconds = Clock().started - clock.started - clock.compiled
        if answer.plan is not None:
            question.check_sound(answer.plan)
        elif answer.reason != "interrupted" and answer.reason != "no plan":
            question.check_no_plan(answer)
        if seconds <= LIMIT + GRACE:
            return
    raise LateEnd(question.say(f"in spite of {what} the run took {seconds:.1f} s"), question.line)
