"""HEFT (Topcuoglu, Hariri and Wu, 2002), and the list scheduler made of rules that the user chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from partitioner.base.errors import OptionError, one_of, shown
from partitioner.methods.method import Settings
from partitioner.methods.placers.engine import place_in_order
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.method import as_method
from partitioner.methods.placers.ranks import PRIORITIES, ordered, upward_rank
from partitioner.methods.placing import CHOOSERS
from partitioner.problem.arrays import Floats
from partitioner.problem.tasks import Tasks

T = TypeVar("T")


def place_heft(tasks: Tasks, settings: Settings) -> Found | None:
    """Place the tasks by decreasing upward rank, each on the device on which it finishes first.

    A task may start in an idle slot between two others. Devices that are full, or may not run the task, are
    left out.
    """
    order = ordered(tasks, upward_rank(tasks))
    reserve = settings.placing.reserve_memory
    return place_in_order(tasks, order, "earliest_finish", reserve=reserve, settings=settings)


def place_composed(tasks: Tasks, settings: Settings) -> Found | None:
    """Place the tasks by the rules that the user chose, see :class:`partitioner.Placer`.

    Raises
    ------
    OptionError
        If a rule has an unknown name, or a function does not return what it should.
    """
    placer = settings.placing.placer
    for name, value, known in (
        ("priority", placer.priority, PRIORITIES),
        ("choose", placer.choose, CHOOSERS),
    ):
        if not callable(value) and not (isinstance(value, str) and value in known):
            raise OptionError(f"{name} of placer = {shown(value)}: must be {one_of(value, known)}")
    rank = PRIORITIES[placer.priority] if isinstance(placer.priority, str) else placer.priority
    priority = _numbers(_guarded("priority", rank)(tasks))
    if priority is None or priority.shape != (tasks.n,) or np.isnan(priority).any():
        raise OptionError(f"priority of placer must return {tasks.n} numbers, one for each task")
    return place_in_order(
        tasks,
        ordered(tasks, priority),
        placer.choose if isinstance(placer.choose, str) else _guarded("choose", placer.choose),
        insertion=placer.insertion,
        reserve=settings.placing.reserve_memory,
        settings=settings,
    )


def _guarded(name: str, function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a function of the user's whose exceptions are errors about the placer."""

    def called(given: Any) -> T:
        try:
            return function(given)
        except Exception as error:  # it may raise anything
            words = f"must not raise an exception: {type(error).__name__}: {error}"
            raise OptionError(f"{name} of placer {words}") from error

    return called


def _numbers(given: object) -> Floats | None:
    """Return a value as an array of numbers; None if it cannot be one."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return None


solve_heft = as_method(place_heft)
solve_composed = as_method(place_composed)
