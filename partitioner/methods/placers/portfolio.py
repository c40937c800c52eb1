"""The portfolio: several list schedulers run, and the best placement is improved by local search.

Of the placers that the package has, those run without which the best placement is worse on many graphs
(docs/benchmarks.md, "Placers in the portfolio"). The others are methods of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from partitioner.base.errors import BackendUnavailable
from partitioner.methods.dispensable import dispensable, note_on
from partitioner.methods.method import Outcome, OutOfTimeError, Settings, meets, no_split, out_of_time
from partitioner.methods.placers.first_fit import place_within_memory
from partitioner.methods.placers.found import PORTION, Found
from partitioner.methods.placers.method import ListMethod, no_room
from partitioner.methods.placers.plan_value import bound_of, improved, plan_value
from partitioner.methods.placers.ranks import ordered, upward_rank
from partitioner.methods.places import places_of
from partitioner.methods.registry import METHODS
from partitioner.problem.tasks import Tasks
from partitioner.problem.variants import AnyOperators

PLACERS = ("heft", "m-etf", "m-sct", "cpd-topo", "celeritas")
PATIENCE = 5.0  # seconds that a placer may wait for its solver
FITTING, GIVEN, REFINING = "a placement that fits", "the given placement", "local search"


def solve_portfolio(problem: AnyOperators, settings: Settings) -> Outcome:
    """Return the best placement of `PLACERS`, improved by local search: method ``portfolio``.

    If no placer finds a placement within the memory, any placement that fits is taken.
    """
    tasks, bound = problem.tasks, bound_of(problem)
    if np.isinf(bound):
        return no_split(problem)
    best: tuple[float, str, Found] | None = None
    tried: list[str] = []
    left_out: list[str] = []
    for name, found in chain(_given(problem, settings), _placements(tasks, settings, left_out)):
        tried.append(name)
        value = plan_value(problem, settings, found, bound).value
        if best is None or value < best[0]:
            best = value, name, found
        if meets(bound, best[0], settings.gap):
            break
    if best is None and settings.expired and tasks.n > PORTION:
        return out_of_time(problem, settings, bound)
    if best is None:
        fitting, impossible = place_within_memory(tasks, settings)
        if fitting is None:
            return no_room(problem, settings, bound, impossible)
        tried.append(FITTING)
        best = np.inf, FITTING, fitting
    outcome = _improved(problem, settings, best[2], bound, left_out)
    note = f"started from {best[1]}, the best of {len(tried)} placers: {', '.join(tried)}"
    return replace(outcome, notes=(*outcome.notes, note, *note_on(left_out, settings)))


def _improved(
    problem: AnyOperators, settings: Settings, found: Found, bound: float, left_out: list[str]
) -> Outcome:
    """Return the outcome of local search, or without it if that would compile for too long."""
    with dispensable(settings, REFINING, left_out):
        return improved(problem, settings, found, bound)
    return plan_value(problem, settings, found, bound)


def _given(problem: AnyOperators, settings: Settings) -> Iterator[tuple[str, Found]]:
    """Yield the user's placement to start from, if one was given, with its tasks by upward rank."""
    tasks = problem.tasks
    if settings.incumbent is not None:
        device = places_of(problem, settings.incumbent)[problem.member[tasks.node]]
        yield GIVEN, Found(device, ordered(tasks, upward_rank(tasks)))


def _placements(tasks: Tasks, settings: Settings, left_out: list[str]) -> Iterator[tuple[str, Found]]:
    """Yield what the placers find, by name; the first to find something does not stop at the time limit.

    Once there is something, a placer that would compile for too long is left out, and its name is listed.
    """
    some = False
    settings = replace(settings, patience=np.inf if settings.deterministic else PATIENCE)
    for name, placer in placers().items():
        if some and settings.expired:
            return
        found = None
        try:
            with dispensable(settings, name, left_out, some):
                found = placer.place(tasks, settings)
        except BackendUnavailable:
            continue
        except OutOfTimeError:
            return
        if found is not None:
            some = True
            yield name, found


def placers() -> dict[str, ListMethod]:
    """Return the list schedulers that the portfolio runs, by name."""
    loaded = {name: METHODS.own[name].load() for name in PLACERS}
    return {name: method for name, method in loaded.items() if isinstance(method, ListMethod)}
