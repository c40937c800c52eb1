"""Integer programs for convex and free splits (paper, Sections 5.1.3 and 5.2, Appendix C)."""

from __future__ import annotations

from contextlib import closing

from partitioner.methods.ip.backends.backend import Capability
from partitioner.methods.ip.backends.catalogue import pick
from partitioner.methods.ip.crew import Crew
from partitioner.methods.ip.formulate import Formulation, formulate
from partitioner.methods.ip.race import Race, lanes_of
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.ip.squeeze import squeeze
from partitioner.methods.ip.start import find_start
from partitioner.methods.ip.task import Task
from partitioner.methods.method import Outcome, Settings
from partitioner.methods.relaxation import relax
from partitioner.preprocess.problem import Problem


def solve_ip(problem: Problem, settings: Settings) -> Outcome:
    """Method ``ip``: a first plan, then solvers that prove it or find better ones.

    Raises
    ------
    BackendUnavailable
        If the backend that was named is missing or not licensed for a program of this size.
    """
    relaxation = relax(problem)
    search = SplitSearch(problem, settings, relaxation.bound)
    backends, note = pick(settings.backend, formulate(search.task()).program)
    search.notes += [note] if note else []
    with closing(Crew()) as crew:
        race = Race(search, crew, lanes_of(backends, settings.workers, settings.seed), _stated)
        if settings.workers > 1 and not search.over:
            race.begin()
        find_start(search)
        squeeze(search, relaxation)
        race.run()
        race.end()
    return search.outcome("+".join(search.words) or backends[0].name)


def _stated(task: Task, backend: Capability) -> Formulation:
    return formulate(task)
