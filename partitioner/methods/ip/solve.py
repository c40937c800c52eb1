"""Integer programs for convex and free splits (paper, Sections 5.1.3 and 5.2, Appendix C)."""

from __future__ import annotations

from contextlib import closing

from partitioner.methods.baselines.single_device import solve_single
from partitioner.methods.bounds.relaxation import Relaxation, relax
from partitioner.methods.ip.formulate import PlacementProgram, formulate
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.ip.start import find_start
from partitioner.methods.ip.steps import squeeze_in_turns
from partitioner.methods.ip.task import Task
from partitioner.methods.ip.tighten import cover, tighten
from partitioner.methods.ip.turns import Turns
from partitioner.methods.limits import is_hopeless
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.methods.solvers.backends.backend import Capability
from partitioner.methods.solvers.backends.catalogue import candidates, pick
from partitioner.methods.solvers.portfolio import Slot, SolverPortfolio, is_worth_while, slots_of
from partitioner.methods.solvers.worker_pool import WorkerPool
from partitioner.problem.variants import PartsProblem

HURRY = 10.0  # seconds: with less the first plan comes before all else
STATING = 3e-6  # seconds at most for each pin and device to state a program and hand it over
SHARE = 0.1  # of the time that is left, which that may take
UNSTATED = "no solver was asked: in the time that was left the integer program cannot be stated and solved"


def solve_ip(problem: PartsProblem, settings: Settings) -> Outcome:
    """Method ``ip``: a first plan, then solvers that prove it or find better ones.

    Raises
    ------
    BackendUnavailable
        If the backend that was named is missing or not licensed for a program of this size.
    """
    if is_hopeless(problem):
        return no_split(problem)
    candidates(settings.backend)
    relaxation = relax(problem)
    search = SplitSearch(problem, settings, relaxation.bound)
    if settings.deterministic:
        return _solve_in_turns(search, relaxation)
    hurried = settings.clock.left < HURRY
    if hurried:
        find_start(search)
    with closing(WorkerPool()) as pool:
        portfolio = SolverPortfolio(search, pool, _slots(search), _stated)
        if settings.workers > 1 and not search.over:
            portfolio.begin()
        if not hurried:
            find_start(search)
        if not search.over:
            (tighten if problem.pipeline is None else cover)(search, relaxation)
        portfolio.run()
        portfolio.end()
    if search.best is None and settings.expired:
        for parts in filter(None, [solve_single(problem, settings).parts]):
            search.offer(parts)
    return search.outcome("+".join(search.words) or portfolio.backend)


def _slots(search: SplitSearch) -> list[Slot]:
    """Return slots for the backends; none where there is no time to state the program."""
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


def _solve_in_turns(search: SplitSearch, relaxation: Relaxation) -> Outcome:
    """Return what one task after another finds, none of which ends by the clock."""
    task = search.task()
    backends, note = pick(search.settings.backend, formulate(task).program)
    search.notes += [note] if note else []
    find_start(search)
    (squeeze_in_turns if search.problem.pipeline is None else cover)(search, relaxation)
    with closing(WorkerPool()) as pool:
        Turns(search, pool, list(backends), _stated, not task.in_line).run()
    return search.outcome("+".join(search.words) or backends[0].name)


def _stated(task: Task, backend: Capability) -> PlacementProgram:
    return formulate(task)
