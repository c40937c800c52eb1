"""Integer programs for convex and free splits (paper, Sections 5.1.3 and 5.2, Appendix C)."""

from __future__ import annotations

from contextlib import closing

from partitioner.methods.baselines.single_device import solve_single
from partitioner.methods.bounds.cyclic import least_cyclic
from partitioner.methods.bounds.least_part import least_part
from partitioner.methods.bounds.relaxation import Relaxation, relax
from partitioner.methods.imported import imported
from partitioner.methods.ip.descent import descend
from partitioner.methods.ip.formulate import PlacementProgram, formulate
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.ip.start import find_start
from partitioner.methods.ip.task import Task
from partitioner.methods.ip.turns import Turns
from partitioner.methods.limits import is_hopeless
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.methods.solvers.backends.backend import Capability
from partitioner.methods.solvers.backends.catalogue import candidates, pick
from partitioner.methods.solvers.portfolio import Slot, SolverPortfolio, is_worth_while, slots_of
from partitioner.methods.solvers.worker_pool import WorkerPool
from partitioner.problem.variants import PartsProblem

TIGHTEN = "partitioner.methods.ip.tighten:tighten"  # these load a solver of linear programs
COVER = "partitioner.methods.ip.tighten:cover"
IN_TURNS = "partitioner.methods.ip.steps:tighten_in_turns"
HURRY = 10.0  # seconds: with less time a first plan is found before solvers start
STATING = 3e-6  # seconds for each pin and device, at most, to formulate a program and send it to a solver
SHARE = 0.1  # of the time that is left, which formulating may take
UNSTATED = "no solver was started: too little time was left to formulate and solve the integer program"


def solve_ip(problem: PartsProblem, settings: Settings) -> Outcome:
    """Find a first plan, then let solvers prove it or find better ones: method ``ip``.

    Raises
    ------
    BackendUnavailable
        If the named backend is not installed, or its licence does not cover a program of this size.
    """
    if is_hopeless(problem):
        return no_split(problem)
    candidates(settings.backend)
    relaxation = relax(problem)
    search = SplitSearch(problem, settings, least_part(problem, settings, relaxation.bound))
    cyclic = least_cyclic(problem, relaxation)
    if settings.deterministic:
        return _solve_in_turns(search, relaxation, cyclic)
    attainable = search.bound > relaxation.bound
    alone = settings.clock.left < HURRY or attainable or cyclic > search.bound
    if alone:
        find_start(search, cyclic)
    if attainable and not search.over:
        descend(search)
    with closing(WorkerPool()) as pool:
        portfolio = SolverPortfolio(search, pool, _slots(search), _stated)
        if settings.workers > 1 and not search.over:
            portfolio.begin()
        if not alone:
            find_start(search, cyclic)
        if not search.over:
            imported(TIGHTEN if problem.pipeline is None else COVER)(search, relaxation)
        portfolio.run()
        portfolio.end()
    if search.best is None and settings.expired:
        for parts in filter(None, [solve_single(problem, settings).parts]):
            search.offer(parts)
    return search.outcome("+".join(search.words) or portfolio.backend)


def _slots(search: SplitSearch) -> list[Slot]:
    """Return slots for the backends; none if there is no time to formulate the program."""
    settings, problem = search.settings, search.problem
    left = settings.clock.left
    pins = len(problem.nets.pins.items) * int(problem.count.sum())
    named = settings.backend != "auto"
    if not named and (search.closed or not is_worth_while(left) or pins * STATING > SHARE * left):
        search.notes += [] if search.closed else [UNSTATED]
        search.cut_short = True
        return []
    task = search.task()
    backends, note = pick(settings.backend, formulate(task).program)
    search.notes += [note] if note else []
    return slots_of(backends, settings.workers, settings.seed, searches=not task.in_line)


def _solve_in_turns(search: SplitSearch, relaxation: Relaxation, cyclic: float) -> Outcome:
    """Return the outcome of a deterministic run: one task after another, none limited by time."""
    task = search.task()
    backends, note = pick(search.settings.backend, formulate(task).program)
    search.notes += [note] if note else []
    find_start(search, cyclic)
    imported(IN_TURNS if search.problem.pipeline is None else COVER)(search, relaxation)
    with closing(WorkerPool()) as pool:
        Turns(search, pool, list(backends), _stated, not task.in_line).run()
    return search.outcome("+".join(search.words) or backends[0].name)


def _stated(task: Task, backend: Capability) -> PlacementProgram:
    return formulate(task)
