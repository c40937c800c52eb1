"""Integer programs for convex and free splits (paper, Sections 5.1.3 and 5.2, Appendix C)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from partitioner.methods.ip.backends.backend import Capability
from partitioner.methods.ip.backends.catalogue import pick
from partitioner.methods.ip.crew import Crew
from partitioner.methods.ip.formulate import Formulation, formulate
from partitioner.methods.ip.race import Race, lanes_of
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.ip.squeeze import cover, squeeze
from partitioner.methods.ip.start import find_start
from partitioner.methods.ip.steps import squeeze_in_turns
from partitioner.methods.ip.task import Task
from partitioner.methods.ip.turns import Turns
from partitioner.methods.limits import is_hopeless
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.methods.relaxation import Relaxation, relax
from partitioner.preprocess.problem import Problem


def solve_ip(problem: Problem, settings: Settings) -> Outcome:
    """Method ``ip``: a first plan, then solvers that prove it or find better ones.

    Raises
    ------
    BackendUnavailable
        If the backend that was named is missing or not licensed for a program of this size.
    """
    if is_hopeless(problem):
        return no_split(problem)
    relaxation = relax(problem)
    search = SplitSearch(problem, settings, relaxation.bound)
    backends, note = pick(settings.backend, formulate(search.task()).program)
    search.notes += [note] if note else []
    searches = not search.task().in_line
    if settings.deterministic:
        _solve_in_turns(search, relaxation, backends, searches)
        return search.outcome("+".join(search.words) or backends[0].name)
    lanes = lanes_of(backends, settings.workers, settings.seed, searches=searches)
    with closing(Crew()) as crew:
        race = Race(search, crew, lanes, _stated)
        if settings.workers > 1 and not search.over:
            race.begin()
        find_start(search)
        (squeeze if problem.pipeline is None else cover)(search, relaxation)
        race.run()
        race.end()
    return search.outcome("+".join(search.words) or backends[0].name)


def _solve_in_turns(
    search: SplitSearch, relaxation: Relaxation, backends: Sequence[Capability], searches: bool
) -> None:
    """One task after another, none of which ends by the clock."""
    find_start(search)
    (squeeze_in_turns if search.problem.pipeline is None else cover)(search, relaxation)
    with closing(Crew()) as crew:
        Turns(search, crew, list(backends), _stated, searches).run()


def _stated(task: Task, backend: Capability) -> Formulation:
    return formulate(task)
