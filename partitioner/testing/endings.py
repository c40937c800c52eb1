"""Checks of how runs end: by a time limit, by the caller's event, by Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from partitioner.base.clock import Clock
from partitioner.testing.failures import LateEnd
from partitioner.testing.question import MethodAnswer, Question

LIMIT = 0.5  # seconds: the time limit of a run, and the time until it is asked to stop
GRACE = 1.0  # seconds that a run may take to end


def check_time_limit(question: Question) -> None:
    """Run the method with a time limit; the compilation of kernels does not count.

    Raises
    ------
    MethodFailure
        If the run takes a second more than the limit, or its answer is wrong.
    """
    _check(question, f"the time limit of {LIMIT:g} s", lambda: question.ask(time_limit=LIMIT))


def check_stop(question: Question) -> None:
    """Run the method without a time limit, and set the event `stop` of the call.

    Raises
    ------
    MethodFailure
        If the run takes a second more after that, or its answer is wrong.
    """

    def ask() -> MethodAnswer:
        event = threading.Event()
        timer = threading.Timer(LIMIT, event.set)
        timer.start()
        try:
            return question.ask(stop=event)
        finally:
            timer.cancel()

    _check(question, f"the event that was set after {LIMIT:g} s", ask)


def check_ctrl_c(question: Question) -> None:
    """Run the method without a time limit, and send the signal of Ctrl-C.

    Nothing is run if the signal cannot be sent: outside the main thread, if the program has set a handler for
    it, and on systems without ``signal.pthread_kill``.

    Raises
    ------
    MethodFailure
        If the run takes a second more after that, or its answer is wrong.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if ours and main and hasattr(signal, "pthread_kill"):
        _check(question, f"Ctrl-C after {LIMIT:g} s", lambda: _interrupted(question))


def _interrupted(question: Question) -> MethodAnswer:
    """Return the answer of a run that gets the signal, which may also arrive just after its end."""
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
        return MethodAnswer(None, "interrupted")


def _check(question: Question, what: str, ask: Callable[[], MethodAnswer]) -> None:
    """Run, and once more if the run takes too long: the first run also loads modules."""
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
